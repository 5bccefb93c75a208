#pragma once
// RandomSamples: labelled noise in memory, for benchmarks.
#include <algorithm>
#include <cstring>
#include <vector>

#include "bench/models.hpp"
#include "core/rng.hpp"
#include "models/datasets/dataset.hpp"

namespace leeway::bench {

class RandomSamples final : public Dataset {
 public:
  /// Samples are pixels in [0, 1], or tokens.
  RandomSamples(const Task& task, std::int64_t count)
      : sample_(task.input),
        classes_(task.classes),
        label_count_(task.labels),
        numbers_(static_cast<std::size_t>(count * sample_.count())),
        labels_(static_cast<std::size_t>(count * label_count_)) {
    Rng rng(1);
    const auto any_class = [&] { return rng.below(static_cast<std::uint64_t>(classes_)); };
    for (float& number : numbers_)
      number =
          static_cast<float>(label_count_ > 1 ? static_cast<double>(any_class()) : rng.uniform());
    for (auto& label : labels_) label = static_cast<std::int32_t>(any_class());
  }

  std::int64_t size() const override {
    return static_cast<std::int64_t>(labels_.size()) / label_count_;
  }
  Shape sample_shape() const override { return sample_; }
  int classes() const override { return classes_; }
  std::int64_t label_count() const override { return label_count_; }
  std::int64_t target_count() const override { return 0; }
  void gather(std::span<const std::int64_t> samples, float* x, std::int32_t* labels,
              float* targets) const override {
    const std::int64_t count = sample_.count();
    for (const std::int64_t sample : samples) {
      std::memcpy(x, this->x(sample), static_cast<std::size_t>(count) * sizeof(float));
      x += count;
    }
    gather_labels(samples, labels, targets);
  }
  void gather_labels(std::span<const std::int64_t> samples, std::int32_t* labels,
                     float*) const override {
    for (const std::int64_t sample : samples)
      labels = std::copy_n(this->labels(sample), label_count_, labels);
  }

  const float* x(std::int64_t sample) const { return numbers_.data() + sample * sample_.count(); }
  const std::int32_t* labels(std::int64_t sample) const {
    return labels_.data() + sample * label_count_;
  }

 private:
  Shape sample_;
  int classes_;
  std::int64_t label_count_;
  std::vector<float> numbers_;
  std::vector<std::int32_t> labels_;
};

}  // namespace leeway::bench
