#pragma once
// Children: child processes whose output and ends are reported. Ctrl-C in the terminal reaches only
// this process; if it dies, its children are killed.
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace leeway {

class Children {
 public:
  enum class Stream { out, error };
  struct Command {
    std::string program;                   // path, or a name to find in PATH
    std::vector<std::string> arguments;    // from argv[1]
    std::vector<std::string> environment;  // "NAME=value", in addition to that of this process
    bool relays_out = true;                // otherwise its standard output is that of this process
  };
  struct Events {
    std::function<void(std::size_t child, Stream stream, const std::string& line)> on_line;
    /// `status`: as of waitpid().
    std::function<void(std::size_t child, int status)> on_end;
  };

  explicit Children(Events events) : events_(std::move(events)) {}
  /// Kills those that run.
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  /// Starts child number `child`, which does not run; one more than before, or one that has ended.
  /// The thread that calls this outlives the child.
  void start(std::size_t child, const Command& command);
  bool runs(std::size_t child) const {
    return child < children_.size() && children_[child].pid > 0;
  }
  std::size_t running() const;
  /// Reports what the children have written, and which have ended. Waits up to 50 ms for something
  /// to report.
  void poll();
  void signal(int signal) const;
  /// Interrupts the children, kills them after `limit`, and reports their ends.
  void stop(std::chrono::steady_clock::duration limit);

 private:
  struct Output {
    Stream stream = Stream::out;
    int pipe = -1;
    std::string line;  // the incomplete last line
  };
  struct Child {
    pid_t pid = -1;  // -1: does not run
    std::vector<Output> outputs;
  };

  void read(std::size_t child, Output& output);
  void close(std::size_t child);

  const Events events_;
  std::vector<Child> children_;
};

/// The least time between two starts of a child: a second, and twice as long after each start of a
/// child that ends soon, up to 30 s.
class RestartPause {
 public:
  using Clock = std::chrono::steady_clock;
  /// The child starts now.
  void started() { started_at_ = Clock::now(); }
  bool is_over() const { return Clock::now() - started_at_ >= length_; }
  /// The child is about to be started again.
  void adapt();
  Clock::duration length() const { return length_; }

 private:
  static constexpr Clock::duration kFirst = std::chrono::seconds(1);
  Clock::time_point started_at_ = Clock::now();
  Clock::duration length_ = kFirst;
};

/// "has ended", with a signal or an exit code if there is one.
std::string end_text(int status);

}  // namespace leeway
