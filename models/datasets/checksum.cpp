#include "models/datasets/checksum.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <vector>

namespace leeway {
namespace {

/// Values that are read of each set.
constexpr std::int64_t kCheckedValues = 4 << 20;

class Checksum {
 public:
  void add(const void* words, std::int64_t count) {
    const auto* bytes = static_cast<const std::byte*>(words);
    for (std::int64_t i = 0; i < count; ++i) {
      std::uint32_t word = 0;
      std::memcpy(&word, bytes + 4 * i, 4);
      sum_ = (std::rotl(sum_, 23) ^ word) * 0x9e3779b97f4a7c15u;
    }
  }
  std::uint64_t sum() const { return sum_; }

 private:
  std::uint64_t sum_ = 1;
};

void add(const Dataset& data, Checksum& checksum) {
  const std::int64_t values = data.sample_shape().count();
  const std::int64_t labels = data.classes() > 0 ? data.label_count() : 0;
  const std::int64_t targets = data.target_count();
  const std::int64_t most =
      std::max<std::int64_t>(2, kCheckedValues / (values + (labels > 0 ? labels : targets)));
  const std::int64_t read = std::min(data.size(), most);
  std::vector<float> x(static_cast<std::size_t>(values));
  std::vector<float> target(static_cast<std::size_t>(targets));
  std::vector<std::int32_t> label(static_cast<std::size_t>(data.label_count()));
  for (std::int64_t i = 0; i < read; ++i) {
    // Evenly, the first and the last among them.
    const std::int64_t sample = read == 1 ? 0 : i * (data.size() - 1) / (read - 1);
    data.gather({&sample, 1}, x.data(), label.data(), target.data());
    checksum.add(x.data(), values);
    checksum.add(label.data(), labels);
    checksum.add(target.data(), targets);
  }
}

}  // namespace

std::uint64_t checksum_of(const TrainTest& data) {
  Checksum checksum;
  add(*data.train, checksum);
  add(*data.test, checksum);
  return checksum.sum();
}

}  // namespace leeway
