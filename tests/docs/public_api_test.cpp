// What a scenario program includes: few headers, and none that a user has no use for.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "core/text.hpp"

using namespace leeway;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostHeaders = 20;

/// Headers of Leeway that a header includes, itself left out, and through them.
void follow(const std::string& header, std::set<std::string>& all) {
  fs::path path = fs::path(LEEWAY_SOURCE_DIR) / header;
  if (!fs::exists(path)) path = fs::path(LEEWAY_GENERATED_DIR) / header;
  INFO(header);
  REQUIRE(fs::exists(path));
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    constexpr std::string_view kInclude = "#include \"";
    if (!line.starts_with(kInclude)) continue;
    const std::string next = line.substr(kInclude.size(), line.size() - kInclude.size() - 1);
    if (all.insert(next).second) follow(next, all);
  }
}

/// Others than those of Leeway and of the standard library, which have no folder and no ending.
std::string foreign_includes(const std::set<std::string>& headers) {
  std::string found;
  for (const auto& header : headers) {
    std::ifstream in(fs::path(LEEWAY_SOURCE_DIR) / header);
    for (std::string line; std::getline(in, line);)
      if (line.starts_with("#include <") && line.find_first_of("/.") != std::string::npos)
        found += concat(header, ": ", line, '\n');
  }
  return found;
}

}  // namespace

TEST_CASE("a scenario program includes at most 20 headers, and no kernel, mesh or library") {
  std::set<std::string> headers;
  follow("leeway.hpp", headers);
  CAPTURE(headers);
  CHECK(headers.size() <= kMostHeaders);
  for (const auto& header : headers)
    for (const char* folder : {"kernels/", "cluster/", "runtime/flags/", "runtime/cluster/"})
      CHECK_FALSE(header.starts_with(folder));
  headers.insert("leeway.hpp");
  CHECK(foreign_includes(headers) == "");
}
