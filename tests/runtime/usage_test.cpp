// Usage errors of the command line, and its help.
#include "runtime/flags/usage.hpp"

#include <catch2/catch.hpp>
#include <optional>
#include <sstream>

#include "core/text.hpp"
#include "leeway.hpp"
#include "plan/old_names.hpp"

namespace leeway::test {
namespace {

using Catch::Contains;

Scenario small() {
  Scenario scenario("small", "A small task.");
  scenario.data(clusters(3, 4, 600))
      .model({linear(8), relu(), linear(3)})
      .optimizer(adam(0.002))
      .consistency(adaptive(1, 4))
      .workers(7)
      .shards(1)
      .batch(16);
  return scenario;
}

/// The exit code and the output of parsing these flags.
struct Parsed {
  std::optional<int> exit_code;
  std::string out, error;
};
Parsed parsed(const Scenario& scenario, std::vector<std::string> words) {
  words.insert(words.begin(), "small");
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  std::ostringstream out, error;
  auto* const out_before = std::cout.rdbuf(out.rdbuf());
  auto* const error_before = std::cerr.rdbuf(error.rdbuf());
  const CommandLine line = parse(scenario, static_cast<int>(argv.size()), argv.data());
  std::cout.rdbuf(out_before);
  std::cerr.rdbuf(error_before);
  return {line.exit_code, out.str(), error.str()};
}
std::string refusal(const std::vector<std::string>& words) {
  const Parsed result = parsed(small(), words);
  CHECK(result.exit_code == 2);
  return result.error;
}

}  // namespace

TEST_CASE("the error for an invalid number names the flag and the allowed values") {
  CHECK(refusal({"--stages", "two"}) ==
        "small: --stages: \"two\" is not allowed; give 1 to 1024\n");
  CHECK_THAT(refusal({"--stages", "-1"}), Contains("--stages: \"-1\" is not allowed"));
  CHECK_THAT(refusal({"--lr", "small"}),
             Contains("--lr: \"small\" is not allowed; give 1e-30 to 1e+18\n"));
  // The error names the given flag, not another with the same prefix.
  CHECK_THAT(refusal({"--batch=--lr"}), Contains("small: --batch: \"--lr\" is not allowed"));
  CHECK_THAT(refusal({"--chunks", "x"}), Contains("small: --chunks: "));
  CHECK_THAT(refusal({"--lease-size", "x"}), Contains("small: --lease-size: "));
}

TEST_CASE("an old flag is accepted with a note that names the new one") {
  for (const auto& [old_name, name] : plan::kOldFlags) {
    const auto flag = std::string(old_name);
    const std::string note = concat("small: ", old_name, " is now called ", name, '\n');
    CHECK(parsed(small(), {flag, "640", "--plan"}).error == note);
    CHECK(parsed(small(), {flag + "=640", "--plan"}).error == note);
    CHECK(parsed(small(), {flag, "640", "--plan"}).out ==
          parsed(small(), {std::string(name), "640", "--plan"}).out);
    CHECK(refusal({flag, "x"}) ==
          concat(note, "small: ", name,
                 ": \"x\" is not allowed; give a whole number from 0 to 4294967295\n"));
  }
}

TEST_CASE("missing, repeated and unexpected values are refused by the flag's name") {
  CHECK(refusal({"--workers"}) == "small: --workers: its value is missing; give --workers UINT\n");
  CHECK(refusal({"--workers", "2", "--workers", "3"}) ==
        "small: --workers: is given 2 times; give it once\n");
  CHECK(refusal({"--quiet=often"}) == "small: --quiet: takes no value; leave the value out\n");
}

TEST_CASE("settings that --staleness auto replaces are refused") {
  const std::vector<std::vector<std::string>> refused = {{"--balance", "equal"},
                                                         {"--delay-policy", "plain"}};
  for (auto words : refused) {
    words.insert(words.end(), {"--staleness", "auto", "--optimizer", "momentum"});
    CHECK_THAT(refusal(words), Contains(words[0]) && Contains("adaptive(0,16)"));
  }
  CHECK(parsed(small(), {"--staleness", "auto", "--balance", "speed", "--no-prefetch", "--plan"})
            .error == "");
  // Without momentum, auto replaces no delay policy.
  CHECK(
      parsed(small(), {"--staleness", "auto", "--delay-policy", "plain", "--no-prefetch", "--plan"})
          .error == "");
}

TEST_CASE("the error for an unknown word suggests the nearest flag") {
  CHECK(refusal({"--epocs", "3"}) == "small: \"--epocs\" is not known; did you mean --epochs?\n");
  CHECK(refusal({"--epochs", "3", "more"}) ==
        "small: \"more\" is not known; --help lists all flags\n");
}

TEST_CASE("--help shows the scenario's values as defaults") {
  const Parsed help = parsed(small(), {"--help"});
  CHECK(help.exit_code == 0);
  for (const char* text : {"Number of workers [7]", "[16]", "Learning rate [0.002]",
                           "[adaptive(1,4)]", "delayed_nesterov, muon [adam]", "[1f1b]", "[equal]",
                           "Seed of all randomness [1]", "[auto]", "[2s]"})
    CHECK_THAT(help.out, Contains(text));
  CHECK_THAT(parsed(small().stages(3).pipelines(2).consistency(bsp()), {"--help"}).out,
             Contains("Number of workers [6]") && Contains("--stages workers each [2]") &&
                 Contains("[bsp]"));
}

TEST_CASE("flags of settings that a program decides are refused and hidden") {
  Scenario scenario = small();
  scenario.decides({"--staleness", "--trace"});
  const Parsed refused = parsed(scenario, {"--no-out", "--staleness", "3"});
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.error, Contains("small: --staleness: ") && Contains("; leave it out\n"));
  CHECK(parsed(scenario, {"--trace"}).exit_code == 2);
  CHECK_FALSE(parsed(scenario, {"--no-out", "--workers", "3"}).exit_code);
  CHECK_THAT(parsed(scenario, {"--help"}).out,
             !Contains("--staleness ") && !Contains("--trace ") && Contains("--workers"));
}

}  // namespace leeway::test
