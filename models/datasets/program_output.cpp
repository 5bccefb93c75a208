#include "models/datasets/program_output.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "core/text.hpp"
#include "models/datasets/file.hpp"

extern char** environ;

namespace leeway {

namespace {

/// The program's standard streams: empty input, output to a pipe, errors discarded.
class Streams {
 public:
  explicit Streams(int pipe) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, pipe, STDOUT_FILENO);
  }
  ~Streams() { posix_spawn_file_actions_destroy(&actions_); }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

std::vector<std::byte> read_to_end(int file) {
  std::vector<std::byte> bytes;
  std::size_t used = 0;
  for (;;) {
    bytes.resize(used + (std::size_t{1} << 16));
    const ::ssize_t got = ::read(file, bytes.data() + used, bytes.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    used += static_cast<std::size_t>(got);
  }
  bytes.resize(used);
  return bytes;
}

}  // namespace

Expected<std::vector<std::byte>> program_output(const std::vector<std::string>& command,
                                                std::string_view advice) {
  const auto failed = [&](const auto&... reason) {
    return Error{concat('"', command.front(), "\" ", reason..., "; ", advice)};
  };
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failed("cannot be run: ", system_reason());
  const Descriptor out(ends[0]);
  pid_t child = 0;
  {
    const Descriptor in(ends[1]);
    std::vector<char*> words;
    for (const auto& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    const Streams streams(in.get());
    errno = ::posix_spawnp(&child, words[0], streams.get(), nullptr, words.data(), environ);
    if (errno != 0) return failed("cannot be run: ", system_reason());
  }
  auto bytes = read_to_end(out.get());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return failed(WIFEXITED(status) ? concat("failed with exit code ", WEXITSTATUS(status))
                                    : concat("was killed by signal ", WTERMSIG(status)));
  if (bytes.empty()) return failed("printed nothing");
  return bytes;
}

}  // namespace leeway
