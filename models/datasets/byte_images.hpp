#pragma once
// ByteImages: images whose pixels are bytes in memory, and labels.
#include <cstdint>
#include <vector>

#include "models/datasets/dataset.hpp"
#include "models/datasets/preprocessing.hpp"

namespace leeway {

class ByteImages final : public Dataset {
 public:
  struct Content {
    Shape shape;                       // of one image: (C, H, W)
    std::vector<std::uint8_t> pixels;  // (N, C, H, W)
    std::vector<std::int32_t> labels;  // (N), each below `classes`
    int classes = 0;
  };
  ByteImages(Content content, PixelScaling scaling);

  std::int64_t size() const override { return std::ssize(content_.labels); }
  Shape sample_shape() const override { return content_.shape; }
  int classes() const override { return content_.classes; }
  std::int64_t target_count() const override { return 0; }
  float background() const override { return scaling_.shift; }
  void gather(std::span<const std::int64_t> samples, float* x, std::int32_t* labels,
              float* targets) const override;
  void gather_labels(std::span<const std::int64_t> samples, std::int32_t* labels,
                     float* targets) const override;

 private:
  std::size_t row_of(std::int64_t sample) const;
  void prefetch(std::int64_t sample, std::size_t pixels) const;

  Content content_;
  PixelScaling scaling_;
};

/// Both sets with pixels scaled by the mean and deviation of all training pixels, and their
/// preprocessing. `how` has the names of the classes and the split.
TrainTest make_byte_images(ByteImages::Content train, ByteImages::Content test, Preprocessing how);

}  // namespace leeway
