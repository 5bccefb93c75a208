#pragma once
// FolderLock: lets one process at a time use a folder.
#include <memory>
#include <string>

#include "core/descriptor.hpp"
#include "core/expected.hpp"

namespace leeway {

/// Holds an advisory lock of a folder until it is destroyed or its process ends, in any way. No
/// file is written for it. On a network file system, it may bind only the processes of one host, or
/// none.
class FolderLock {
 public:
  /// Error: the folder cannot be opened, or another FolderLock holds it, in this process or in
  /// another. `advice` ends the error.
  static Expected<std::unique_ptr<FolderLock>> take(const std::string& folder,
                                                    const std::string& advice);

 private:
  explicit FolderLock(int descriptor) : descriptor_(descriptor) {}

  Descriptor descriptor_;
};

}  // namespace leeway
