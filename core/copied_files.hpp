#pragma once
// CopiedFiles: the same files in several places, such as the disks of two machines.
#include <memory>
#include <string>
#include <vector>

#include "core/files.hpp"

namespace leeway {

/// Changes files in all places, in their order; fails with the error of the first place in which it
/// fails. Reads and lists the first place only.
class CopiedFiles final : public Files {
 public:
  /// Requires at least one place.
  explicit CopiedFiles(std::vector<std::shared_ptr<Files>> places);

  Expected<std::unique_ptr<Writer>> create(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status make_folder(const std::string& path) override;
  /// In the places other than the first, the folder may be missing.
  Status flush_folder(const std::string& path) override;
  /// Also after an error in one place.
  Status remove(const std::string& path) override;
  Expected<std::vector<std::string>> list(const std::string& folder) override;
  /// Skips places that cannot list the folder, except the first.
  Expected<std::vector<std::string>> list_all_places(const std::string& folder) override;
  Expected<std::shared_ptr<const Content>> read(const std::string& path) override;

 private:
  class CopiedWriter;
  /// Stops after the first error.
  template <class Operation>
  Status in_all(Operation operation);

  std::vector<std::shared_ptr<Files>> places_;
};

}  // namespace leeway
