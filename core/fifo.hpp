#pragma once
// Fifo: a queue that takes only four words when empty. Use it where many short queues are kept.
#include <algorithm>
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
  /// front() and pop_front() require a non-empty queue.
  T& front() { return items_[head_]; }
  const T& front() const { return items_[head_]; }
  void pop_front() {
    items_[head_++] = T();
    const bool compact = head_ >= kMinCompaction && 2 * head_ >= items_.size();
    if (!compact && !empty()) return;
    items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }
  void clear() {
    items_.clear();
    head_ = 0;
  }
  /// Removes the items for which `predicate(item)` is true; the others keep their order.
  template <class Predicate>
  void erase_if(Predicate predicate) {
    items_.erase(std::remove_if(begin(), end(), std::move(predicate)), items_.end());
  }
  auto begin() { return items_.begin() + static_cast<std::ptrdiff_t>(head_); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin() + static_cast<std::ptrdiff_t>(head_); }
  auto end() const { return items_.end(); }

 private:
  static constexpr std::size_t kMinCompaction = 4;
  std::vector<T> items_;
  std::size_t head_ = 0;  // index of the front; earlier items are spent
};

}  // namespace leeway
