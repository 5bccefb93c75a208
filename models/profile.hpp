#pragma once
// Profile: the time of each layer and operation of a run, summed over all threads.
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kernels/executor.hpp"

namespace leeway {

class Profile {
 public:
  struct Row {
    std::string where;  // "layer 3 (conv2d)"
    std::string what;   // "forward"
    std::uint64_t calls = 0;
    double seconds = 0;
    double flops = 0;  // multiplications and additions
    double bytes = 0;  // read and written, for memory-bound operations; otherwise 0
  };

  void add(const std::string& where, const std::string& what, double seconds, double flops,
           double bytes);
  /// Rows in the order in which they were first added.
  std::vector<Row> rows() const;

  /// Measures the time from construction to end(), including the queue of a GPU.
  class Timer {
   public:
    Timer(Profile* profile, Executor& on);
    void end(const std::string& where, const char* what, double flops, double bytes = 0);

   private:
    Profile* profile_;
    Executor& on_;
    std::int64_t began_ns_ = 0;
  };

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::size_t> index_;
  std::vector<Row> rows_;
};

}  // namespace leeway
