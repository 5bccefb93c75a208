#pragma once
// PackCache: weights packed for kernels, one copy per version, form and device for all workers of a
// process.
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "kernels/executor.hpp"
#include "tensor/blob.hpp"

namespace leeway {

class PackCache {
 public:
  struct Key {
    int parameter = 0;
    kernels::PackForm form;
    Device device;
  };

  /// Holds the latest `versions_kept` versions of each weight. Older versions live as long as their
  /// users hold them.
  explicit PackCache(std::size_t versions_kept) : versions_kept_(versions_kept) {}

  /// Returns the packed weights. The first caller packs them while callers with the same key wait.
  /// The caller reads them through `on`, between begin_read and end_read.
  Blob get(const Key& key, std::uint64_t version, Executor& on,
           const std::function<void(std::byte*)>& pack);

  /// How often weights were packed so far.
  std::uint64_t packed() const;

 private:
  struct Entry {
    std::uint64_t version = 0;
    std::mutex mutex;  // held while packing
    Blob blob;
  };
  struct Order {
    bool operator()(const Key& a, const Key& b) const;
  };
  std::shared_ptr<Entry> entry(const Key& key, std::uint64_t version);

  const std::size_t versions_kept_;
  mutable std::mutex mutex_;
  std::map<Key, std::deque<std::shared_ptr<Entry>>, Order> entries_;
  std::uint64_t packed_ = 0;
};

}  // namespace leeway
