#include "models/pack_cache.hpp"

#include <tuple>

namespace leeway {

bool PackCache::Order::operator()(const Key& a, const Key& b) const {
  const auto fields = [](const Key& key) {
    return std::tuple(key.parameter, key.form.id, key.form.bytes, key.device.kind,
                      key.device.index);
  };
  return fields(a) < fields(b);
}

std::shared_ptr<PackCache::Entry> PackCache::entry(const Key& key, std::uint64_t version) {
  std::lock_guard lock(mutex_);
  auto& versions = entries_[key];
  for (const auto& known : versions)
    if (known->version == version) return known;
  versions.push_back(std::make_shared<Entry>());
  versions.back()->version = version;
  const auto added = versions.back();
  if (versions.size() > versions_kept_) versions.pop_front();
  return added;
}

Blob PackCache::get(const Key& key, std::uint64_t version, Executor& on,
                    const std::function<void(std::byte*)>& pack) {
  const auto entry = this->entry(key, version);
  std::lock_guard packing(entry->mutex);
  if (!entry->blob) {
    Blob blob = on.allocate(key.form.bytes);
    pack(blob.mutable_data());
    on.end_write(blob);
    entry->blob = std::move(blob);
    std::lock_guard lock(mutex_);
    ++packed_;
  }
  return entry->blob;
}

std::uint64_t PackCache::packed() const {
  std::lock_guard lock(mutex_);
  return packed_;
}

}  // namespace leeway
