#pragma once
// TraceBuffer: the events or messages of a node that it has not sent to the program. If the program
// records them too slowly, the buffer drops and counts the latest.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

namespace leeway {

template <class Item>
class TraceBuffer {
 public:
  struct Batch {
    std::vector<Item> items;
    std::uint64_t lost = 0;  // since the last batch
    bool empty() const { return items.empty() && lost == 0; }
  };

  /// `most`: items that it keeps.
  explicit TraceBuffer(std::size_t most) : most_(most) {}

  /// Thread-safe, as is take().
  void add(Item item) {
    std::lock_guard lock(mutex_);
    if (items_.size() < most_)
      items_.push_back(std::move(item));
    else
      ++lost_;
  }

  /// The oldest items, up to `most`.
  Batch take(std::size_t most) {
    std::lock_guard lock(mutex_);
    const auto end = items_.begin() + static_cast<std::ptrdiff_t>(std::min(most, items_.size()));
    Batch batch{{std::make_move_iterator(items_.begin()), std::make_move_iterator(end)},
                std::exchange(lost_, 0)};
    items_.erase(items_.begin(), end);
    return batch;
  }

 private:
  const std::size_t most_;
  std::mutex mutex_;
  std::deque<Item> items_;
  std::uint64_t lost_ = 0;
};

}  // namespace leeway
