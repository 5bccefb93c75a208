#include "models/datasets/byte_images.hpp"

#include "core/check.hpp"

namespace leeway {

namespace {

/// Samples come in random order, which hardware prefetchers cannot predict, so their cache lines
/// are prefetched this many samples before use.
constexpr std::size_t kImagesAhead = 5;
constexpr std::size_t kCacheLineBytes = 64;

}  // namespace

ByteImages::ByteImages(Content content, PixelScaling scaling)
    : content_(std::move(content)), scaling_(scaling) {
  LW_CHECK(std::ssize(content_.pixels) == size() * content_.shape.count(), size(), content_.shape);
}

void ByteImages::gather(std::span<const std::int64_t> samples, float* x, std::int32_t* labels,
                        float*) const {
  const auto pixels = static_cast<std::size_t>(content_.shape.count());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::size_t row = row_of(samples[i]);
    if (i + kImagesAhead < samples.size()) prefetch(samples[i + kImagesAhead], pixels);
    scale_pixels({content_.pixels.data() + row * pixels, pixels}, scaling_, x);
    x += pixels;
    labels[i] = content_.labels[row];
  }
}

void ByteImages::gather_labels(std::span<const std::int64_t> samples, std::int32_t* labels,
                               float*) const {
  for (const std::int64_t sample : samples) *labels++ = content_.labels[row_of(sample)];
}

std::size_t ByteImages::row_of(std::int64_t sample) const {
  LW_CHECK(sample >= 0 && sample < size(), sample, size());
  return static_cast<std::size_t>(sample);
}

void ByteImages::prefetch(std::int64_t sample, std::size_t pixels) const {
  if (sample < 0 || sample >= size()) return;  // row_of() rejects it later
  const std::uint8_t* const begin =
      content_.pixels.data() + static_cast<std::size_t>(sample) * pixels;
  for (std::size_t offset = 0; offset < pixels; offset += kCacheLineBytes)
    __builtin_prefetch(begin + offset);
}

TrainTest make_byte_images(ByteImages::Content train, ByteImages::Content test, Preprocessing how) {
  auto preprocessing = std::make_shared<Preprocessing>(std::move(how));
  preprocessing->kind = Preprocessing::Kind::image;
  preprocessing->shape = train.shape;
  measure_pixels(train.pixels, *preprocessing);
  const PixelScaling scaling =
      pixel_scaling(preprocessing->pixel_mean, preprocessing->pixel_deviation);
  return {std::make_shared<ByteImages>(std::move(train), scaling),
          std::make_shared<ByteImages>(std::move(test), scaling), preprocessing};
}

}  // namespace leeway
