#include "models/datasets/augment.hpp"

#include <algorithm>

#include "core/check.hpp"
#include "core/rng.hpp"
#include "core/text.hpp"

namespace leeway {

namespace {

/// Separates views from other random draws keyed by the same sample.
constexpr std::uint64_t kViewStream = 0x6175676d656e74;

/// Rows of one channel.
struct Plane {
  float* pixels;
  std::int64_t height;
  std::int64_t width;

  float* row(std::int64_t y) const { return pixels + y * width; }
};

void flip(const Plane& plane) {
  for (std::int64_t y = 0; y < plane.height; ++y)
    std::reverse(plane.row(y), plane.row(y) + plane.width);
}

/// `to` = `from` moved right by `right`; the two may be the same row.
void shift_row(float* to, const float* from, std::int64_t width, std::int64_t right, float fill) {
  if (right >= 0) {
    std::copy_backward(from, from + width - right, to + width);
    std::fill_n(to, right, fill);
  } else {
    std::copy(from - right, from + width, to);
    std::fill_n(to + width + right, -right, fill);
  }
}

/// Visits the rows in an order in which each is read before it is overwritten.
void shift(const Plane& plane, std::int64_t down, std::int64_t right, float fill) {
  for (std::int64_t i = 0; i < plane.height; ++i) {
    const std::int64_t y = down > 0 ? plane.height - 1 - i : i;
    const std::int64_t from = y - down;
    if (from < 0 || from >= plane.height) {
      std::fill_n(plane.row(y), plane.width, fill);
    } else {
      shift_row(plane.row(y), plane.row(from), plane.width, right, fill);
    }
  }
}

}  // namespace

Status check_augment(const plan::Augment& augment, const Shape& sample) {
  if (augment == plan::Augment{}) return {};
  if (sample.rank() != 3)
    return Error{
        concat("augment: needs images of channels x height x width, but these samples are ", sample,
               "; give --augment none")};
  const std::int64_t side = std::min(sample[1], sample[2]);
  if (augment.shift >= side)
    return Error{concat("augment: shift=", augment.shift, " moves samples of ", sample,
                        " out of sight; give --augment shift=", side - 1, " or less")};
  return {};
}

void augment(float* x, const plan::Augment& augment, const Shape& sample, float fill,
             std::span<const std::uint64_t> keys) {
  if (augment == plan::Augment{}) return;
  LW_CHECK(static_cast<bool>(check_augment(augment, sample)), sample, augment.shift);
  const auto span = std::int64_t{augment.shift};
  for (const std::uint64_t key : keys) {
    // Each image draws all its values, so shifts do not depend on whether flipping is enabled.
    Rng rng = Rng::stream(key, kViewStream);
    const bool flipped = rng.one_in(2);
    const auto draw = [&] {
      return static_cast<std::int64_t>(rng.below(2 * static_cast<std::uint64_t>(span) + 1)) - span;
    };
    const std::int64_t down = draw();
    const std::int64_t right = draw();
    for (std::int64_t channel = 0; channel < sample[0]; ++channel) {
      const Plane plane{x, sample[1], sample[2]};
      if (augment.flip && flipped) flip(plane);
      if (down != 0 || right != 0) shift(plane, down, right, fill);
      x += sample[1] * sample[2];
    }
  }
}

}  // namespace leeway
