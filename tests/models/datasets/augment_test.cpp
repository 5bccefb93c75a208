#include "models/datasets/augment.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <map>
#include <numeric>

#include "core/rng.hpp"
#include "models/datasets/idx.hpp"

namespace leeway {
namespace {

using Catch::Matchers::Contains;
using Image = std::vector<float>;

constexpr float kFill = -7;

/// An image with a different value in each pixel.
Image numbered(const Shape& shape) {
  Image image(static_cast<std::size_t>(shape.count()));
  std::iota(image.begin(), image.end(), 1.0f);
  return image;
}

Image view(const Image& image, const Shape& shape, const plan::Augment& how, std::uint64_t key) {
  Image out = image;
  augment(out.data(), how, shape, kFill, {&key, 1});
  return out;
}

/// The view by its definition, pixel by pixel.
Image expected(const Image& image, const Shape& shape, bool flip, std::int64_t down,
               std::int64_t right) {
  Image out;
  for (std::int64_t c = 0; c < shape[0]; ++c)
    for (std::int64_t y = 0; y < shape[1]; ++y)
      for (std::int64_t x = 0; x < shape[2]; ++x) {
        const std::int64_t row = y - down;
        const std::int64_t column = flip ? shape[2] - 1 - (x - right) : x - right;
        const bool inside = row >= 0 && row < shape[1] && column >= 0 && column < shape[2];
        const auto at = static_cast<std::size_t>((c * shape[1] + row) * shape[2] + column);
        out.push_back(inside ? image[at] : kFill);
      }
  return out;
}

/// Counts each view of an image over many keys; fails if an unexpected view occurs.
std::map<Image, int> seen_views(const Shape& shape, const plan::Augment& how, int keys) {
  const Image image = numbered(shape);
  std::map<Image, int> seen;
  const std::int64_t most = how.shift;
  for (int flip = 0; flip <= (how.flip ? 1 : 0); ++flip)
    for (std::int64_t down = -most; down <= most; ++down)
      for (std::int64_t right = -most; right <= most; ++right)
        seen[expected(image, shape, flip == 1, down, right)] = 0;
  const std::size_t views = seen.size();
  for (int key = 0; key < keys; ++key) ++seen[view(image, shape, how, mix64(key))];
  CHECK(seen.size() == views);
  return seen;
}

TEST_CASE("flips and shifts give every possible view of an image, and no other") {
  for (const Shape& shape : {Shape{1, 4, 5}, Shape{2, 5, 4}, Shape{3, 3, 3}})
    for (const plan::Augment how : {plan::Augment{true, 0}, plan::Augment{false, 1},
                                    plan::Augment{true, 1}, plan::Augment{true, 2}}) {
      const int views = (how.flip ? 2 : 1) * static_cast<int>((2 * how.shift + 1)) *
                        static_cast<int>(2 * how.shift + 1);
      INFO(shape << ", flip " << how.flip << ", shift " << how.shift);
      const auto seen = seen_views(shape, how, 200 * views);
      CHECK(seen.size() == static_cast<std::size_t>(views));
      // Each comes up 200 times on average, with a deviation of about 14.
      for (const auto& [image, count] : seen) CHECK(std::abs(count - 200) < 5 * 15);
    }
}

TEST_CASE("a view depends only on the sample's key") {
  const Shape shape{2, 6, 5};
  const plan::Augment how{true, 2};
  const Image image = numbered(shape);
  std::vector<std::uint64_t> keys(50);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = mix64(i);
  Image batch;
  for (std::size_t i = 0; i < keys.size(); ++i)
    batch.insert(batch.end(), image.begin(), image.end());
  augment(batch.data(), how, shape, kFill, keys);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto begin = batch.begin() + static_cast<std::ptrdiff_t>(i * image.size());
    CHECK(Image(begin, begin + std::ssize(image)) == view(image, shape, how, keys[i]));
  }
}

TEST_CASE("without augmentation, samples of any shape stay as they are") {
  Image image = numbered({6});
  const std::uint64_t key = 3;
  augment(image.data(), {}, {6}, kFill, {&key, 1});
  CHECK(image == numbered({6}));
}

TEST_CASE("samples that cannot be augmented are refused with an allowed setting") {
  CHECK(check_augment({}, {784}));
  CHECK(check_augment({true, 2}, {3, 32, 32}));
  CHECK(check_augment({false, 4}, {1, 5, 9}));
  CHECK(check_augment({true, 0}, {784}).error().text ==
        "augment: needs images of channels x height x width, but these samples are 784; give "
        "--augment none");
  CHECK_THAT(check_augment({false, 1}, {28, 28}).error().text, Contains("28x28; give"));
  CHECK(check_augment({false, 5}, {1, 9, 5}).error().text ==
        "augment: shift=5 moves samples of 1x9x5 out of sight; give --augment shift=4 or less");
  Image image = numbered({4});
  const std::uint64_t key = 3;
  CHECK_THROWS_AS(augment(image.data(), {true, 0}, {4}, kFill, {&key, 1}), CheckFailed);
}

TEST_CASE("the background of IDX images is the value of their black pixels") {
  const IdxArray images{"images", {2, 1, 2}, {0, 200, 100, 0}};
  const IdxArray labels{"labels", {2}, {0, 1}};
  const auto data = make_idx({images, labels, images, labels});
  REQUIRE(data);
  const std::int64_t samples[] = {0, 1};
  float x[4];
  std::int32_t y[2];
  data->test->gather(samples, x, y, nullptr);
  CHECK(data->test->background() == x[0]);
  CHECK(data->train->background() == x[3]);
  CHECK(x[0] < x[2]);
}

}  // namespace
}  // namespace leeway
