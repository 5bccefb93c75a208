#include "core/files.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "core/descriptor.hpp"
#include "core/mutant.hpp"
#include "core/text.hpp"

namespace leeway {
namespace {

Error failed(const std::string& path, std::string_view what) {
  return Error{concat(path, ": cannot be ", what, ": ", system_reason())};
}

int open_file(const std::string& path, int flags) {
  return ::open(path.c_str(), flags | O_CLOEXEC, 0666);
}

class DiskWriter final : public Files::Writer {
 public:
  explicit DiskWriter(const std::string& path)
      : path_(path), file_(open_file(path, O_WRONLY | O_CREAT | O_EXCL)) {}

  bool is_open() const { return file_.get() >= 0; }

  Status append(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      // Linux writes at most 2 GiB at once.
      const ::ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return failed(path_, "written");
      if (written == 0) {
        errno = ENOSPC;
        return failed(path_, "written");
      }
      bytes = bytes.subspan(static_cast<std::size_t>(written));
      size_ += written;
    }
    return {};
  }

  Status flush() override {
    if (::fsync(file_.get()) != 0) return failed(path_, "flushed");
    // A faulty disk may store less than it has confirmed.
    struct stat info {};
    if (::fstat(file_.get(), &info) != 0) return failed(path_, "checked");
    if (info.st_size != size_)
      return Error{concat(path_, ": has ", info.st_size, " bytes after ", size_,
                          " were written; check the disk")};
    return {};
  }

 private:
  std::string path_;
  Descriptor file_;
  off_t size_ = 0;
};

class MappedContent final : public Files::Content {
 public:
  MappedContent(void* data, std::size_t size) : data_(data), size_(size) {}
  ~MappedContent() override {
    if (size_ > 0) ::munmap(data_, size_);
  }
  MappedContent(const MappedContent&) = delete;
  MappedContent& operator=(const MappedContent&) = delete;
  std::span<const std::byte> bytes() const override {
    return {static_cast<const std::byte*>(data_), size_};
  }

 private:
  void* data_;
  std::size_t size_;
};

class Disk final : public Files {
 public:
  Expected<std::unique_ptr<Writer>> create(const std::string& path) override {
    auto writer = std::make_unique<DiskWriter>(path);
    if (!writer->is_open()) return failed(path, "created");
    return std::unique_ptr<Writer>(std::move(writer));
  }

  Status rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) return failed(to, "created");
    return {};
  }

  Status make_folder(const std::string& path) override {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) return Error{concat(path, ": cannot be created: ", error.message())};
    return {};
  }

  Status flush_folder(const std::string& path) override {
    const Descriptor folder(open_file(path, O_RDONLY | O_DIRECTORY));
    if (folder.get() < 0) return failed(path, "opened");
    // Some file systems cannot flush a folder.
    if (::fsync(folder.get()) != 0 && errno != EINVAL) return failed(path, "flushed");
    return {};
  }

  Status remove(const std::string& path) override {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (error) return Error{concat(path, ": cannot be removed: ", error.message())};
    return {};
  }

  Expected<std::vector<std::string>> list(const std::string& folder) override {
    std::error_code error;
    std::vector<std::string> names;
    for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error))
      names.push_back(entry->path().filename().string());
    if (error) return Error{concat(folder, ": cannot be read: ", error.message())};
    std::sort(names.begin(), names.end());
    return names;
  }

  Expected<std::shared_ptr<const Content>> read(const std::string& path) override {
    const Descriptor file(open_file(path, O_RDONLY));
    struct stat info {};
    if (file.get() < 0 || ::fstat(file.get(), &info) != 0) return failed(path, "read");
    if (!S_ISREG(info.st_mode)) {
      errno = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
      return failed(path, "read");
    }
    const auto size = static_cast<std::size_t>(info.st_size);
    if (size == 0)
      return std::shared_ptr<const Content>(std::make_shared<MappedContent>(nullptr, 0));
    void* const data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (data == MAP_FAILED) return failed(path, "read");
    // Starts to read all of it from the disk. A file system that cannot reads on access.
    (void)::madvise(data, size, MADV_WILLNEED);
    return std::shared_ptr<const Content>(std::make_shared<MappedContent>(data, size));
  }
};

}  // namespace

Files& disk() {
  static Disk instance;
  return instance;
}

std::optional<bool> is_there(Files& files, const std::string& path) {
  const auto names = files.list(folder_of(path));
  if (!names) return std::nullopt;
  return std::binary_search(names->begin(), names->end(), path.substr(path.rfind('/') + 1));
}

std::shared_ptr<Files> borrowed(Files& files) {
  return {&files, [](Files*) {}};
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Status write_durably(Files& files, const std::string& path,
                     std::span<const std::span<const std::byte>> pieces) {
  static std::atomic<std::uint64_t> counter{0};
  const std::string temporary =
      concat(path, '.', ::getpid(), '.', counter.fetch_add(1), ".partial");
  const auto write = [&]() -> Status {
    auto writer = files.create(temporary);
    if (!writer) {
      // A process with the same number, in a container, may have left it.
      (void)files.remove(temporary);
      writer = files.create(temporary);
    }
    if (!writer) return writer.error();
    for (const auto piece : pieces)
      if (Status status = (*writer)->append(piece); !status) return status;
    return planted(Mutant::file_not_flushed) ? Status() : (*writer)->flush();
  };
  Status status = write();
  if (status) status = files.rename(temporary, path);
  if (status && planted(Mutant::folder_not_flushed)) return {};
  if (status) return files.flush_folder(folder_of(path));
  // The first error counts, under the name that the caller knows.
  (void)files.remove(temporary);
  std::string text = status.error().text;
  if (const std::size_t at = text.find(temporary); at != std::string::npos)
    text.replace(at, temporary.size(), path);
  return Error{std::move(text)};
}

}  // namespace leeway
