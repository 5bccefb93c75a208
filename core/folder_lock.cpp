#include "core/folder_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "core/text.hpp"

namespace leeway {

Expected<std::unique_ptr<FolderLock>> FolderLock::take(const std::string& folder,
                                                       const std::string& advice) {
  std::unique_ptr<FolderLock> lock(
      new FolderLock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  if (lock->descriptor_.get() < 0)
    return Error{concat(folder, ": cannot be opened: ", system_reason(), "; ", advice)};
  if (::flock(lock->descriptor_.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  // Some network file systems have no locks.
  if (errno == ENOSYS || errno == EOPNOTSUPP || errno == ENOLCK) return lock;
  if (errno == EWOULDBLOCK)
    return Error{concat(folder, ": another run writes into this folder; ", advice)};
  return Error{concat(folder, ": cannot be locked: ", system_reason(), "; ", advice)};
}

}  // namespace leeway
