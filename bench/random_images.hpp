#pragma once
// RandomImages: labelled noise in memory, for benchmarks that need data of a shape and no meaning.
#include <cstring>
#include <vector>

#include "core/rng.hpp"
#include "models/datasets/dataset.hpp"

namespace leeway::bench {

class RandomImages final : public Dataset {
 public:
  RandomImages(const Shape& sample, std::int64_t count)
      : sample_(sample),
        pixels_(static_cast<std::size_t>(count * sample.count())),
        labels_(static_cast<std::size_t>(count)) {
    Rng rng(1);
    for (float& pixel : pixels_) pixel = static_cast<float>(rng.uniform());
    for (auto& label : labels_) label = static_cast<std::int32_t>(rng.below(10));
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  Shape sample_shape() const override { return sample_; }
  int classes() const override { return 10; }
  std::int64_t target_count() const override { return 0; }
  void gather(std::span<const std::int64_t> samples, float* x, std::int32_t* labels,
              float*) const override {
    const std::int64_t count = sample_.count();
    for (const std::int64_t sample : samples) {
      std::memcpy(x, this->x(sample), static_cast<std::size_t>(count) * sizeof(float));
      x += count;
      *labels++ = labels_[static_cast<std::size_t>(sample)];
    }
  }

  const float* x(std::int64_t sample) const { return pixels_.data() + sample * sample_.count(); }
  const std::int32_t* labels(std::int64_t sample) const { return labels_.data() + sample; }

 private:
  Shape sample_;
  std::vector<float> pixels_;
  std::vector<std::int32_t> labels_;
};

}  // namespace leeway::bench
