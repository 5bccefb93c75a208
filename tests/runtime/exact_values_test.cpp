// Every flag and every field of a plan holds the value that it was given, or refuses it.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/text.hpp"
#include "leeway.hpp"
#include "plan/settings.hpp"
#include "runtime/flags/flags.hpp"
#include "runtime/flags/option.hpp"

namespace leeway::test {
namespace {

using Catch::Contains;
using Json = nlohmann::ordered_json;

/// Values that no number takes, and those that only a few take.
const std::vector<std::string> kNoNumbers = {"",   "nan", "inf", "-inf", "3x",
                                             "1e", "0x",  "+3",  " 3",   "1e400"};
const std::vector<std::string> kExtremes = {"-1", "1e30", "-1e30", "18446744073709551617", "0.5"};

Scenario small() {
  Scenario scenario("small", "A small task.");
  scenario.data(clusters(3, 4, 600)).model({linear(8), relu(), linear(3)});
  return scenario;
}

struct Parsed {
  CommandLine line;
  std::string error;
};
Parsed parsed(std::vector<std::string> words) {
  words.insert(words.begin(), "small");
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  std::ostringstream error;
  auto* const before = std::cerr.rdbuf(error.rdbuf());
  Parsed result{parse(small(), static_cast<int>(argv.size()), argv.data()), ""};
  std::cerr.rdbuf(before);
  result.error = error.str();
  return result;
}

/// The flags of scenario programs, with the type of their values.
std::vector<std::pair<std::string, std::string>> all_flags() {
  CLI::App app;
  Flags flags;
  add_flags(app, flags, small().plan());
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto* option : app.get_options())
    if (option->get_expected_max() > 0 && option->get_name() != "--help")
      found.emplace_back(option->get_name(), option->get_type_name());
  return found;
}

/// The value at "stop.epochs" or "faults[].at.seconds"; null if the plan lacks it.
Json at(const Json& plan, const std::string& key) {
  Json node = plan;
  std::istringstream parts(key);
  for (std::string part; std::getline(parts, part, '.');) {
    const bool item = part.ends_with("[]");
    if (item) part.resize(part.size() - 2);
    if (!node.is_object() || !node.contains(part)) return {};
    node = Json(node[part]);
    if (item && node.is_array() && node.size() == 1) node = Json(node[0]);
  }
  return node;
}

/// Fields that a table needs beside any other.
std::string needed_beside(const std::string& table) {
  if (table == "data.csv" || table == "data.images") return "\"train\": \"x\", ";
  if (table == "data.npy") return "\"features\": \"x\", \"labels\": \"y\", ";
  if (table == "model[].linear") return "\"outputs\": 3, ";
  if (table == "model[].embedding") return "\"features\": 3, ";
  return table == "optimizer.groups[]" ? "\"names\": \"*\", " : "";
}

/// A plan with one value: the text that sets `key`.
std::string plan_text(const std::string& key, const std::string& value) {
  std::string text = value;
  std::string beside = needed_beside(key.substr(0, key.rfind('.')));
  if (beside.find('"' + key.substr(key.rfind('.') + 1) + '"') != beside.npos) beside.clear();
  std::vector<std::string> parts;
  std::istringstream in(key);
  for (std::string part; std::getline(in, part, '.');) parts.push_back(part);
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    const bool item = part->ends_with("[]");
    const auto name = item ? part->substr(0, part->size() - 2) : *part;
    text = concat('{', std::exchange(beside, ""), '"', name, "\": ", item ? "[" : "", text,
                  item ? "]" : "", "}");
  }
  return text;
}

/// The key as errors name it: "faults[0].at".
std::string key_in_errors(std::string key) {
  for (std::size_t place; (place = key.find("[]")) != key.npos;) key.replace(place, 2, "[0]");
  return key;
}

bool is_number(const plan::Setting& setting) {
  const std::string& value = setting.default_value;
  return !value.empty() && (std::isdigit(value[0]) || value[0] == '-');
}
bool is_real(const plan::Setting& setting) {
  return setting.default_value.find_first_of(".e") != std::string::npos;
}

}  // namespace

TEST_CASE("a flag for a number takes it exactly, or refuses it by name, value and remedy") {
  int flags = 0;
  for (const auto& [flag, type] : all_flags()) {
    if (type == "TEXT") continue;
    ++flags;
    auto values = kNoNumbers;
    values.insert(values.end(), {"18446744073709551617", "1e30"});
    for (const auto& value : values) {
      CAPTURE(flag, value);
      const auto result = parsed({flag, value, "--no-out"});
      CHECK(result.line.exit_code == 2);
      CHECK_THAT(result.error, Contains(flag) && Contains("give "));
      const std::string shown = value == "1e30" ? "1e+30" : "18446744073709551616";
      CHECK_THAT(result.error,
                 Contains(concat('"', value, '"')) || Contains(concat(": ", shown, " is not")));
    }
    for (const std::string value : {"-1", "0.5", "010", "3"}) {
      CAPTURE(flag, value);
      const auto result = parsed({flag, value, "--no-out"});
      if (result.line.exit_code) {
        CHECK(result.line.exit_code == 2);
        CHECK_THAT(result.error, Contains(flag.substr(2)) || Contains("give "));
        continue;
      }
      for (const auto& setting : plan::settings()) {
        if (setting.flag != flag) continue;
        const Json held = at(Json::parse(to_json(result.line.plan)), setting.key);
        CHECK(held.get<double>() == std::stod(value));
      }
    }
  }
  CHECK(flags > 15);
}

