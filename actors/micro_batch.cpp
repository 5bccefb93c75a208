#include "actors/micro_batch.hpp"

#include "core/check.hpp"
#include "core/rng.hpp"
#include "models/datasets/augment.hpp"

namespace leeway {

namespace {

/// Writes samples with their augmentation, and labels or targets.
void read(const Job& job, std::span<const std::int64_t> samples,
          std::span<const std::uint64_t> keys, float* x, std::int32_t* labels, float* targets) {
  const Dataset& data = *job.data.train;
  data.gather(samples, x, labels, targets);
  augment(x, job.plan.augment, data.sample_shape(), data.background(), keys);
}

}  // namespace

template <class T>
T* GatheredBatch::array(Blob& blob, std::int64_t of_each) {
  if (!blob) blob = on_->allocate_host(static_cast<std::size_t>(samples_ * of_each) * sizeof(T));
  return reinterpret_cast<T*>(blob.mutable_data());
}

std::int32_t* GatheredBatch::labels(const Job& job) {
  const Dataset& data = *job.data.train;
  return data.classes() > 0 ? array<std::int32_t>(labels_, data.label_count()) : nullptr;
}

float* GatheredBatch::targets(const Job& job) {
  const Dataset& data = *job.data.train;
  return data.target_count() > 0 ? array<float>(targets_, data.target_count()) : nullptr;
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

Batch GatheredBatch::gather_labels(const Job& job, Epoch epoch,
                                   std::span<const std::int64_t> samples) {
  Batch batch = gather_keys(job, epoch, samples);
  auto* const classes = labels(job);
  auto* const numbers = targets(job);
  job.data.train->gather_labels(samples, classes, numbers);
  batch.labels = classes;
  batch.targets = numbers;
  return batch;
}

Batch GatheredBatch::gather(const Job& job, Epoch epoch, std::span<const std::int64_t> samples) {
  Batch batch = gather_keys(job, epoch, samples);
  auto* const x = array<float>(x_, job.model->input().count());
  auto* const classes = labels(job);
  auto* const numbers = targets(job);
  read(job, samples, batch.sample_keys, x, classes, numbers);
  batch.x = x;
  batch.labels = classes;
  batch.targets = numbers;
  return batch;
}

Blob gather_samples(const Job& job, Executor& on, std::span<const std::int64_t> samples,
                    std::span<const std::uint64_t> keys) {
  const Dataset& data = *job.data.train;
  const auto floats = [&](std::int64_t of_each) {
    return on.allocate_host(samples.size() * static_cast<std::size_t>(of_each) * sizeof(float));
  };
  Blob x = floats(job.model->input().count());
  // The data set also writes these, but no caller reads them.
  static_assert(sizeof(std::int32_t) == sizeof(float));
  Blob labels = data.classes() > 0 ? floats(data.label_count()) : Blob();
  Blob targets = data.target_count() > 0 ? floats(data.target_count()) : Blob();
  read(job, samples, keys, x.mutable_floats(),
       reinterpret_cast<std::int32_t*>(labels.mutable_data()), targets.mutable_floats());
  return x;
}

std::int64_t gathered_bytes(const Model& model, bool last, std::int64_t samples) {
  const auto keys = static_cast<std::int64_t>(sizeof(std::uint64_t));
  const bool by_class = model.loss() == plan::Loss::softmax_cross_entropy;
  const std::int64_t each = by_class ? model.labels() : model.output().count();
  return samples * (keys + (last ? each * static_cast<std::int64_t>(sizeof(float)) : 0));
}

}  // namespace leeway
