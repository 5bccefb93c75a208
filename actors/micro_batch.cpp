#include "actors/micro_batch.hpp"

#include "core/check.hpp"
#include "core/rng.hpp"
#include "models/datasets/augment.hpp"

namespace leeway {

template <class T>
T* GatheredBatch::array(Blob& blob, std::int64_t of_each) {
  if (!blob) blob = on_->allocate_host(static_cast<std::size_t>(samples_ * of_each) * sizeof(T));
  return reinterpret_cast<T*>(blob.mutable_data());
}

Batch GatheredBatch::gather_keys(const Job& job, Epoch epoch,
                                 std::span<const std::int64_t> samples) {
  LW_CHECK(static_cast<std::int64_t>(samples.size()) <= samples_, samples.size(), samples_);
  auto* const keys = array<std::uint64_t>(keys_, 1);
  const auto of_epoch = mix64(job.plan.seed ^ mix64(static_cast<std::uint64_t>(epoch.value())));
  for (std::size_t i = 0; i < samples.size(); ++i)
    keys[i] = mix64(of_epoch ^ static_cast<std::uint64_t>(samples[i]));
  Batch batch;
  batch.size = static_cast<std::int64_t>(samples.size());
  batch.sample_keys = {keys, samples.size()};
  return batch;
}

Batch GatheredBatch::gather(const Job& job, Epoch epoch, std::span<const std::int64_t> samples) {
  const Dataset& data = *job.data.train;
  float* const x = array<float>(x_, job.model->input().count());
  auto* const labels =
      data.classes() > 0 ? array<std::int32_t>(labels_, data.label_count()) : nullptr;
  float* const targets =
      data.target_count() > 0 ? array<float>(targets_, data.target_count()) : nullptr;
  data.gather(samples, x, labels, targets);
  Batch batch = gather_keys(job, epoch, samples);
  augment(x, job.plan.augment, data.sample_shape(), data.background(), batch.sample_keys);
  batch.x = x;
  batch.labels = labels;
  batch.targets = targets;
  return batch;
}

}  // namespace leeway
