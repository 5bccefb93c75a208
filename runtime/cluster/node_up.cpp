// `leeway up`: starts several node agents on this host.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <iostream>
#include <utility>

#include "cluster/hints.hpp"
#include "core/text.hpp"
#include "runtime/cluster/node_programs.hpp"
#include "runtime/interrupt.hpp"

namespace leeway {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// The least time between two starts of an agent. It doubles while the agent ends soon.
constexpr auto kRestartAfter = std::chrono::seconds(1),
               kMostRestartAfter = std::chrono::seconds(30);
constexpr auto kListenLimit = std::chrono::seconds(10);
/// Longer than an agent needs to stop its workers.
constexpr auto kEndLimit = std::chrono::seconds(13);

/// One agent; a pipe carries its output.
struct Child {
  pid_t pid = -1;
  int pipe = -1;
  std::string line;  // the incomplete last line
  std::string name;  // the address on which it listens; empty before it is printed
  SteadyClock::time_point started = SteadyClock::now();
  SteadyClock::duration restart_after = kRestartAfter;
};

Child start(const std::vector<std::string>& arguments, const std::string& listen = "127.0.0.1:0") {
  std::vector<std::string> words = {"leeway", "node", "--listen", listen};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    // Only the parent receives Ctrl-C from the terminal, and stops its children. If the parent
    // dies, they are killed.
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || dup2(ends[1], STDERR_FILENO) < 0) _exit(126);
    execv("/proc/self/exe", argv.data());
    _exit(127);
  }
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return {};
  }
  return {pid, ends[0], {}, {}};
}

/// Reads the available output and prints complete lines. Returns false if the child has ended.
bool relay(Child& child, std::size_t number) {
  constexpr std::string_view kListening = "node: listening on ";
  char buffer[4096];
  const ssize_t count = read(child.pipe, buffer, sizeof buffer);
  if (count <= 0) return false;
  child.line.append(buffer, static_cast<std::size_t>(count));
  for (std::size_t end; (end = child.line.find('\n')) != std::string::npos;) {
    const std::string line = child.line.substr(0, end);
    child.line.erase(0, end + 1);
    if (line.starts_with(kListening)) child.name = line.substr(kListening.size());
    std::cerr << "node " << number << (line.starts_with("node: ") ? line.substr(4) : ": " + line)
              << std::endl;
  }
  return true;
}

/// "has ended", with a signal or an exit code if there is one.
std::string end_text(int status) {
  if (WIFSIGNALED(status))
    return concat("was killed by signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)),
                  ")");
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
    return concat("has ended with exit code ", WEXITSTATUS(status));
  return "has ended";
}

std::string nodes_of(const std::vector<Child>& children) {
  std::vector<std::string> names;
  for (const Child& child : children)
    if (child.pipe >= 0 && !child.name.empty()) names.push_back(child.name);
  return join(names, ",");
}

/// Waits up to 50 ms for output of the children, prints it, and returns the number of children that
/// still run.
std::size_t relay_all(std::vector<Child>& children) {
  std::vector<pollfd> polled;
  for (const Child& child : children) polled.push_back({child.pipe, POLLIN, 0});
  ::poll(polled.data(), polled.size(), 50);
  std::size_t running = 0;
  for (std::size_t i = 0; i < children.size(); ++i) {
    Child& child = children[i];
    if (child.pipe < 0) continue;
    ++running;
    if (polled[i].revents == 0 || relay(child, i + 1)) continue;
    close(std::exchange(child.pipe, -1));
    int status = 0;
    waitpid(child.pid, &status, 0);
    std::cerr << "node " << i + 1 << (child.name.empty() ? "" : concat(" (", child.name, ")"))
              << ' ' << end_text(status) << std::endl;
    --running;
  }
  return running;
}

/// Restarts agents that have ended, at their addresses.
void restart_ended(std::vector<Child>& children, const std::vector<std::string>& arguments) {
  for (Child& child : children) {
    const auto since = SteadyClock::now() - child.started;
    if (child.pipe >= 0 || child.name.empty() || since < child.restart_after) continue;
    Child next = start(arguments, child.name);
    next.name = child.name;
    next.restart_after =
        since < 2 * child.restart_after
            ? std::min<SteadyClock::duration>(2 * child.restart_after, kMostRestartAfter)
            : kRestartAfter;
    child = std::move(next);
  }
}

void signal_all(const std::vector<Child>& children, int signal) {
  for (const Child& child : children)
    if (child.pipe >= 0) kill(child.pid, signal);
}

}  // namespace

int run_up(unsigned count, const std::vector<std::string>& arguments, const std::string& tls,
           bool restart) {
  const InterruptGuard guard;
  std::vector<Child> children;
  for (unsigned i = 0; i < count; ++i) children.push_back(start(arguments));
  const auto listening = [&] {
    for (const Child& child : children)
      if (child.name.empty()) return false;
    return true;
  };
  const auto until = SteadyClock::now() + kListenLimit;
  while (!listening() && relay_all(children) == count && !guard.interrupted() &&
         SteadyClock::now() < until) {
  }
  const bool started = listening();
  if (started)
    std::cout << "In another terminal, run a scenario on these nodes with\n\n  --nodes "
              << nodes_of(children) << cluster::tls_flag(tls) << "\n\nCtrl-C stops them."
              << std::endl;
  else if (!guard.interrupted())
    std::cerr << "leeway: not all nodes started; see their output above\n";
  std::size_t running = count;
  while (started && !guard.interrupted() && running > 0) {
    const std::size_t before = std::exchange(running, relay_all(children));
    if (restart && !guard.interrupted()) {
      restart_ended(children, arguments);
      running = std::max<std::size_t>(running, 1);  // agents that wait for a restart count
      continue;
    }
    if (running == before || guard.interrupted()) continue;
    if (running > 0)
      std::cerr << "leeway: the other nodes continue: --nodes " << nodes_of(children)
                << cluster::tls_flag(tls) << std::endl;
    else
      std::cerr << "leeway: all nodes have ended" << std::endl;
  }
  signal_all(children, SIGINT);
  const auto end = SteadyClock::now() + kEndLimit;
  while (relay_all(children) > 0 && SteadyClock::now() < end) {
  }
  signal_all(children, SIGKILL);
  while (relay_all(children) > 0) {
  }
  return started && running > 0 ? 0 : 1;
}

}  // namespace leeway
