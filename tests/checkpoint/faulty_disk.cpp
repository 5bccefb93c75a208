// A disk with faults, as a library that faulty_disk.py loads into a program with LD_PRELOAD.
//
// LEEWAY_FAULTY_DISK is "FOLDER CALL N HOW". In files below FOLDER, the first N calls of CALL
// (write, fsync or rename) work. HOW is the fault of the calls after them:
//   fails  every call fails: write with "No space left on device", others with an I/O error
//   once   only the next call fails
//   short  writes half of the bytes, and reports all as written
//   flips  writes a flipped bit, once
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Fault {
  Fault() {
    const char* const text = std::getenv("LEEWAY_FAULTY_DISK");
    std::istringstream words(text ? text : "");
    words >> folder >> call >> works >> how;
  }
  std::string folder, call, how;
  long works = 0;
  std::atomic<long> calls{0};
};

Fault& fault() {
  static Fault instance;
  return instance;
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool is_below_folder(const std::string& path) {
  return !fault().folder.empty() && path.starts_with(fault().folder + "/");
}

std::string path_of(int file) {
  std::string path(4096, '\0');
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t size = readlink(link.c_str(), path.data(), path.size());
  path.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  return path;
}

/// Counts a call for a path. True if it has the fault.
bool is_faulty(const char* call, const std::string& path) {
  Fault& now = fault();
  if (now.call != call || !(is_below_folder(path) || path == now.folder)) return false;
  const long before = now.calls.fetch_add(1);
  const bool once = now.how == "once" || now.how == "flips";
  return once ? before == now.works : before >= now.works;
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* data, std::size_t size) {
  static auto* const real = next<ssize_t(int, const void*, std::size_t)>("write");
  if (fault().call != "write" || !is_faulty("write", path_of(file))) return real(file, data, size);
  const auto* const bytes = static_cast<const char*>(data);
  if (fault().how == "short") {
    const ssize_t written = real(file, data, size / 2);
    return written < 0 ? written : static_cast<ssize_t>(size);
  }
  if (fault().how == "flips") {
    std::vector<char> damaged(bytes, bytes + size);
    if (size > 0) damaged[size / 2] = static_cast<char>(damaged[size / 2] ^ 4);
    return real(file, damaged.data(), size);
  }
  errno = ENOSPC;
  return -1;
}

int fsync(int file) {
  static auto* const real = next<int(int)>("fsync");
  if (fault().call != "fsync" || !is_faulty("fsync", path_of(file))) return real(file);
  errno = EIO;
  return -1;
}

int rename(const char* from, const char* to) noexcept {
  static auto* const real = next<int(const char*, const char*)>("rename");
  if (!is_faulty("rename", to)) return real(from, to);
  errno = EIO;
  return -1;
}
}
