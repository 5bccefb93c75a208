#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>

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

std::string source_of(const std::string& path) {
  std::ifstream in(kRoot + "/" + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Numbers in docs are grouped: "65,536".
std::string without_commas(std::string text) {
  std::erase(text, ',');
  return text;
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

TEST_CASE("tables of docs render") {
  CHECK(offences_of(documents(kRoot), broken_tables) == "");
}

TEST_CASE("links in docs have targets") {
  CHECK(offences_of(documents(kRoot),
                    [](const SourceFile& file) { return broken_links(file, kRoot); }) == "");
}

TEST_CASE("files and folders named by docs exist") {
  CHECK(offences_of(documents(kRoot), [](const SourceFile& file) {
          // They name old files, and generated ones.
          if (file.path == "CHANGELOG.md" || file.path == "messages/generator/README.md")
            return std::vector<std::string>();
          return missing_paths(file, kRoot);
        }) == "");
}

TEST_CASE("docs repeat the numbers of the code") {
  // `#` in the phrase is the value of the constant in this unit.
  enum class Unit : std::uint8_t { count, kib, mib, seconds };
  using enum Unit;
  const std::string limits = "core/limits.hpp";
  const struct {
    std::string path, phrase, source, constant;
    Unit unit;
  } claims[] = {
      {"docs/architecture.md", "Each tensor of at least # begins a block", limits,
       "kSmallTensorBytes", kib},
      {"docs/architecture.md", "the limit is #", limits, "kMaxBlockBytes", mib},
      {"docs/architecture.md", "of at most # in each direction", "transport/greeting.hpp",
       "kMaxPacketBytes", kib},
      {"docs/architecture.md", "A caller has #", "transport/reception.cpp", "kCallerNs", seconds},
      {"docs/architecture.md", "one of # places", "transport/reception.cpp", "kMaxCallers", count},
      {"docs/architecture.md", "At most # are in flight to a peer", "transport/mesh.hpp",
       "window_bytes", mib},
      {"docs/cluster.md", "a node keeps # events", limits, "kMaxTraceKept", count},
      {"docs/dashboard.md", "at most # intervals", "dashboard/intervals.hpp", "kMost", count},
      {"docs/dashboard.md", "grouped into # rows", "dashboard/intervals.hpp", "kMostRows", count},
      {"docs/data.md", "at most # x #", limits, "kMaxImageSide", count},
      {"docs/kv.md", "keys below # travel in groups", limits, "kSmallTensorBytes", kib},
      {"docs/kv.md", "A key above #", limits, "kMaxBlockBytes", mib},
      {"docs/recovery.md", "falls # inputs behind", limits, "kMaxInputsBehind", count},
      {"docs/recovery.md", "at most #, ahead of", "actors/replica/replica.cpp", "kMaxBytesAhead",
       mib},
      {"docs/security.md", "one of # places", "transport/reception.cpp", "kMaxCallers", count},
      {"docs/security.md", "up to #", "transport/reception.cpp", "kCallerNs", seconds},
      {"docs/security.md", "takes at most #", "transport/greeting.hpp", "kMaxPacketBytes", kib},
  };
  for (const auto& claim : claims) {
    const auto value = constant_of(source_of(claim.source), claim.constant);
    INFO(claim.source << ": " << claim.constant);
    REQUIRE(value);
    const std::string number = claim.unit == kib       ? concat(*value >> 10, " KiB")
                               : claim.unit == mib     ? concat(*value >> 20, " MiB")
                               : claim.unit == seconds ? concat(*value / 1'000'000'000, " s")
                                                       : concat(*value);
    const std::string text = on_one_line(text_of(claim.path));
    std::string phrase = claim.phrase;
    for (std::size_t at = phrase.find('#'); at != std::string::npos; at = phrase.find('#'))
      phrase.replace(at, 1, number);
    INFO(claim.path << " must contain: " << phrase);
    CHECK(without_commas(text).find(without_commas(phrase)) != std::string::npos);
  }
}

TEST_CASE("constants are read from their source") {
  const std::string text =
      "constexpr int kA = 64u << 10, kB = 2 * 3;\nint kC = seconds(5);\n"
      "  int kD = 4'096;  // kE = 1;\nint kAB = x;";
  CHECK(constant_of(text, "kA") == 65536u);
  CHECK(constant_of(text, "kB") == 6u);
  CHECK(constant_of(text, "kC") == 5'000'000'000u);
  CHECK(constant_of(text, "kD") == 4096u);
  CHECK(constant_of(text, "kAB") == std::nullopt);
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

TEST_CASE("a wide line, a long paragraph, a broken table or link and a missing file are found") {
  const auto wrong = [](const auto& offences) { return join(offences, "\n"); };
  CHECK(wrong(wide_lines({"a.md", std::string(101, 'x')})) ==
        "a.md:1: has 101 columns, at most 100 are allowed");
  CHECK(wrong(wide_lines({"a.md", "| " + std::string(101, 'x')})) == "");
  CHECK(wrong(wide_lines({"a.md", "```\n" + std::string(101, 'x') + "\n```\n"})) == "");
  CHECK(wrong(long_paragraphs({"a.md", "a\na\na\na\na\na\na\na\n"})) ==
        "a.md:7: the paragraph has more than 6 lines; make it a list or a table");
  CHECK(wrong(long_paragraphs({"a.md", "a\na\na\na\n- a\na\na\na\n"})) == "");
  CHECK(wrong(broken_tables({"a.md", "| a | b |\n|---|---|\n| 1 \\| 2 | 3 |\n"})) == "");
  CHECK(wrong(broken_tables({"a.md", "| a | b |\n|---|---|\n| 1 |\n"})) ==
        "a.md:3: the row has 1 columns, and its table 2");
  CHECK(wrong(broken_tables({"a.md", "| a | b\n|---|---|\n"})) ==
        "a.md:1: the row does not end with |");
  CHECK(wrong(broken_tables({"a.md", "- x:\n\n  | a | b\n  |---|---|\n"})) != "");
  CHECK(wrong(broken_links({"a.md", "[x](no/such.md)\n"}, kRoot)) ==
        "a.md:1: the link no/such.md has no target");
  CHECK(wrong(broken_links({"a.md", "# A b\n[x](#a-b) [y](#c)\n"}, kRoot)) ==
        "a.md:2: the link #c has no heading");
  CHECK(wrong(broken_links({"docs/a.md", "[x](glossary.md#data)\n"}, kRoot)) == "");
  CHECK(wrong(missing_paths({"a.md", "`core/no.hpp`, `core/ids.{hpp,cxx}`\n"}, kRoot)) ==
        "a.md:1: core/no.hpp does not exist\na.md:1: core/ids.cxx does not exist");
  CHECK(wrong(missing_paths({"a.md", "`core/ids.hpp` `and/or` `core/`\n"}, kRoot)) == "");
}
