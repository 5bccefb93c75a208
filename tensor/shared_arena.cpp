#include "tensor/shared_arena.hpp"

#include <iterator>
#include <utility>

#include "core/check.hpp"

namespace leeway {

namespace {

/// Block sizes are multiples of this, so that gaps between blocks are large enough to use.
constexpr std::size_t kUnit = 64u << 10;

}  // namespace

SharedArena::SharedArena(SharedMemory memory) : memory_(std::move(memory)) {
  LW_CHECK(memory_.size() % kUnit == 0, memory_.size());
  if (memory_.size() > kUnit) insert(kUnit, memory_.size() - kUnit);
}

std::byte* SharedArena::allocate(std::size_t bytes) {
  if (bytes == 0 || bytes > memory_.size()) return nullptr;
  const std::size_t held = (bytes + kUnit - 1) / kUnit * kUnit;
  std::size_t offset = 0;
  {
    std::lock_guard lock(mutex_);
    const auto fitting = by_size_.lower_bound({held, 0});
    if (fitting == by_size_.end()) return nullptr;
    const auto extent = free_.find(fitting->second);
    offset = extent->first;
    const std::size_t rest = extent->second - held;
    erase(extent);
    if (rest > 0) insert(offset + held, rest);
    used_[offset] = held;
    bytes_in_use_ += held;
  }
  if (memory_.fill(offset, held)) return memory_.mutable_data() + offset;
  free(memory_.data() + offset);
  return nullptr;
}

void SharedArena::free(const std::byte* block) {
  const std::size_t offset = this->offset(block);
  std::size_t held = 0;
  {
    std::lock_guard lock(mutex_);
    const auto used = used_.find(offset);
    LW_CHECK(used != used_.end(), offset);
    held = used->second;
    used_.erase(used);
    bytes_in_use_ -= held;
  }
  memory_.empty(offset, held);  // before another thread can allocate it
  std::lock_guard lock(mutex_);
  release(offset, held);
}

std::size_t SharedArena::bytes_in_use() const {
  std::lock_guard lock(mutex_);
  return bytes_in_use_;
}

void SharedArena::insert(std::size_t offset, std::size_t bytes) {
  free_.emplace(offset, bytes);
  by_size_.emplace(bytes, offset);
}

void SharedArena::erase(std::map<std::size_t, std::size_t>::iterator extent) {
  by_size_.erase({extent->second, extent->first});
  free_.erase(extent);
}

void SharedArena::release(std::size_t offset, std::size_t bytes) {
  if (const auto after = free_.find(offset + bytes); after != free_.end()) {
    bytes += after->second;
    erase(after);
  }
  if (auto before = free_.lower_bound(offset); before != free_.begin()) {
    before = std::prev(before);
    if (before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
      erase(before);
    }
  }
  insert(offset, bytes);
}

}  // namespace leeway
