#pragma once
// CopiedFiles: the same files in several places, such as the disks of two machines.
#include <memory>
#include <string>
#include <vector>

#include "core/files.hpp"

namespace leeway {

/// Executes each operation in all places, in their order. An operation fails with the error of the
/// first place in which it fails. Files are read from the first place only.
class CopiedFiles final : public Files {
 public:
  /// Requires at least one place.
  explicit CopiedFiles(std::vector<std::shared_ptr<Files>> places);

  Expected<std::unique_ptr<Writer>> create(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status make_folder(const std::string& path) override;
  Status flush_folder(const std::string& path) override;
  /// Also after an error in one place.
  Status remove(const std::string& path) override;
  /// The names in any of the places, so that remains in each of them are found. Error: no place has
  /// the folder, or one that has it cannot list it.
  Expected<std::vector<std::string>> list(const std::string& folder) override;
  Expected<std::shared_ptr<const Content>> read(const std::string& path) override;

 private:
  class CopiedWriter;
  /// Stops after the first error.
  template <class Operation>
  Status in_all(Operation operation);

  std::vector<std::shared_ptr<Files>> places_;
};

/// The file system of this process, as one of several places.
std::shared_ptr<Files> shared_disk();

}  // namespace leeway
