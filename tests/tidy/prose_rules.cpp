#include "tests/tidy/prose_rules.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string_view>

#include "core/text.hpp"

namespace leeway::tidy {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxParagraphLines = 6;

struct Banned {
  std::string_view word;
  std::string_view instead;
};
constexpr std::array<Banned, 16> kBanned = {{
    {"nobody", "no worker, no actor"},
    {"somebody", "the actor"},
    {"everybody", "all workers"},
    {"torn", "partial push"},
    {"misfit", "invalid push"},
    {"desk", "queue, orders"},
    {"shelf", "cache"},
    {"agenda", "pending orders"},
    {"in vain", "without effect"},
    {"beforehand", "in advance"},
    {"for want of", "without"},
    {"nobody's", "no actor's"},
    {"stands beside", "is next to"},
    {"is not there", "is missing"},
    {"are not there", "are missing"},
    {"what is told", "what is reported"},
}};

bool is_document(std::string_view path) {
  return path.ends_with(".md");
}

/// The comment of a line of code, and its string literals; of a document, the whole line.
std::string prose_of(const SourceFile& file, const std::string& line) {
  if (is_document(file.path)) return line;
  const bool slashes = file.path.ends_with("pp") || file.path.ends_with(".cu");
  const std::string_view marker = slashes ? "//" : "#";
  std::string prose;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quote) {
      if (line[i] == '\\') {
        prose += ' ';
        ++i;
      } else if (line[i] == quote) {
        quote = 0;
        prose += ' ';
      } else {
        prose += line[i];
      }
    } else if (line[i] == '"') {
      quote = '"';
    } else if (line.compare(i, marker.size(), marker) == 0) {
      return prose + line.substr(i + marker.size());
    }
  }
  return prose;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool has_word(const std::string& text, std::string_view word) {
  const auto part_of_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !part_of_word(text[at - 1])) &&
        (end == text.size() || !part_of_word(text[end])))
      return true;
  }
  return false;
}

/// True for each line of a document that is part of a code block.
std::vector<bool> code_lines(const std::vector<std::string>& lines) {
  std::vector<bool> code(lines.size());
  bool fenced = false, indented = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::size_t text = lines[i].find_first_not_of(' ');
    const bool fence = text != std::string::npos && lines[i].compare(text, 3, "```") == 0;
    const bool empty = text == std::string::npos;
    if (!fenced && !fence)
      indented = !empty && text >= 4 && (indented || i == 0 || lines[i - 1].empty());
    code[i] = fence || fenced || indented;
    if (fence) fenced = !fenced;
  }
  return code;
}

/// The anchor that GitHub gives a heading.
std::string anchor_of(std::string_view heading) {
  std::string anchor;
  for (const char c : heading.substr(std::min(heading.size(), heading.find_first_not_of("# ")))) {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_')
      anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (c == ' ')
      anchor += '-';
  }
  return anchor;
}

std::set<std::string> anchors_of(const std::string& text) {
  std::set<std::string> anchors;
  const auto lines = lines_of(text);
  const auto code = code_lines(lines);
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (!code[i] && lines[i].starts_with('#')) anchors.insert(anchor_of(lines[i]));
  return anchors;
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// "a/{b,c}.hpp" and "a/b.{hpp,cpp}" name two files each.
std::vector<std::string> expand_braces(const std::string& path) {
  const std::size_t open = path.find('{'), close = path.find('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return {path};
  std::vector<std::string> all;
  std::istringstream in(path.substr(open + 1, close - open - 1));
  for (std::string part; std::getline(in, part, ',');)
    all.push_back(path.substr(0, open) + part + path.substr(close + 1));
  return all;
}

bool is_wide_by_nature(const std::string& line) {
  const std::size_t text = line.find_first_not_of(' ');
  return text != std::string::npos && (line[text] == '|' || line[text] == '<');
}

}  // namespace

std::vector<std::string> banned_words(const SourceFile& file) {
  std::vector<std::string> wrong;
  if (file.path.starts_with("tests/tidy/")) return wrong;  // the words are its data
  const auto lines = lines_of(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string prose = lower(prose_of(file, lines[i]));
    for (const Banned& banned : kBanned)
      if (has_word(prose, banned.word))
        wrong.push_back(
            concat(file.path, ':', i + 1, ": \"", banned.word, "\": write ", banned.instead));
  }
  return wrong;
}

std::vector<std::string> wide_lines(const SourceFile& file) {
  std::vector<std::string> wrong;
  const auto lines = lines_of(file.text);
  const auto code = code_lines(lines);
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (!code[i] && !is_wide_by_nature(lines[i]) && lines[i].size() > kMaxColumns)
      wrong.push_back(concat(file.path, ':', i + 1, ": has ", lines[i].size(), " columns, at most ",
                             kMaxColumns, " are allowed"));
  return wrong;
}

std::vector<std::string> long_paragraphs(const SourceFile& file) {
  std::vector<std::string> wrong;
  const auto lines = lines_of(file.text);
  const auto code = code_lines(lines);
  int length = 0;
  for (std::size_t i = 0; i <= lines.size(); ++i) {
    const std::size_t text = i < lines.size() ? lines[i].find_first_not_of(' ') : std::string::npos;
    const bool ends = i == lines.size() || code[i] || text == std::string::npos ||
                      std::string_view("|#<!").find(lines[i][text]) != std::string_view::npos;
    const bool item =
        !ends && (lines[i].compare(text, 2, "- ") == 0 || lines[i].find(". ") == text + 1);
    if (ends || item) length = 0;
    if (!ends && ++length == kMaxParagraphLines + 1)
      wrong.push_back(concat(file.path, ':', i + 1, ": the paragraph has more than ",
                             kMaxParagraphLines, " lines; make it a list or a table"));
  }
  return wrong;
}

std::vector<std::string> broken_tables(const SourceFile& file) {
  std::vector<std::string> wrong;
  const auto lines = lines_of(file.text);
  const auto code = code_lines(lines);
  std::size_t columns = 0;  // of the present table; 0: none
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::size_t text = lines[i].find_first_not_of(' ');
    if (code[i] || text == std::string::npos || lines[i][text] != '|') {
      columns = 0;
      continue;
    }
    // A bar within a cell is escaped.
    std::size_t bars = 0;
    for (std::size_t at = 0; at < lines[i].size(); ++at)
      if (lines[i][at] == '|' && (at == 0 || lines[i][at - 1] != '\\')) ++bars;
    if (!lines[i].ends_with('|')) {
      wrong.push_back(concat(file.path, ':', i + 1, ": the row does not end with |"));
      continue;
    }
    if (columns > 0 && bars != columns)
      wrong.push_back(concat(file.path, ':', i + 1, ": the row has ", bars - 1,
                             " columns, and its table ", columns - 1));
    if (columns == 0) columns = bars;
  }
  return wrong;
}

