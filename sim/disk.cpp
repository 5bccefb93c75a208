#include "sim/disk.hpp"

#include <algorithm>
#include <utility>

#include "core/check.hpp"
#include "core/text.hpp"

namespace leeway::sim {
namespace {

Error missing(const std::string& path) {
  return Error{concat(path, ": does not exist")};
}

}  // namespace

class SimulatedDisk::MemoryWriter final : public Writer {
 public:
  MemoryWriter(SimulatedDisk& disk, std::shared_ptr<Data> data)
      : disk_(disk), data_(std::move(data)) {}
  Status append(std::span<const std::byte> bytes) override {
    std::lock_guard lock(disk_.mutex_);
    // During a failure, a part may still reach the file.
    data_->bytes.insert(data_->bytes.end(), bytes.begin(), bytes.end());
    disk_.begin_operation();
    return {};
  }
  Status flush() override {
    std::lock_guard lock(disk_.mutex_);
    disk_.begin_operation();
    data_->flushed = data_->bytes.size();
    return {};
  }

 private:
  SimulatedDisk& disk_;
  std::shared_ptr<Data> data_;
};

class SimulatedDisk::MemoryContent final : public Content {
 public:
  explicit MemoryContent(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  std::span<const std::byte> bytes() const override { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

void SimulatedDisk::begin_operation() {
  if (operations_++ >= fails_at_) throw PowerFailure();
}

bool SimulatedDisk::is_folder(const std::string& path) const {
  if (path == "." || path == "/") return true;
  const auto found = live_.find(path);
  return found != live_.end() && found->second->is_folder;
}

Expected<std::unique_ptr<Files::Writer>> SimulatedDisk::create(const std::string& path) {
  std::lock_guard lock(mutex_);
  begin_operation();
  if (!is_folder(folder_of(path))) return missing(folder_of(path));
  const auto [entry, fresh] = live_.try_emplace(path, std::make_shared<Data>());
  if (!fresh) return Error{concat(path, ": exists")};
  return std::unique_ptr<Writer>(std::make_unique<MemoryWriter>(*this, entry->second));
}

Status SimulatedDisk::rename(const std::string& from, const std::string& to) {
  std::lock_guard lock(mutex_);
  begin_operation();
  auto node = live_.extract(from);
  if (!node) return missing(from);
  live_.insert_or_assign(to, std::move(node.mapped()));
  return {};
}

Status SimulatedDisk::make_folder(const std::string& path) {
  std::lock_guard lock(mutex_);
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (!is_folder(part)) {
      begin_operation();
      auto data = std::make_shared<Data>();
      data->is_folder = true;
      if (!live_.try_emplace(part, std::move(data)).second)
        return Error{concat(part, ": is a file")};
    }
    if (end == std::string::npos) return {};
  }
}

Status SimulatedDisk::flush_folder(const std::string& path) {
  std::lock_guard lock(mutex_);
  begin_operation();
  if (!is_folder(path)) return missing(path);
  std::erase_if(durable_, [&](const auto& entry) { return folder_of(entry.first) == path; });
  for (const auto& [name, data] : live_)
    if (folder_of(name) == path) durable_.emplace(name, data);
  return {};
}

Status SimulatedDisk::remove(const std::string& path) {
  std::lock_guard lock(mutex_);
  begin_operation();
  std::erase_if(live_, [&](const auto& entry) {
    return entry.first == path || entry.first.starts_with(path + "/");
  });
  return {};
}

Expected<std::vector<std::string>> SimulatedDisk::list(const std::string& folder) {
  std::lock_guard lock(mutex_);
  if (!is_folder(folder)) return missing(folder);
  std::vector<std::string> names;
  for (const auto& [path, data] : live_)
    if (folder_of(path) == folder) names.push_back(path.substr(path.rfind('/') + 1));
  std::sort(names.begin(), names.end());
  return names;
}

Expected<std::shared_ptr<const Files::Content>> SimulatedDisk::read(const std::string& path) {
  std::lock_guard lock(mutex_);
  const auto found = live_.find(path);
  if (found == live_.end() || found->second->is_folder) return missing(path);
  return std::shared_ptr<const Content>(std::make_shared<MemoryContent>(found->second->bytes));
}

void SimulatedDisk::fail_at(std::uint64_t operation) {
  std::lock_guard lock(mutex_);
  fails_at_ = operation;
}

std::uint64_t SimulatedDisk::operations() const {
  std::lock_guard lock(mutex_);
  return operations_;
}

void SimulatedDisk::restart(Rng& rng) {
  std::lock_guard lock(mutex_);
  fails_at_ = ~std::uint64_t{0};
  // Each name is as it was flushed, or as it was last.
  std::set<std::string> paths;
  for (const auto* names : {&live_, &durable_})
    for (const auto& [path, data] : *names) paths.insert(path);
  Names kept;
  for (const std::string& path : paths) {
    const Names& from = rng.one_in(2) ? live_ : durable_;
    // A folder comes before its content. Without it, the content is lost.
    if (const std::string folder = folder_of(path);
        folder != "." && folder != "/" && !kept.contains(folder))
      continue;
    const auto found = from.find(path);
    if (found == from.end()) continue;
    auto data = std::make_shared<Data>(*found->second);
    const std::size_t unflushed = data->bytes.size() - data->flushed;
    data->bytes.resize(data->flushed + rng.below(unflushed + 1));
    data->flushed = data->bytes.size();
    kept.emplace(path, std::move(data));
  }
  live_ = durable_ = std::move(kept);
}

void SimulatedDisk::flip(const std::string& path, std::uint64_t bit) {
  std::lock_guard lock(mutex_);
  auto& bytes = live_.at(path)->bytes;
  LW_CHECK(bit / 8 < bytes.size(), path, bit);
  bytes[bit / 8] ^= std::byte{1} << (bit % 8);
}

}  // namespace leeway::sim
