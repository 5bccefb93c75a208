#pragma once
// Rules for prose that a program can check: comments, test names, messages and docs.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/tidy/rules.hpp"

namespace leeway::tidy {

// Each function returns one sentence per offence, like those of rules.hpp.

/// Words that docs/glossary.md replaces, in docs, comments, test names and messages.
std::vector<std::string> banned_words(const SourceFile& file);

/// Markdown lines above 100 columns, except tables, code blocks and links that cannot be wrapped.
std::vector<std::string> wide_lines(const SourceFile& file);

/// Paragraphs of Markdown with more than kMaxParagraphLines lines.
std::vector<std::string> long_paragraphs(const SourceFile& file);

/// Tables that do not render: a row without its last bar, or with another number of columns.
std::vector<std::string> broken_tables(const SourceFile& file);

/// Links to missing files below `root`, or to missing headings.
std::vector<std::string> broken_links(const SourceFile& file, const std::string& root);

/// Files and folders that a document names in backticks but that do not exist below `root`.
std::vector<std::string> missing_paths(const SourceFile& file, const std::string& root);

/// The value of `constexpr ... NAME = EXPRESSION` in a source text: a number, or two with << or *
/// between them, or seconds(n). Times are in nanoseconds. Empty: there is no such constant.
std::optional<std::uint64_t> constant_of(const std::string& text, const std::string& name);

/// The Markdown files of the tree, in order of their paths.
std::vector<SourceFile> documents(const std::string& root);

}  // namespace leeway::tidy
