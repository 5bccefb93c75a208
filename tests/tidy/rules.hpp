#pragma once
// The rules of the source tree that a program can check: who includes whom, and the shape of files.
#include <cstddef>
#include <string>
#include <vector>

namespace leeway::tidy {

struct SourceFile {
  std::string path;  // from the root: "models/model.hpp"
  std::string text;
};

/// Of code and of docs.
inline constexpr std::size_t kMaxColumns = 100;

std::vector<std::string> lines_of(const std::string& text);

/// Each function returns what is wrong with the file, one sentence an offence: `path:line: ...`.

/// Includes that run against the order of the folders, or leave the one folder that a library is
/// used in.
std::vector<std::string> wrong_includes(const SourceFile& file);

/// Too long a file, too long a line, tabs, blanks at the end of a line.
std::vector<std::string> wrong_layout(const SourceFile& file);

/// A header begins with #pragma once and a sentence of purpose.
std::vector<std::string> wrong_header(const SourceFile& file);

/// The source files below `root`, in order of their paths.
std::vector<SourceFile> source_files(const std::string& root);

}  // namespace leeway::tidy
