#pragma once
// MicroBatchesInFlight: a stage's micro-batches between forward and backward, and the memory that
// the stage holds.
#include <cstdint>
#include <map>
#include <memory>

#include "actors/stage/stage_position.hpp"
#include "actors/stage/weight_versions.hpp"

namespace leeway {

class MicroBatchesInFlight {
 public:
  void add(const MicroBatchKey& key, std::shared_ptr<MicroBatch> micro_batch) {
    in_flight_[key] = std::move(micro_batch);
  }
  bool has(const MicroBatchKey& key) const { return in_flight_.contains(key); }
  const std::shared_ptr<MicroBatch>& at(const MicroBatchKey& key) const {
    return in_flight_.at(key);
  }
  void erase(const MicroBatchKey& key) { in_flight_.erase(key); }
  std::size_t size() const { return in_flight_.size(); }
  /// Drops all micro-batches. `engine` keeps their weights as long as a work can read them.
  void hand_over(ComputeEngine& engine);

  /// Bytes that the stage held at the worst moment of its latest operation, which was on
  /// micro-batch `latest`. Weights that several micro-batches read count once.
  std::int64_t held_bytes(const MicroBatchKey& latest, const WeightVersions& weights) const;

 private:
  std::map<MicroBatchKey, std::shared_ptr<MicroBatch>> in_flight_;
};

}  // namespace leeway
