#pragma once
// WaitFollower: follows the events of a run, and divides each wait of a worker by its causes.
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>

namespace leeway::blame {

/// Why a worker waited.
struct Cause {
  enum class Kind : std::uint8_t {
    worker,        // a parked pull that this worker's push released
    stage_before,  // an activation
    stage_after,   // a gradient
    request,       // a pull or a lease on its way, and its shard's queue
    samples,       // a lease
    weights,       // the answer on its way, and its shard's queue
    other,         // not known without --trace: request, samples and weights
  };
  Kind kind = Kind::other;
  std::size_t worker = 0;  // with Kind::worker
  auto operator<=>(const Cause&) const = default;
};

std::string name_of(const Cause& cause);

/// A wait begins when a worker has ended an iteration, or with its first lease or pull, and ends
/// when it starts the next iteration. It is divided at the moments of the pull that was answered
/// last: when the lease came, when the pull was parked, and when it was answered.
class WaitFollower {
 public:
  /// Called for each part of a wait, in seconds of the run.
  using OnWait =
      std::function<void(std::size_t worker, const Cause& cause, double begin, double end)>;

  explicit WaitFollower(OnWait on_wait) : on_wait_(std::move(on_wait)) {}
  /// A line of events.jsonl. Throws nlohmann::json::exception if a field is missing.
  void handle(const nlohmann::json& event);

 private:
  /// The pulls of one iteration at all shards.
  struct Pulls {
    std::map<std::string, double> parked;    // by shard
    double answered = 0;                     // at the last shard that has answered
    std::optional<double> parked_at;         // at the same shard
    std::optional<std::size_t> released_by;  // at the same shard: the worker that has moved
  };
  struct WorkerState {
    bool is_starting = false;  // admitted; its first lease or pull follows
    std::optional<double> idle_since;
    double leased = 0;
  };

  /// A lease or pull of a worker: its first wait has begun.
  WorkerState& active(std::size_t worker, double now);
  void answered(const nlohmann::json& event, double now);
  void started(std::size_t worker, std::int64_t iteration, double now);

  OnWait on_wait_;
  std::map<std::pair<std::size_t, std::int64_t>, Pulls> pulls_;  // by worker and iteration
  std::map<std::string, std::size_t> mover_;  // by shard: the worker that releases the next pull
  std::map<std::size_t, WorkerState> workers_;
};

}  // namespace leeway::blame
