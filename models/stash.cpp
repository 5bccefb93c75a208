#include "models/stash.hpp"

#include <algorithm>
#include <type_traits>

#include "core/check.hpp"

namespace leeway {
namespace {

bool is_host(Device device) {
  return device.kind != Device::Kind::cuda;
}

}  // namespace

std::int64_t Stash::bytes() const {
  std::size_t bytes = 0;
  for (const Blob* blob : {&input, &samples, &moved, &sample_keys, &copied_labels,
                           &labels_as_numbers, &loss, &output, &output_gradient})
    bytes += blob->size();
  for (const Blob& blob : pending) bytes += blob.size();
  if (activations) {
    for (const Blob& blob : activations->outputs) bytes += blob.size();
    for (const Blob& blob : activations->kept) bytes += blob.size();
    bytes += activations->loss_gradient.size();
  }
  return static_cast<std::int64_t>(bytes);
}

void Stash::read_input(const Form& form, Executor& on, const ChunkInput& given) {
  size = given.batch.size;
  const Shape& shape = form.model.output_of(form.chunk.first - 1);
  const std::int64_t floats = shape.count();
  if (given.input)
    LW_CHECK(given.input.size() == static_cast<std::size_t>(size * floats) * sizeof(float),
             given.input.size(), size, floats);
  if (form.chunk.first > 0) {
    LW_CHECK(given.input, form.chunk.first);
    input = on.fetch(given.input);
    x = input.as_floats();
  } else {
    input = given.input;
    x = given.input ? given.input.as_floats() : given.batch.x;
    if (!is_host(on.device()) && size > 0) {
      if (!samples) samples = on.floats(form.max_batch * floats);
      on.upload(samples.mutable_data(), x, static_cast<std::size_t>(size * floats) * sizeof(float));
      x = samples.as_floats();
    }
    if (moves_samples(shape)) {
      if (!moved) moved = on.floats(form.max_batch * floats);
      on.to_channels_last(moved.mutable_floats(), x, size, shape[0], shape[1] * shape[2]);
      x = moved.as_floats();
      if (is_host(on.device())) input.reset();  // no layer reads it again
    }
  }
  read_sample_keys(form, on, given.batch.sample_keys);
}

void Stash::read_sample_keys(const Form& form, Executor& on, std::span<const std::uint64_t> given) {
  LW_CHECK(!form.training || given.empty() || static_cast<std::int64_t>(given.size()) == size,
           given.size(), size);
  keys = nullptr;
  if (given.empty()) return;
  if (!sample_keys)
    sample_keys = on.allocate(static_cast<std::size_t>(form.max_batch) * sizeof(std::uint64_t));
  on.upload(sample_keys.mutable_data(), given.data(), given.size_bytes());
  keys = reinterpret_cast<const std::uint64_t*>(sample_keys.data());
}

void Stash::read_labels(const Form& form, Executor& on, const Batch& given) {
  const Model& model = form.model;
  labels = given.labels;
  targets = given.targets;
  const bool by_class = model.loss() == plan::Loss::softmax_cross_entropy;
  const bool two_classes = model.loss() == plan::Loss::sigmoid_cross_entropy;
  const bool has_labels = by_class ? labels != nullptr : targets || (two_classes && labels);
  LW_CHECK(has_labels || size == 0, size, by_class);
  const std::int64_t count = by_class ? model.labels() : model.output().count();
  const auto bytes = [&](std::int64_t of) {
    return static_cast<std::size_t>(of * count) * sizeof(float);
  };
  static_assert(sizeof(float) == sizeof(std::int32_t));
  const auto upload = [&](const auto*& from) {
    if (!copied_labels) copied_labels = on.allocate(bytes(form.max_batch));
    on.upload(copied_labels.mutable_data(), from, bytes(size));
    from = reinterpret_cast<std::decay_t<decltype(from)>>(copied_labels.data());
  };
  if (size == 0) return;
  if (!by_class && !targets) {
    // One output decides between two classes: its target is the label as a number.
    on.wait_mark();  // an earlier forward may still read the numbers
    if (!labels_as_numbers) labels_as_numbers = on.allocate_host(bytes(form.max_batch));
    std::copy_n(labels, size, labels_as_numbers.mutable_floats());
    targets = labels_as_numbers.as_floats();
  }
  // With recompute, backward reads them again after the caller's memory is gone.
  if (is_host(on.device()) && !form.recompute) return;
  if (by_class)
    upload(labels);
  else
    upload(targets);
}

}  // namespace leeway
