#include "monitoring/line_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

namespace leeway {
namespace {

std::uint64_t lines_in(std::string_view text) {
  return static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

LineFile::LineFile(std::string path, std::size_t buffer)
    : path_(std::move(path)), buffer_(buffer) {}

void LineFile::add(std::string_view line) {
  waiting_ += line;
  waiting_ += '\n';
  if (waiting_.size() >= buffer_) flush();
}

bool LineFile::open() {
  if (!file_)
    file_ = std::make_unique<Descriptor>(
        ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (file_->get() >= 0) return true;
  lose(waiting_);
  file_.reset();
  return false;
}

void LineFile::lose(std::string_view lines) {
  if (cause_.empty()) cause_ = system_reason();
  lost_ += lines_in(lines);
}

void LineFile::flush() {
  if (waiting_.empty()) return;
  std::string_view rest = waiting_;
  struct stat info {};
  if (open() && ::fstat(file_->get(), &info) != 0) {
    lose(rest);
    file_.reset();
  }
  off_t whole = info.st_size, size = info.st_size;  // up to the last line end, and with the rest
  while (file_ && !rest.empty()) {
    const ::ssize_t got = ::write(file_->get(), rest.data(), rest.size());
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) errno = ENOSPC;
    if (got <= 0) {
      lose(rest);  // with the rest of a line that has begun
      if (size > whole) (void)!::ftruncate(file_->get(), whole);
      break;
    }
    const std::string_view done = rest.substr(0, static_cast<std::size_t>(got));
    written_ += lines_in(done);
    if (const std::size_t end = done.rfind('\n'); end != std::string_view::npos)
      whole = size + static_cast<off_t>(end) + 1;
    size += static_cast<off_t>(got);
    rest.remove_prefix(done.size());
  }
  waiting_.clear();
}

void remove_incomplete_line(const std::string& path) {
  std::error_code ignored;
  const auto size = std::filesystem::file_size(path, ignored);
  if (ignored) return;
  std::ifstream in(path, std::ios::binary);
  auto end = static_cast<std::streamoff>(size);
  for (; end > 0; --end)
    if (in.seekg(end - 1).get() == '\n') break;
  if (in && end < static_cast<std::streamoff>(size))
    std::filesystem::resize_file(path, static_cast<std::uintmax_t>(end), ignored);
}

}  // namespace leeway
