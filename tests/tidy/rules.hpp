#pragma once
// Rules of the source tree that a program can check: includes between folders, layout of files.
#include <cstddef>
#include <string>
#include <vector>

namespace leeway::tidy {

struct SourceFile {
  std::string path;  // from the root: "models/model.hpp"
  std::string text;
};

/// The limit for code and docs.
inline constexpr std::size_t kMaxColumns = 100;

std::vector<std::string> lines_of(const std::string& text);

// Each function returns one sentence per offence: `path:line: ...`.

/// Includes against the order of the folders, and includes of a library outside its folder.
std::vector<std::string> wrong_includes(const SourceFile& file);

/// Files and lines that are too long, tabs, and blanks at the end of a line.
std::vector<std::string> wrong_layout(const SourceFile& file);

/// A header begins with #pragma once and a sentence of purpose.
std::vector<std::string> wrong_header(const SourceFile& file);

/// The source files below `root`, in order of their paths.
std::vector<SourceFile> source_files(const std::string& root);

}  // namespace leeway::tidy
