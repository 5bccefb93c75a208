#include "actors/stage/micro_batches_in_flight.hpp"

#include <set>

namespace leeway {

void MicroBatchesInFlight::hand_over(ComputeEngine& engine) {
  for (const auto& [key, micro_batch] : in_flight_) engine.keep(micro_batch->weights);
  in_flight_.clear();
}

std::int64_t MicroBatchesInFlight::held_bytes(const MicroBatchKey& latest,
                                              const WeightVersions& weights) const {
  const MicroBatch& of_latest = *in_flight_.at(latest);
  std::int64_t bytes = of_latest.held;
  std::set<const DeviceWeights*> counted{of_latest.weights.get()};
  const auto count = [&](const std::shared_ptr<DeviceWeights>& version) {
    if (counted.insert(version.get()).second) bytes += version->bytes();
  };
  weights.for_each(count);
  for (const auto& [key, micro_batch] : in_flight_) {
    count(micro_batch->weights);
    if (micro_batch.get() != &of_latest) bytes += micro_batch->bytes();
  }
  return bytes;
}

}  // namespace leeway
