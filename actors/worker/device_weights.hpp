#pragma once
// DeviceWeights: one version of a participant's weights, on the device that reads them.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "actors/job.hpp"
#include "actors/worker/parameter_client.hpp"

namespace leeway {

class DeviceWeights {
 public:
  DeviceWeights(std::shared_ptr<const Job> job, PulledWeights pulled);
  /// Requires that no work reads them.
  ~DeviceWeights();
  DeviceWeights(const DeviceWeights&) = delete;
  DeviceWeights& operator=(const DeviceWeights&) = delete;

  /// Fetches them on the first call.
  void bind(const std::shared_ptr<Executor>& on);
  std::span<const ParameterView> views() const { return slices_.views(); }
  /// One number per parameter, which identifies its values.
  const std::vector<std::uint64_t>& keys() const { return keys_; }
  /// One per block.
  const std::vector<Version>& versions() const { return versions_; }
  /// Drops the reference to a block that no later work reads, so that its next update can run in
  /// place.
  void release(BlockId block);
  /// The bytes held now.
  std::int64_t bytes() const;

 private:
  std::shared_ptr<const Job> job_;
  std::vector<Blob> blobs_;
  std::vector<Version> versions_;
  std::vector<std::uint64_t> keys_;
  ParameterSlices<const float> slices_;
  std::shared_ptr<Executor> on_;  // null: not fetched yet
};

}  // namespace leeway
