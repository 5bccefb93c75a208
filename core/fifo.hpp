#pragma once
// Fifo: a queue for where there are many of them, mostly short: an empty one is three words.
#include <cstddef>
#include <utility>
#include <vector>

namespace leeway {

template <class T>
class Fifo {
 public:
  bool empty() const { return head_ == items_.size(); }
  std::size_t size() const { return items_.size() - head_; }
  void push_back(T item) { items_.push_back(std::move(item)); }
  /// Requires that it is not empty, like pop_front().
  T& front() { return items_[head_]; }
  const T& front() const { return items_[head_]; }
  void pop_front() {
    items_[head_++] = T();
    const bool waste = head_ >= kLeastWaste && 2 * head_ >= items_.size();
    if (!waste && !empty()) return;
    items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }
  void clear() {
    items_.clear();
    head_ = 0;
  }
  auto begin() { return items_.begin() + static_cast<std::ptrdiff_t>(head_); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin() + static_cast<std::ptrdiff_t>(head_); }
  auto end() const { return items_.end(); }

 private:
  static constexpr std::size_t kLeastWaste = 4;
  std::vector<T> items_;
  std::size_t head_ = 0;  // those before it are waste: at most half, or a few
};

}  // namespace leeway
