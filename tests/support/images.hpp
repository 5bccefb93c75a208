#pragma once
// Images for tests: rows of features, read as images of some shape.
#include <string>

#include "models/datasets/load.hpp"

namespace leeway::test {

class Images final : public Dataset {
 public:
  /// Requires rows with one feature per pixel and channel of the shape.
  Images(std::shared_ptr<const Dataset> rows, const Shape& shape)
      : rows_(std::move(rows)), shape_(shape) {}
  std::int64_t size() const override { return rows_->size(); }
  Shape sample_shape() const override { return shape_; }
  int classes() const override { return rows_->classes(); }
  std::int64_t target_count() const override { return rows_->target_count(); }
  void gather(std::span<const std::int64_t> samples, float* x, std::int32_t* labels,
              float* targets) const override {
    rows_->gather(samples, x, labels, targets);
  }

 private:
  std::shared_ptr<const Dataset> rows_;
  Shape shape_;
};

/// Registers the rows of a source as images under a name and returns their source.
inline plan::DataSource images_of(const std::string& name, const plan::DataSource& rows,
                                  const Shape& shape) {
  register_data(name, [rows, shape](std::uint64_t seed) -> Expected<TrainTest> {
    auto data = load_data(rows, seed);
    if (!data) return data.error();
    return TrainTest{std::make_shared<Images>(data->train, shape),
                     std::make_shared<Images>(data->test, shape)};
  });
  return plan::CustomData{name};
}

}  // namespace leeway::test