std::optional<std::uint64_t> constant_of(const std::string& text, const std::string& name) {
  const std::regex definition(
      "\\b" + name + R"( = (seconds\()?([0-9']+)[uUlL]*( << | \* )?([0-9']*)[uUlL]*\)?[;,])");
  std::smatch found;
  if (!std::regex_search(text, found, definition)) return std::nullopt;
  const auto number = [](std::string digits) {
    std::erase(digits, '\'');
    return std::stoull(digits);
  };
  const std::uint64_t first = number(found[2]);
  if (found[1].matched) return first * 1'000'000'000;
  if (!found[3].matched) return first;
  const std::uint64_t second = number(found[4]);
  return found[3] == " << " ? first << second : first * second;
}

std::vector<std::string> broken_links(const SourceFile& file, const std::string& root) {
  static const std::regex link(R"(\]\(([^)\s]+)\))");
  std::vector<std::string> wrong;
  const auto lines = lines_of(file.text);
  const auto code = code_lines(lines);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (code[i]) continue;
    for (std::sregex_iterator at(lines[i].begin(), lines[i].end(), link), end; at != end; ++at) {
      const std::string target = (*at)[1];
      if (target.find("://") != std::string::npos) continue;
      const std::size_t hash = std::min(target.find('#'), target.size());
      const fs::path folder = (fs::path(root) / file.path).parent_path();
      const fs::path path =
          hash == 0 ? fs::path(root) / file.path : folder / target.substr(0, hash);
      const std::string text = hash == 0 ? file.text : read_file(path);
      if (hash > 0 && !fs::exists(path))
        wrong.push_back(concat(file.path, ':', i + 1, ": the link ", target, " has no target"));
      else if (hash < target.size() && !anchors_of(text).contains(target.substr(hash + 1)))
        wrong.push_back(concat(file.path, ':', i + 1, ": the link ", target, " has no heading"));
    }
  }
  return wrong;
}

std::vector<std::string> missing_paths(const SourceFile& file, const std::string& root) {
  static const std::regex quoted("`([A-Za-z_][A-Za-z0-9_./{},-]*/[A-Za-z0-9_./{},-]*)`");
  std::vector<std::string> wrong;
  const auto lines = lines_of(file.text);
  const auto code = code_lines(lines);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (code[i]) continue;
    for (std::sregex_iterator at(lines[i].begin(), lines[i].end(), quoted), end; at != end; ++at) {
      const std::string name = (*at)[1];
      const std::string folder = name.substr(0, name.find('/'));
      // These hold what the programs write.
      if (folder == "build" || folder == "runs") continue;
      if (!fs::is_directory(fs::path(root) / folder)) continue;
      for (const std::string& path : expand_braces(name))
        if (!fs::exists(fs::path(root) / path))
          wrong.push_back(concat(file.path, ':', i + 1, ": ", path, " does not exist"));
    }
  }
  return wrong;
}

std::vector<SourceFile> documents(const std::string& root) {
  std::vector<SourceFile> files;
  const auto add = [&](const fs::path& path) {
    if (path.extension() == ".md")
      files.push_back({fs::relative(path, root).generic_string(), read_file(path)});
  };
  for (const auto& entry : fs::directory_iterator(root)) add(entry.path());
  for (const char* folder : {"bench", "deploy", "docs", "examples", "messages", "scripts", "tests"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(root) / folder))
      add(entry.path());
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

}  // namespace leeway::tidy
