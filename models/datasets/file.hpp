#pragma once
// Reading whole files, and printing what was found in them, for loaders.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/expected.hpp"

namespace leeway {

/// The file's bytes. The error names the path and the system's reason, and ends in `advice`.
Expected<std::vector<std::byte>> read_file(const std::string& path, std::string_view advice);

/// Owns an open file's descriptor, or -1.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

/// The system's words for errno.
std::string system_reason();

bool file_exists(const std::string& path);

/// Content of a file as it may be printed in an error: in double quotes, at most 40 characters,
/// control and non-ASCII bytes as \xNN.
std::string excerpt(std::string_view content);

}  // namespace leeway
