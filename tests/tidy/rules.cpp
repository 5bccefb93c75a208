#include "tests/tidy/rules.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include "core/text.hpp"

namespace leeway::tidy {
namespace {

constexpr std::size_t kMaxLines = 500;

using Folders = std::set<std::string>;

Folders operator+(Folders all, const Folders& more) {
  all.insert(more.begin(), more.end());
  return all;
}

/// For each folder, the other folders that it may include.
const std::map<std::string, Folders>& arrows() {
  static const std::map<std::string, Folders> table = [] {
    const Folders core = {"core"};
    const Folders tensor = core + Folders{"tensor"};
    const Folders kernels = tensor + Folders{"kernels"};
    const Folders learning = kernels + Folders{"plan"};
    const Folders checkpoint = learning + Folders{"messages", "models"};
    const Folders actors = checkpoint + Folders{"checkpoint", "policies"};
    const Folders hosts = actors + Folders{"actors"};
    const Folders runtime =
        hosts + Folders{"blame", "cluster", "dashboard", "sim", "monitoring", "transport"};
    const Folders programs = runtime + Folders{"runtime"};
    return std::map<std::string, Folders>{
        {"core", {}},
        {"tensor", core},
        {"kernels", tensor},
        {"messages/generator", core},
        {"messages", tensor + Folders{"messages/generator"}},
        {"plan", tensor + Folders{"messages/generator"}},
        {"models", learning},
        {"policies", learning},
        {"checkpoint", checkpoint},
        {"actors", actors},
        {"transport", tensor + Folders{"messages"}},
        {"cluster", hosts + Folders{"transport"}},
        {"sim", hosts},
        {"monitoring", hosts},
        {"blame", hosts + Folders{"monitoring"}},
        {"dashboard", hosts + Folders{"monitoring", "blame"}},
        {"runtime", runtime},
        {"kv", programs},
        {"testing", programs},
        {"scenarios", programs},
        {"examples", programs + Folders{"kv"}},
        {"cli", programs + Folders{"kv"}},
        {"bench", programs + Folders{"kv"}},
        {"tests", programs + Folders{"kv", "testing", "cli", "scenarios", "messages/generator"}},
    };
  }();
  return table;
}

/// Libraries that only certain folders may include.
struct Confined {
  std::string_view prefix;
  std::string_view suffix;
  std::string_view homes;  // "messages/, plan/ and checkpoint/"
};
constexpr std::array<Confined, 9> kConfined = {{
    {"caf/", "", "cluster/"},
    {"openssl/", "", "transport/"},
    {"httplib", "", "dashboard/"},
    {"capnp/", "", "messages/, plan/ and checkpoint/"},
    {"kj/", "", "messages/, plan/ and checkpoint/"},
    {"", ".capnp.h", "messages/, plan/ and checkpoint/"},
    {"dnnl", "", "kernels/"},
    {"oneapi/", "", "kernels/"},
    {"prometheus/", "", "monitoring/"},
}};

std::string first_folder(std::string_view path) {
  return std::string(path.substr(0, path.find('/')));
}

/// The folder that arrows() has rules for.
std::string folder_of(std::string_view path) {
  constexpr std::string_view kGenerator = "messages/generator";
  return path.starts_with(kGenerator) ? std::string(kGenerator) : first_folder(path);
}

/// The path in an #include line.
std::optional<std::string> included(const std::string& line) {
  const std::size_t hash = line.find_first_not_of(' ');
  if (hash == std::string::npos || line.compare(hash, 8, "#include") != 0) return std::nullopt;
  const std::size_t open = line.find_first_of("<\"", hash);
  if (open == std::string::npos) return std::nullopt;
  const std::size_t close = line.find_first_of(">\"", open + 1);
  if (close == std::string::npos) return std::nullopt;
  std::string path = line.substr(open + 1, close - open - 1);
  if (path.starts_with("leeway/")) path.erase(0, 7);
  return path;
}

/// Code points of UTF-8 text.
std::size_t columns_of(std::string_view line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

bool ends_with_any(std::string_view path, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return path.ends_with(ending); });
}

bool is_cpp(std::string_view path) {
  return ends_with_any(path, {".hpp", ".cpp", ".cu"});
}

}  // namespace

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> wrong_includes(const SourceFile& file) {
  std::vector<std::string> wrong;
  const std::string from = folder_of(file.path);
  const auto rule = arrows().find(from);
  if (!is_cpp(file.path) || rule == arrows().end()) return wrong;
  // Tests of a folder, and benchmarks against a library, may include the folder's libraries.
  const std::string subject = first_folder(from == "tests" ? std::string_view(file.path).substr(6)
                                                           : std::string_view(file.path));
  const auto lines = lines_of(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto path = included(lines[i]);
    if (!path) continue;
    const auto offence = [&](const std::string& text) {
      wrong.push_back(concat(file.path, ':', i + 1, ": ", text));
    };
    const std::string to = folder_of(*path);
    if (path->find('/') != std::string::npos && arrows().contains(to) && to != from &&
        !rule->second.contains(to))
      offence(concat("the arrow ", from, " -> ", to, " runs back: ", *path));
    for (const Confined& library : kConfined)
      if (path->starts_with(library.prefix) && path->ends_with(library.suffix) &&
          library.homes.find(subject) == std::string_view::npos && from != "bench")
        offence(concat('<', *path, "> is included outside ", library.homes));
  }
  return wrong;
}

std::vector<std::string> wrong_layout(const SourceFile& file) {
  std::vector<std::string> wrong;
  const auto lines = lines_of(file.text);
  if (lines.size() > kMaxLines)
    wrong.push_back(concat(file.path, ": has ", lines.size(), " lines, at most ", kMaxLines,
                           " are allowed; split it"));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto offence = [&](const std::string& text) {
      wrong.push_back(concat(file.path, ':', i + 1, ": ", text));
    };
    if (lines[i].find('\t') != std::string::npos) offence("has a tab");
    if (lines[i].ends_with(' ')) offence("ends in a blank");
    if (is_cpp(file.path) && columns_of(lines[i]) > kMaxColumns)
      offence(concat("has ", columns_of(lines[i]), " columns, at most ", kMaxColumns));
  }
  return wrong;
}

std::vector<std::string> wrong_header(const SourceFile& file) {
  if (!file.path.ends_with(".hpp")) return {};
  const auto lines = lines_of(file.text);
  if (lines.empty() || lines[0] != "#pragma once")
    return {concat(file.path, ":1: a header begins with #pragma once")};
  if (lines.size() < 2 || !lines[1].starts_with("// ") || lines[1].size() < 20)
    return {concat(file.path, ":2: the second line of a header is a comment with its purpose")};
  return {};
}

std::vector<SourceFile> source_files(const std::string& root) {
  namespace fs = std::filesystem;
  std::vector<SourceFile> files;
  const auto add = [&](const fs::path& path) {
    const std::string name = fs::relative(path, root).generic_string();
    if (!ends_with_any(name, {".hpp", ".cpp", ".cu", ".capnp", ".cmake", "CMakeLists.txt"})) return;
    std::ifstream in(path, std::ios::binary);
    files.push_back({name, {std::istreambuf_iterator<char>(in), {}}});
  };
  for (const auto& [folder, unused] : arrows()) {
    if (folder.find('/') != std::string::npos) continue;  // part of another folder
    if (!fs::is_directory(fs::path(root) / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(root) / folder))
      if (entry.is_regular_file()) add(entry.path());
  }
  for (const auto& entry : fs::directory_iterator(fs::path(root) / "cmake")) add(entry.path());
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

}  // namespace leeway::tidy
