#include "runtime/cluster/children.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/check.hpp"
#include "core/text.hpp"

namespace leeway {
namespace {

struct Pipe {
  int read = -1, write = -1;
};

Pipe open_pipe() {
  int ends[2] = {-1, -1};
  LW_CHECK(pipe2(ends, O_CLOEXEC) == 0, std::strerror(errno));
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {ends[0], ends[1]};
}

/// Bytes of an output that one poll() reads, so that a flood delays nothing else for long.
constexpr std::size_t kReadAtOnce = 64u << 10;
/// A longer line is reported in pieces.
constexpr std::size_t kMostLine = 64u << 10;

/// This process's environment with the command's entries instead of those of the same name.
std::vector<char*> environment_of(const Children::Command& command) {
  std::vector<char*> all;
  const auto name_of = [](std::string_view entry) { return entry.substr(0, entry.find('=')); };
  for (char** entry = environ; *entry; ++entry)
    if (std::ranges::none_of(command.environment, [&](const std::string& own) {
          return name_of(own) == name_of(*entry);
        }))
      all.push_back(*entry);
  for (const std::string& own : command.environment) all.push_back(const_cast<char*>(own.c_str()));
  all.push_back(nullptr);
  return all;
}

/// In the child process. Other threads may have held locks when it was forked, so that it must not
/// allocate memory. `failed`: what to print if the program cannot be run, without the reason.
[[noreturn]] void execute(const char* program, const std::vector<char*>& argv,
                          const std::vector<char*>& environment, const std::string& failed) {
  execvpe(program, argv.data(), environment.data());
  const char* const reason = strerrordesc_np(errno);
  for (const std::string_view text :
       {std::string_view(failed), std::string_view(reason ? reason : "unknown error"),
        std::string_view("\n")})
    (void)!write(STDERR_FILENO, text.data(), text.size());
  _exit(127);
}

}  // namespace

Children::~Children() {
  signal(SIGKILL);
  while (running() > 0) poll();
}

void Children::start(std::size_t number, const Command& command) {
  if (number == children_.size()) children_.emplace_back();
  LW_CHECK(number < children_.size() && !runs(number), number);
  std::vector<char*> argv = {const_cast<char*>(command.program.c_str())};
  for (const std::string& word : command.arguments) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const std::vector<char*> environment = environment_of(command);
  const std::string failed = concat("cannot be run: ", command.program, ": ");
  const Pipe error = open_pipe();
  const Pipe out = command.relays_out ? open_pipe() : Pipe{};
  const pid_t parent = getpid();
  const pid_t pid = fork();
  LW_CHECK(pid >= 0, "cannot start a process", std::strerror(errno));
  if (pid == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // A process in the background must not read the terminal.
    const int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (getppid() != parent || dup2(none, STDIN_FILENO) < 0 ||
        dup2(error.write, STDERR_FILENO) < 0 ||
        (out.write >= 0 && dup2(out.write, STDOUT_FILENO) < 0))
      _exit(126);
    execute(command.program.c_str(), argv, environment, failed);
  }
  ::close(error.write);
  children_[number] = {pid, {{Stream::error, error.read, {}}}};
  if (out.read < 0) return;
  ::close(out.write);
  children_[number].outputs.push_back({Stream::out, out.read, {}});
}

std::size_t Children::running() const {
  std::size_t count = 0;
  for (const Child& child : children_) count += child.pid > 0 ? 1 : 0;
  return count;
}

void Children::poll() {
  std::vector<pollfd> polled;
  for (const Child& child : children_)
    for (const Output& output : child.outputs)
      if (output.pipe >= 0) polled.push_back({output.pipe, POLLIN, 0});
  ::poll(polled.data(), polled.size(), 50);
  for (std::size_t number = 0; number < children_.size(); ++number) {
    if (!runs(number)) continue;
    int status = 0;
    // First, so that its last output is read below.
    const bool has_ended = waitpid(children_[number].pid, &status, WNOHANG) > 0;
    for (std::size_t i = 0; i < children_[number].outputs.size(); ++i)
      read(number, children_[number].outputs[i]);
    if (!has_ended) continue;
    close(number);
    events_.on_end(number, status);
  }
}

void Children::read(std::size_t child, Output& output) {
  char buffer[4096];
  for (std::size_t done = 0; output.pipe >= 0 && done < kReadAtOnce;) {
    const ssize_t count = ::read(output.pipe, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;  // nothing at present
    if (count == 0) {
      ::close(std::exchange(output.pipe, -1));
      return;
    }
    done += static_cast<std::size_t>(count);
    for (const char one : std::string_view(buffer, static_cast<std::size_t>(count))) {
      // A carriage return ends a line of progress.
      const bool ends = one == '\n' || one == '\r';
      if (!ends) output.line.push_back(one);
      if ((!ends && output.line.size() < kMostLine) || output.line.empty()) continue;
      events_.on_line(child, output.stream, std::exchange(output.line, {}));
    }
  }
}

void Children::close(std::size_t number) {
  Child& child = children_[number];
  child.pid = -1;
  for (Output& output : child.outputs) {
    if (output.pipe >= 0) ::close(output.pipe);
    if (!output.line.empty()) events_.on_line(number, output.stream, output.line);
  }
  child.outputs.clear();
}

void Children::signal(int signal) const {
  for (const Child& child : children_)
    if (child.pid > 0 && kill(-child.pid, signal) != 0) kill(child.pid, signal);  // its group
}

void Children::stop(std::chrono::steady_clock::duration limit) {
  signal(SIGINT);
  const auto until = std::chrono::steady_clock::now() + limit;
  while (running() > 0 && std::chrono::steady_clock::now() < until) poll();
  signal(SIGKILL);
  while (running() > 0) poll();
}

void RestartPause::adapt() {
  constexpr Clock::duration kMost = std::chrono::seconds(30);
  const bool ended_soon = Clock::now() - started_at_ < 2 * length_;
  length_ = ended_soon ? std::min(2 * length_, kMost) : kFirst;
}

std::string end_text(int status) {
  if (WIFSIGNALED(status))
    return concat("was killed by signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)),
                  ")");
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
    return concat("has ended with exit code ", WEXITSTATUS(status));
  return "has ended";
}

}  // namespace leeway
