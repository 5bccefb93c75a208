#pragma once
// FirstSamples: the first samples of a data set, such as a prefix of the test set for a quick
// evaluation.
#include <algorithm>
#include <memory>
#include <utility>

#include "models/datasets/dataset.hpp"

namespace leeway {

class FirstSamples final : public Dataset {
 public:
  /// The first `size` samples, or all if there are fewer.
  FirstSamples(std::shared_ptr<const Dataset> all, std::int64_t size)
      : all_(std::move(all)), size_(std::min(size, all_->size())) {}
  std::int64_t size() const override { return size_; }
  Shape sample_shape() const override { return all_->sample_shape(); }
  int classes() const override { return all_->classes(); }
  std::int64_t label_count() const override { return all_->label_count(); }
  std::int64_t target_count() const override { return all_->target_count(); }
  float background() const override { return all_->background(); }
  void gather(std::span<const std::int64_t> samples, float* x, std::int32_t* labels,
              float* targets) const override {
    all_->gather(samples, x, labels, targets);
  }
  void gather_labels(std::span<const std::int64_t> samples, std::int32_t* labels,
                     float* targets) const override {
    all_->gather_labels(samples, labels, targets);
  }

 private:
  std::shared_ptr<const Dataset> all_;
  std::int64_t size_;
};

}  // namespace leeway
