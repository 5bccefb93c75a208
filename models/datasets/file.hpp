#pragma once
// File access of the loaders: whole files, and printable excerpts for errors.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/descriptor.hpp"
#include "core/expected.hpp"

namespace leeway {

/// Reads a whole file. The error names the path and the system's reason, and ends with `advice`. A
/// file that is larger than the available memory is refused before it is read.
Expected<std::vector<std::byte>> read_file(const std::string& path, std::string_view advice);

/// The same for a file that may be gzipped: its decompressed content. Errors: also corrupt gzip
/// data, and content that is larger than the available memory.
Expected<std::vector<std::byte>> read_unpacked(const std::string& path, std::string_view advice);

/// What to do about a file that does not fit into memory.
inline constexpr std::string_view kTooLargeAdvice =
    "give a part of the file, or a machine or control group with more memory";

bool file_exists(const std::string& path);

/// A printable excerpt of a file for errors: in double quotes, at most 40 characters, control and
/// non-ASCII bytes as \xNN.
std::string excerpt(std::string_view content);

}  // namespace leeway
