#pragma once
// Table: a data set of feature vectors held in memory; what CSV files and generators produce.
#include <vector>

#include "models/datasets/dataset.hpp"

namespace leeway {

class Table final : public Dataset {
 public:
  /// Row-major samples of F = `features` numbers, with labels in 0..classes-1 and no targets, or
  /// with one target each and classes = 0. Requires sizes that agree.
  struct Content {
    std::int64_t features = 0;
    std::vector<float> x;  // (samples, F)
    int classes = 0;
    std::vector<std::int32_t> labels;  // (samples), or empty
    std::vector<float> targets;        // (samples), or empty
  };
  explicit Table(Content content);

  std::int64_t size() const override { return size_; }
  Shape sample_shape() const override { return {content_.features}; }
  int classes() const override { return content_.classes; }
  std::int64_t target_count() const override { return content_.classes > 0 ? 0 : 1; }
  void gather(std::span<const std::int64_t> samples, float* x, std::int32_t* labels,
              float* targets) const override;
  void gather_labels(std::span<const std::int64_t> samples, std::int32_t* labels,
                     float* targets) const override;

 private:
  Content content_;
  std::int64_t size_ = 0;
};

}  // namespace leeway
