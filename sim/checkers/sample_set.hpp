#pragma once
// SampleSet: a set of positions of epochs, with one bit per position of an incomplete epoch.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/check.hpp"
#include "core/ids.hpp"

namespace leeway::sim {

class SampleSet {
 public:
  /// `size` is the number of positions in an epoch.
  explicit SampleSet(std::int64_t size) : size_(size) {}

  /// Inserts positions [begin, end) of an epoch. Returns the first that the set already has, if
  /// any; then only positions before it may have been inserted.
  std::optional<std::int64_t> insert(Epoch epoch, std::int64_t begin, std::int64_t end) {
    LW_CHECK(0 <= begin && begin <= end && end <= size_, begin, end, size_);
    if (begin == end) return std::nullopt;
    if (epoch < whole_below_) return begin;
    Positions& positions = open_[epoch];
    if (positions.words.empty()) positions.words.resize(static_cast<std::size_t>(size_ + 63) / 64);
    if (positions.count == size_) return begin;
    for (std::int64_t at = begin; at < end;) {
      const std::int64_t next = std::min(end, (at / 64 + 1) * 64);
      std::uint64_t& word = positions.words[static_cast<std::size_t>(at / 64)];
      const std::uint64_t bits = ~std::uint64_t{0} >> (64 - (next - at)) << at % 64;
      if (const std::uint64_t twice = word & bits; twice != 0)
        return at / 64 * 64 + std::countr_zero(twice);
      word |= bits;
      at = next;
    }
    positions.count += end - begin;
    count_ += static_cast<std::uint64_t>(end - begin);
    forget_whole();
    return std::nullopt;
  }

  /// Number of inserted positions, over all epochs.
  std::uint64_t count() const { return count_; }

  /// The first position that `other` has and this set lacks.
  std::optional<std::pair<Epoch, std::int64_t>> first_missing_of(const SampleSet& other) const {
    for (Epoch epoch = whole_below_; epoch < other.whole_below_; epoch = Epoch(epoch.value() + 1))
      if (const auto at = missing(open_of(epoch), nullptr)) return std::pair(epoch, *at);
    for (const auto& [epoch, positions] : other.open_) {
      if (epoch < whole_below_) continue;
      if (const auto at = missing(open_of(epoch), &positions)) return std::pair(epoch, *at);
    }
    return std::nullopt;
  }

 private:
  struct Positions {
    std::vector<std::uint64_t> words;
    std::int64_t count = 0;
  };
  const Positions* open_of(Epoch epoch) const {
    const auto found = open_.find(epoch);
    return found == open_.end() ? nullptr : &found->second;
  }
  /// The first position of `wanted` (null: of the epoch) that is not in `here` (null: empty).
  std::optional<std::int64_t> missing(const Positions* here, const Positions* wanted) const {
    for (std::int64_t at = 0; at < size_; at += 64) {
      const auto word = static_cast<std::size_t>(at / 64);
      std::uint64_t bits = ~std::uint64_t{0} >> (64 - std::min<std::int64_t>(64, size_ - at));
      if (wanted) bits &= wanted->words[word];
      if (here) bits &= ~here->words[word];
      if (bits != 0) return at + std::countr_zero(bits);
    }
    return std::nullopt;
  }
  void forget_whole() {
    while (!open_.empty() && open_.begin()->first == whole_below_ &&
           open_.begin()->second.count == size_) {
      open_.erase(open_.begin());
      whole_below_ = Epoch(whole_below_.value() + 1);
    }
  }

  std::int64_t size_;
  Epoch whole_below_;                // earlier epochs are complete
  std::map<Epoch, Positions> open_;  // incomplete epochs
  std::uint64_t count_ = 0;
};

}  // namespace leeway::sim
