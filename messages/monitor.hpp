#pragma once
// What the actors tell the monitor, and what it tells the scheduler: values of monitor.capnp, which
// documents each field.
#include <cstdint>
#include <string>
#include <vector>

#include "core/ids.hpp"
#include "core/time.hpp"

namespace leeway::msg {

struct WorkerReport {
  std::uint64_t iterations = 0;
  std::uint64_t samples = 0;
  std::uint64_t correct = 0;
  double loss_sum = 0;
  Duration compute;
  Duration wait;
  Clock clock;
  Epoch epoch;
  Duration wait_before, wait_after;
  std::uint64_t memory_bytes = 0;
};

struct ShardReport {
  struct Wait {
    WorkerId worker;
    WorkerId for_worker;
    Duration time;
    std::uint64_t count = 0;
  };
  Clock min_clock;
  Clock max_clock;
  std::int64_t max_clock_gap = 0;
  std::uint32_t parked_now = 0;
  std::uint64_t parked_pulls = 0;
  std::uint64_t pulls = 0;
  std::uint64_t pushes = 0;
  std::uint64_t repeats = 0;
  std::uint64_t refused = 0;
  std::uint64_t malformed = 0;
  std::vector<std::uint64_t> lags;
  std::vector<Wait> waits;
};

struct SchedulerReport {
  Epoch epoch;
  std::uint64_t samples_trained = 0;
  std::uint64_t partial_pushes = 0;
  std::uint32_t live_workers = 0;
  std::uint32_t staleness = 0;
};

struct Evicted {
  WorkerId worker;
  std::string reason;
  std::uint64_t returned_samples = 0;
  bool partial = false;
};

struct RunEnded {
  enum class Reason : std::uint8_t { finished, interrupted, target_reached, failed };
  Reason reason = Reason::finished;
  std::string text;
  std::uint64_t samples_trained = 0;
  std::uint64_t partial_pushes = 0;
  std::uint64_t dropped_pushes = 0;
};

struct Evaluated {
  std::uint64_t snapshot = 0;
  double loss = 0;
  double accuracy = 0;
};

struct Interrupt {};

}  // namespace leeway::msg
