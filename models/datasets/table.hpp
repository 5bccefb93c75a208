#pragma once
// Table: feature vectors in memory, the data set of CSV files and generators.
#include <vector>

#include "models/datasets/dataset.hpp"

namespace leeway {

class Table final : public Dataset {
 public:
  /// Row-major samples of F = `features` numbers. Either each has a label in 0..classes-1, or
  /// classes = 0 and each has one target. Requires sizes that agree.
  struct Content {
    std::int64_t features = 0;
    std::vector<float> x;  // (samples, F)
    int classes = 0;
    std::vector<std::int32_t> labels;  // (samples), or empty
    std::vector<float> targets;        // (samples), or empty
    Shape shape = {};                  // of a sample, with F elements; scalar: (F)
  };
  explicit Table(Content content);

  std::int64_t size() const override { return size_; }
  Shape sample_shape() const override { return content_.shape; }
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
