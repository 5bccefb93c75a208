#pragma once
// Slots: items under reusable numbers.
#include <cstdint>
#include <utility>
#include <vector>

namespace leeway::sim {

template <class T>
class Slots {
 public:
  /// Returns the item's number, which may be that of a removed item.
  std::uint32_t put(T item) {
    ++count_;
    if (free_.empty()) {
      items_.push_back(std::move(item));
      return static_cast<std::uint32_t>(items_.size() - 1);
    }
    const std::uint32_t number = free_.back();
    free_.pop_back();
    items_[number] = std::move(item);
    return number;
  }
  T take(std::uint32_t number) {
    --count_;
    free_.push_back(number);
    return std::move(items_[number]);
  }
  void erase(std::uint32_t number) { take(number); }

  /// The reference is valid until the next put().
  T& at(std::uint32_t number) { return items_[number]; }
  bool empty() const { return count_ == 0; }
  /// Starts to fetch the item from memory, for a read soon.
  void prefetch(std::uint32_t number) const {
    constexpr std::size_t kLine = 64;
    const auto* const item = reinterpret_cast<const char*>(&items_[number]);
    for (std::size_t byte = 0; byte < sizeof(T); byte += kLine) __builtin_prefetch(item + byte);
  }

 private:
  std::vector<T> items_;
  std::vector<std::uint32_t> free_;
  std::size_t count_ = 0;
};

}  // namespace leeway::sim
