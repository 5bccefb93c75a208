// The headers that a scenario program includes are few, and all are useful to a user.
#include <algorithm>
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

/// Adds the headers of Leeway that a header includes, directly and indirectly.
void add_includes(const std::string& header, std::set<std::string>& all) {
  fs::path path = fs::path(LEEWAY_SOURCE_DIR) / header;
  if (!fs::exists(path)) path = fs::path(LEEWAY_GENERATED_DIR) / header;
  INFO(header);
  REQUIRE(fs::exists(path));
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    constexpr std::string_view kInclude = "#include \"";
    if (!line.starts_with(kInclude)) continue;
    const std::string next = line.substr(kInclude.size(), line.size() - kInclude.size() - 1);
    // The values of a plan are one header, which is generated in parts.
    if (header == "plan/values.hpp" && next.starts_with("plan/")) continue;
    if (all.insert(next).second) add_includes(next, all);
  }
}

/// Those of a folder's schemas count as one.
bool is_generated(const std::string& header) {
  return header != "plan/values.hpp" && !fs::exists(fs::path(LEEWAY_SOURCE_DIR) / header) &&
         header.starts_with("plan/");
}

/// Includes of other libraries: headers in angle brackets with a folder or an extension.
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
  add_includes("leeway.hpp", headers);
  CAPTURE(headers);
  CHECK(headers.size() - std::count_if(headers.begin(), headers.end(), is_generated) <=
        kMostHeaders);
  for (const auto& header : headers)
    for (const char* folder :
         {"kernels/", "cluster/", "transport/", "sim/", "runtime/flags/", "runtime/cluster/"})
      CHECK_FALSE(header.starts_with(folder));
  headers.insert("leeway.hpp");
  CHECK(foreign_includes(headers) == "");
}
