#pragma once
// Child: another process of the same benchmark, which prints numbers to its standard output.
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace leeway::bench {

[[noreturn]] inline void fail(const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, why.c_str());
  std::exit(1);
}

/// The destructor kills the process; it also ends with this process.
class Child {
 public:
  /// Starts this program again with these arguments.
  explicit Child(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), program_invocation_short_name);
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    int ends[2];
    if (pipe(ends) != 0) fail("cannot create a pipe");
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(ends[1], 1);
      close(ends[0]);
      close(ends[1]);
      execv("/proc/self/exe", argv.data());
      _exit(127);
    }
    close(ends[1]);
    out_ = fdopen(ends[0], "r");
  }
  ~Child() {
    signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
    std::fclose(out_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Waits for the next number that the process prints.
  double number() {
    double value = 0;
    if (std::fscanf(out_, "%lf", &value) != 1) fail("a child process ended early");
    return value;
  }
  std::uint16_t port() { return static_cast<std::uint16_t>(number()); }
  void signal(int number) const { ::kill(pid_, number); }

 private:
  pid_t pid_ = -1;
  FILE* out_ = nullptr;
};

}  // namespace leeway::bench
