#pragma once
// Files: the file operations of data that must survive a crash.
//
// disk() is the file system. A simulation has a disk that loses unflushed data, so that the order
// of these operations can be checked. All errors name the path and the system's reason.
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/expected.hpp"

namespace leeway {

class Files {
 public:
  virtual ~Files() = default;

  /// A new file that is being written. Its destructor closes it.
  class Writer {
   public:
    virtual ~Writer() = default;
    virtual Status append(std::span<const std::byte> bytes) = 0;
    /// Flushes the content to the disk.
    virtual Status flush() = 0;
  };
  /// The content of a file; stays valid when the file is removed.
  class Content {
   public:
    virtual ~Content() = default;
    virtual std::span<const std::byte> bytes() const = 0;
    std::string_view text() const {
      return {reinterpret_cast<const char*>(bytes().data()), bytes().size()};
    }
  };

  /// Creates a file, which must not exist.
  virtual Expected<std::unique_ptr<Writer>> create(const std::string& path) = 0;
  /// Replaces `to` if it exists.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  /// Creates a folder and its parents, unless they exist.
  virtual Status make_folder(const std::string& path) = 0;
  /// Flushes the names in a folder: files created, renamed and removed.
  virtual Status flush_folder(const std::string& path) = 0;
  /// Removes a file, or a folder with everything in it, if it exists.
  virtual Status remove(const std::string& path) = 0;
  /// The names in a folder, sorted.
  virtual Expected<std::vector<std::string>> list(const std::string& folder) = 0;
  /// For files in several places: the names in all places that have the folder.
  virtual Expected<std::vector<std::string>> list_all_places(const std::string& folder) {
    return list(folder);
  }
  virtual Expected<std::shared_ptr<const Content>> read(const std::string& path) = 0;
};

/// The file system of this process.
Files& disk();
/// Files that outlive the pointer, for users that share ownership.
std::shared_ptr<Files> borrowed(Files& files);
inline std::shared_ptr<Files> shared_disk() {
  return borrowed(disk());
}

/// Writes a file that has all its bytes or does not exist, also after a crash: writes and flushes a
/// temporary file beside it, renames it, and flushes the folder. Replaces an existing file. After
/// an error, the temporary file does not exist, and the file is unchanged unless only the folder
/// could not be flushed.
Status write_durably(Files& files, const std::string& path,
                     std::span<const std::span<const std::byte>> pieces);

/// The same for a text.
inline Status write_durably(Files& files, const std::string& path, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return write_durably(files, path, std::span(&bytes, 1));
}

/// Whether the folder of a path has its name; nullopt if it cannot be listed.
std::optional<bool> is_there(Files& files, const std::string& path);

/// The folder of a path: "." for a bare name.
std::string folder_of(const std::string& path);

}  // namespace leeway