TEST_CASE("a flag for a text refuses an empty one, and keeps or refuses any other") {
  int flags = 0;
  for (const auto& [flag, type] : all_flags()) {
    if (type != "TEXT") continue;
    ++flags;
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{flag, ""}, std::vector<std::string>{flag + "="}}) {
      CAPTURE(words);
      const auto result = parsed(words);
      CHECK(result.line.exit_code == 2);
      CHECK_THAT(result.error, Contains(flag + ": \"\" is not allowed; give "));
    }
    if (flag == "--calibrate") continue;  // any text is a file, and it would be written
    auto values = kNoNumbers;
    values.insert(values.end(), kExtremes.begin(), kExtremes.end());
    for (const auto& value : values) {
      if (value.empty()) continue;
      CAPTURE(flag, value);
      const auto result = parsed({flag, value});
      if (result.line.exit_code) {
        CHECK(result.line.exit_code == 2);
        CHECK_THAT(result.error, Contains(flag.substr(2)));
        continue;
      }
      // It is a path, or an address or token that the run checks.
      const auto& [plan, options] = std::tie(result.line.plan, result.line.options);
      CHECK((options.folder == value || options.serve == value || options.serve_token == value ||
             options.metrics == value || plan.init_from == value ||
             plan.checkpoints.directory == value));
    }
  }
  CHECK(flags > 20);
}

TEST_CASE("a flag without a value refuses one") {
  CHECK(parsed({"--quiet=false"}).line.exit_code == 2);
  const auto empty = parsed({"--quiet="});
  CHECK(empty.line.exit_code == 2);
  CHECK_THAT(empty.error, Contains("--quiet: takes no value; leave the value out"));
  CHECK(parsed({"--prefetch=0"}).line.exit_code == 2);
}

TEST_CASE("numbers of flags are read in full and in decimal") {
  CHECK(*read_value<double>("0.1") == 0.1);
  CHECK(*read_value<std::uint64_t>("18446744073709551615") == 18446744073709551615u);
  CHECK(*read_value<std::uint32_t>("010") == 10);
  CHECK(*read_value<std::int64_t>("-9223372036854775808") == INT64_MIN);
  CHECK(read_value<std::uint32_t>("4294967296").error().text ==
        "\"4294967296\" is not allowed; give a whole number from 0 to 4294967295");
  CHECK(read_value<int>("0x10", "1 to 8").error().text == "\"0x10\" is not allowed; give 1 to 8");
}

TEST_CASE("a field of a plan holds the given value, or refuses it by key and remedy") {
  int numbers = 0;
  for (const auto& setting : plan::settings()) {
    if (!is_number(setting)) continue;
    ++numbers;
    for (const std::string value : {"\"\"", "\"nan\"", "\"inf\"", "\"-inf\"", "\"3x\"", "true",
                                    "null", "-1", "1e30", "-1e30", "18446744073709551617", "0.5"}) {
      const std::string key = key_in_errors(setting.key);
      CAPTURE(key, value);
      auto plan = plan_from_json(plan_text(setting.key, value), "plan.json");
      const Status valid = plan ? validate(*plan) : Status(plan.error());
      const bool huge = value.find("e30") != value.npos || value.size() == 20;
      const std::string text = valid ? "" : valid.error().text;
      const bool refused = text.find(key + ':') != text.npos;
      if (refused) CHECK_THAT(text, Contains("give ") || Contains("leave the key out"));
      // Beyond what any setting means: the range or the type refuses it.
      if (huge || value[0] == '"') CHECK(refused);
      if (refused) continue;
      REQUIRE(plan);
      CHECK(at(Json::parse(to_json(*plan)), setting.key).get<double>() == std::stod(value));
    }
    if (!is_real(setting)) continue;
    CHECK_FALSE(setting.range.empty());
  }
  CHECK(numbers > 100);
}

TEST_CASE("a field of a plan refuses a number in place of a text") {
  int texts = 0;
  for (const auto& setting : plan::settings()) {
    if (!setting.default_value.starts_with('"')) continue;
    ++texts;
    const std::string key = key_in_errors(setting.key);
    CAPTURE(key);
    const auto plan = plan_from_json(plan_text(setting.key, "1e30"), "plan.json");
    REQUIRE_FALSE(plan);
    CHECK_THAT(plan.error().text, Contains(key) && Contains("1e30") &&
                                      (Contains("give ") || Contains("put it in quotes")));
  }
  CHECK(texts > 20);
}

TEST_CASE("a run ends when its limits say, also for the largest limits") {
  Scenario scenario = small();
  scenario.workers(2).shards(1).batch(10).epochs(1e9).iterations(4).seconds(3e9);
  const Result result = run(scenario.plan(), {.quiet = true});
  REQUIRE(result.ok());
  CHECK(result.iterations == 4);
}

}  // namespace leeway::test
