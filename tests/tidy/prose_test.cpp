#include <catch2/catch.hpp>

#include "core/limits.hpp"
#include "core/text.hpp"
#include "tests/tidy/prose_rules.hpp"

using namespace leeway;
using namespace leeway::tidy;

namespace {

const std::string kRoot = LEEWAY_SOURCE_DIR;

template <class Rule>
std::string offences_of(const std::vector<SourceFile>& files, Rule rule) {
  std::vector<std::string> all;
  for (const auto& file : files)
    for (const auto& offence : rule(file)) all.push_back(offence);
  return join(all, "\n");
}

std::string text_of(const std::string& path) {
  for (const auto& file : documents(kRoot))
    if (file.path == path) return file.text;
  return "";
}

/// The text with each run of blanks and line ends replaced by one blank.
std::string on_one_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n';
    if (!blank || (!line.empty() && line.back() != ' ')) line += blank ? ' ' : c;
  }
  return line;
}

}  // namespace

TEST_CASE("docs are at most 100 columns wide") {
  REQUIRE(documents(kRoot).size() > 8);
  CHECK(offences_of(documents(kRoot), wide_lines) == "");
}

TEST_CASE("paragraphs of docs are short") {
  CHECK(offences_of(documents(kRoot), long_paragraphs) == "");
}

TEST_CASE("code, tests and docs use the words of the glossary") {
  CHECK(offences_of(source_files(kRoot), banned_words) == "");
  CHECK(offences_of(documents(kRoot), banned_words) == "");
}

TEST_CASE("links in docs have targets") {
  CHECK(offences_of(documents(kRoot),
                    [](const SourceFile& file) { return broken_links(file, kRoot); }) == "");
}

TEST_CASE("files and folders named by docs exist") {
  CHECK(offences_of(documents(kRoot), [](const SourceFile& file) {
          if (file.path == "CHANGELOG.md") return std::vector<std::string>();  // names old files
          return missing_paths(file, kRoot);
        }) == "");
}

TEST_CASE("docs repeat the numbers of the code") {
  const auto kib = [](std::size_t bytes) { return concat(bytes >> 10, " KiB"); };
  const auto mib = [](std::size_t bytes) { return concat(bytes >> 20, " MiB"); };
  const struct {
    std::string path, phrase;
  } claims[] = {
      {"docs/architecture.md",
       concat("Each tensor of at least ", kib(limits::kSmallTensorBytes), " begins a block")},
      {"docs/architecture.md", concat("the limit is ", mib(limits::kMaxBlockBytes))},
  };
  for (const auto& claim : claims) {
    INFO(claim.path << " must contain: " << claim.phrase);
    CHECK(on_one_line(text_of(claim.path)).find(claim.phrase) != std::string::npos);
  }
}

TEST_CASE("banned words are found in comments, test names and docs, but not in code") {
  const auto wrong = [](const std::string& path, const std::string& text) {
    return join(banned_words({path, text}), "\n");
  };
  CHECK(wrong("core/a.cpp", "int x;  // Nobody waits.\n") ==
        "core/a.cpp:1: \"nobody\": write no worker, no actor");
  CHECK(wrong("cluster/a_test.cpp", "TEST_CASE(\"a torn push\")\n") ==
        "cluster/a_test.cpp:1: \"torn\": write partial push");
  CHECK(wrong("messages/a.capnp", "x @0 :Int64;  # waits in vain\n") != "");
  CHECK(wrong("docs/a.md", "It is not there.\n") != "");
  CHECK(wrong("core/a.cpp", "int torn = 1;\n") == "");
  CHECK(wrong("core/a.cpp", "// tornado\n") == "");
}

TEST_CASE("a wide line, a long paragraph, a broken link and a missing file are found") {
  const auto wrong = [](const auto& offences) { return join(offences, "\n"); };
  CHECK(wrong(wide_lines({"a.md", std::string(101, 'x')})) ==
        "a.md:1: has 101 columns, at most 100 are allowed");
  CHECK(wrong(wide_lines({"a.md", "| " + std::string(101, 'x')})) == "");
  CHECK(wrong(wide_lines({"a.md", "```\n" + std::string(101, 'x') + "\n```\n"})) == "");
  CHECK(wrong(long_paragraphs({"a.md", "a\na\na\na\na\na\na\na\n"})) ==
        "a.md:8: the paragraph has more than 7 lines; make it a list or a table");
  CHECK(wrong(long_paragraphs({"a.md", "a\na\na\na\n- a\na\na\na\n"})) == "");
  CHECK(wrong(broken_links({"a.md", "[x](no/such.md)\n"}, kRoot)) ==
        "a.md:1: the link no/such.md has no target");
  CHECK(wrong(broken_links({"a.md", "# A b\n[x](#a-b) [y](#c)\n"}, kRoot)) ==
        "a.md:2: the link #c has no heading");
  CHECK(wrong(broken_links({"docs/a.md", "[x](glossary.md#data)\n"}, kRoot)) == "");
  CHECK(wrong(missing_paths({"a.md", "`core/no.hpp`, `core/ids.{hpp,cxx}`\n"}, kRoot)) ==
        "a.md:1: core/no.hpp does not exist\na.md:1: core/ids.cxx does not exist");
  CHECK(wrong(missing_paths({"a.md", "`core/ids.hpp` `and/or` `core/`\n"}, kRoot)) == "");
}
