#pragma once
// SimulatedDisk: files in memory that lose unflushed data when the power fails.
//
// A power failure keeps all flushed content and names. Of the rest it keeps a random part: a prefix
// of a file that was not flushed, and any of the names in a folder that was not flushed. This is
// what POSIX allows; file systems usually keep more.
#include <cstdint>
#include <map>
#include <mutex>
#include <set>

#include "core/files.hpp"
#include "core/rng.hpp"

namespace leeway::sim {

/// Thrown by the operation during which the power fails, and by all later ones. Not a
/// std::exception: that would end only the actor that uses the disk, not the whole simulation.
struct PowerFailure {};

class SimulatedDisk : public Files {
 public:
  Expected<std::unique_ptr<Writer>> create(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status make_folder(const std::string& path) override;
  Status flush_folder(const std::string& path) override;
  Status remove(const std::string& path) override;
  Expected<std::vector<std::string>> list(const std::string& folder) override;
  Expected<std::shared_ptr<const Content>> read(const std::string& path) override;

  /// Lets the power fail during the operation with this number, counted from 0.
  void fail_at(std::uint64_t operation);
  /// Number of operations that change the disk so far.
  std::uint64_t operations() const;
  /// Drops a random part of the unflushed data. The disk works again.
  void restart(Rng& rng);
  /// Flips a bit of a file. Requires that the file has that bit.
  void flip(const std::string& path, std::uint64_t bit);

 private:
  struct Data {
    bool is_folder = false;
    std::vector<std::byte> bytes;
    std::size_t flushed = 0;  // bytes
  };
  class MemoryWriter;
  class MemoryContent;
  using Names = std::map<std::string, std::shared_ptr<Data>>;  // by path

  /// Counts an operation. Throws PowerFailure if the power has failed.
  void begin_operation();
  bool is_folder(const std::string& path) const;

  mutable std::mutex mutex_;
  Names live_;
  Names durable_;
  std::uint64_t operations_ = 0;
  std::uint64_t fails_at_ = ~std::uint64_t{0};
};

}  // namespace leeway::sim
