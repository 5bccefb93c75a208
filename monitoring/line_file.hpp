#pragma once
// LineFile: appends lines to a file that only has whole lines, also on a full disk.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/descriptor.hpp"

namespace leeway {

/// A line that cannot be written is left out and counted; the next line tries again. Not
/// thread-safe.
class LineFile {
 public:
  /// Appends to the file at `path`, which is created with the first line. Up to `buffer` bytes wait
  /// in memory; 0 writes each line at once.
  explicit LineFile(std::string path, std::size_t buffer = 0);
  ~LineFile() { flush(); }
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  /// `line` has no line end.
  void add(std::string_view line);
  void flush();

  std::uint64_t written() const { return written_; }
  /// Lines that are not in the file.
  std::uint64_t lost() const { return lost_; }
  /// Why the first of them is not; empty if none was lost.
  const std::string& cause() const { return cause_; }

 private:
  bool open();
  void lose(std::string_view lines);

  std::string path_;
  std::size_t buffer_;
  std::unique_ptr<Descriptor> file_;
  std::string waiting_;  // whole lines
  std::uint64_t written_ = 0;
  std::uint64_t lost_ = 0;
  std::string cause_;
};

/// Removes an incomplete last line, which a kill leaves.
void remove_incomplete_line(const std::string& path);

}  // namespace leeway
