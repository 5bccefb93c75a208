#include "actors/worker/device_weights.hpp"

#include <utility>

#include "core/rng.hpp"

namespace leeway {

DeviceWeights::DeviceWeights(std::shared_ptr<const Job> job, PulledWeights pulled)
    : job_(std::move(job)),
      blobs_(std::move(pulled.blobs)),
      versions_(std::move(pulled.versions)),
      keys_(job_->model->parameters().size()),
      slices_(*job_->model, *job_->layout, std::vector<const float*>(blobs_.size(), nullptr)) {
  for (const auto& block : job_->layout->blocks())
    for (const auto& slice : block.slices) {
      auto& key = keys_[static_cast<std::size_t>(slice.parameter)];
      key = mix64(key ^ static_cast<std::uint64_t>(versions_[block.id.value()].value()));
    }
}

DeviceWeights::~DeviceWeights() {
  for (const auto& block : job_->layout->blocks()) release(block.id);
}

void DeviceWeights::bind(const std::shared_ptr<Executor>& on) {
  if (on_) return;
  on_ = on;
  for (const auto& block : job_->layout->blocks()) {
    auto& blob = blobs_[block.id.value()];
    if (!blob) continue;
    blob = on_->fetch(blob);
    slices_.set_block(*job_->layout, block.id, blob.as_floats());
  }
}

void DeviceWeights::release(BlockId block) {
  auto& blob = blobs_[block.value()];
  if (!blob) return;
  if (on_) on_->end_read(blob);
  blob.reset();
}

std::int64_t DeviceWeights::bytes() const {
  std::size_t bytes = 0;
  for (const Blob& blob : blobs_) bytes += blob.size();
  return static_cast<std::int64_t>(bytes);
}

}  // namespace leeway
