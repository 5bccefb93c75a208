#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/describe.hpp"
#include "cli/manifest.hpp"
#include "core/text.hpp"
#include "plan/plan.hpp"
#include "tests/cli/support.hpp"

using namespace leeway;
using namespace leeway::cli;
using Catch::Contains;
using Catch::StartsWith;
namespace fs = std::filesystem;

namespace {

/// A temporary folder with the layout of an installed prefix.
class Prefix {
 public:
  Prefix() {
    std::string name = (fs::temp_directory_path() / "leeway-cli-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()));
    root_ = name;
    fs::create_directories(bin());
    fs::create_directories(manifests());
  }
  ~Prefix() { fs::remove_all(root_); }
  Prefix(const Prefix&) = delete;
  Prefix& operator=(const Prefix&) = delete;

  fs::path bin() const { return root_ / "bin"; }
  fs::path manifests() const { return root_ / "share/leeway/scenarios"; }
  void write(const fs::path& file, const std::string& text) const { std::ofstream(file) << text; }

  /// A scenario whose program prints its arguments and exits with code 7.
  void add_scenario(const std::string& name, const std::string& summary) const {
    nlohmann::ordered_json manifest = {{"name", name},
                                       {"summary", summary},
                                       {"description", "First line.\nSecond line."},
                                       {"plan", {{"workers", 3}, {"consistency", "bsp"}}}};
    write(manifests() / (name + ".json"), manifest.dump());
    write(bin() / name, "#!/bin/sh\necho \"ran with $*\"\nexit 7\n");
    fs::permissions(bin() / name, fs::perms::owner_all);
  }

 private:
  fs::path root_;
};

/// Runs the built command with `arguments` and with the prefix's programs in PATH.
Result leeway_command(const Prefix& prefix, const std::string& arguments) {
  return run_line("PATH=" + prefix.bin().string() + ":$PATH " LEEWAY_COMMAND " " + arguments);
}

}  // namespace

TEST_CASE("scenarios are found by their manifests; of equal names the first one counts") {
  Prefix first, second;
  first.add_scenario("mlp", "from the first");
  second.add_scenario("mlp", "from the second");
  second.add_scenario("cnn", "convolves");
  const Found found = find_scenarios({{first.bin(), first.manifests()},
                                      {first.bin(), first.bin() / "missing"},
                                      {second.bin(), second.manifests()}});
  REQUIRE(found.scenarios.size() == 2);
  CHECK(list_text(found.scenarios) == "cnn  convolves\nmlp  from the first\n");
  CHECK(found.scenarios[0].program == second.bin() / "cnn");
  CHECK(found.broken.empty());
}

TEST_CASE("an invalid manifest is ignored, and its file is reported") {
  Prefix prefix;
  prefix.add_scenario("good", "works");
  for (const char* text : {"", "[1]", "{\"name\": 3}", "{\"name\": \"x\", \"summary\": \"y\"}",
                           "{\"name\": \"x\", \"summary\": \"y\", \"description\": \"\"}"})
    prefix.write(prefix.manifests() / ("bad" + std::to_string(std::string(text).size()) + ".json"),
                 text);
  const Found found = find_scenarios({{prefix.bin(), prefix.manifests()}});
  CHECK(found.scenarios.size() == 1);
  REQUIRE(found.broken.size() == 5);
  for (const auto& text : found.broken) CHECK_THAT(text, Contains("bad") && Contains("build"));
}

TEST_CASE("the described plan is a plan file that reads back unchanged") {
  Plan plan;
  plan.model = {plan::Flatten{}, plan::Linear{8}, plan::CustomLayer{"a \"b\"", "\n"}};
  plan.optimizer.kind = plan::AdamW{};
  plan.lr_schedule.kind = plan::Cosine{0.1};
  plan.consistency = plan::Ssp{5};
  plan.stragglers = {{3, false, plan::Bursts{4, 0.2, 50}}, {0, true, plan::Pauses{}}};
  const std::string text = plan_file_text(nlohmann::ordered_json::parse(to_json(plan)));
  const auto back = plan_from_toml(text, "described");
  INFO(text << (back ? "" : back.error().text));
  REQUIRE(back);
  CHECK(*back == plan);
}

TEST_CASE("leeway list prints the scenarios of PATH") {
  Prefix prefix;
  prefix.add_scenario("test-mlp", "A small model.");
  const Result result = leeway_command(prefix, "list");
  CHECK(result.code == 0);
  CHECK_THAT(result.output, Contains("test-mlp") && Contains("  A small model.\n"));
}

TEST_CASE("leeway describe shows summary, description and plan") {
  Prefix prefix;
  prefix.add_scenario("test-mlp", "A small model.");
  const Result result = leeway_command(prefix, "describe test-mlp");
  CHECK(result.code == 0);
  CHECK_THAT(result.output, Contains("test-mlp: A small model.\n\n  First line.\n  Second line.") &&
                                Contains("  workers = 3 ") &&
                                Contains("  consistency = \"bsp\" ") &&
                                Contains((prefix.bin() / "test-mlp").string()));
  CHECK_THAT(leeway_command(prefix, "describe test-mlp --plan").output,
             StartsWith("workers = 3 ") && Contains("\nconsistency = \"bsp\" "));
}

TEST_CASE("leeway run passes all arguments on and returns the scenario's exit code") {
  Prefix prefix;
  prefix.add_scenario("test-mlp", "A small model.");
  const Result result = leeway_command(prefix, "run test-mlp --workers 3 --help -x");
  CHECK(result.code == 7);
  CHECK(result.output == "ran with --workers 3 --help -x\n");
}

TEST_CASE("a missing program is a failed run") {
  Prefix prefix;
  prefix.add_scenario("test-mlp", "A small model.");
  fs::remove(prefix.bin() / "test-mlp");
  const Result result = leeway_command(prefix, "run test-mlp");
  CHECK(result.code == 1);
  CHECK_THAT(result.output, Contains("cannot start") && Contains("No such file"));
}

TEST_CASE("the error of an unknown scenario has a suggestion and the searched folders") {
  Prefix prefix;
  prefix.add_scenario("test-mlp", "A small model.");
  for (const char* command : {"run test-mpl", "describe test-mpl"}) {
    const Result result = leeway_command(prefix, command);
    CHECK(result.code == 2);
    CHECK_THAT(result.output, Contains("unknown scenario \"test-mpl\"; did you mean "
                                       "\"test-mlp\"?") &&
                                  Contains(prefix.manifests().string()));
  }
}

TEST_CASE("an invalid plan file is bad usage, and the error names the line") {
  Prefix prefix;
  const fs::path file = prefix.bin() / "plan.toml";
  prefix.write(file, "wrokers = 2\n");
  const Result result = leeway_command(prefix, "run " + file.string());
  CHECK(result.code == 2);
  CHECK_THAT(result.output, Contains(file.string() + ":1: wrokers: unknown key"));
}

TEST_CASE("leeway cert creates a CA and nodes and prints their validity and the next steps") {
  Prefix prefix;
  const std::string folder = (prefix.bin() / "my ca").string();
  const auto cert = [&](const std::string& rest) {
    return leeway_command(prefix, "cert --days 100 '" + folder + "' " + rest);
  };
  const Result first = cert("");
  CHECK(first.code == 0);
  CHECK_THAT(first.output, Contains("Created the CA in " + folder + ", \"Leeway cluster CA ") &&
                               Contains("valid until 20") && Contains("ca.key, must stay secret") &&
                               Contains("Created " + folder + "/node, valid until 20") &&
                               Contains("scp -rp '" + folder + "/node' MACHINE:leeway-tls\n") &&
                               Contains("--tls leeway-tls\n"));
  const Result more = cert("--node a.example --node 10.0.0.2");
  CHECK(more.code == 0);
  CHECK_THAT(more.output, Contains("Used the CA in ") && !Contains("must stay secret") &&
                              Contains("Created " + folder + "/a.example, ") &&
                              Contains("Created " + folder + "/10.0.0.2, ") &&
                              Contains("/a.example' a.example:leeway-tls"));
  for (const char* name : {"node", "a.example", "10.0.0.2"})
    CHECK(fs::exists(fs::path(folder) / name / "node.key"));
}

TEST_CASE("leeway cert creates nothing if it fails") {
  Prefix prefix;
  const std::string folder = (prefix.bin() / "ca").string();
  const Result unnamed = leeway_command(prefix, "cert");
  CHECK(unnamed.code == 2);
  CHECK_THAT(unnamed.output, Contains("DIR is required"));
  for (const char* wrong : {"--days 0", "--days many", "--node a/b", "--node a --node a", "b"}) {
    const Result result = leeway_command(prefix, "cert " + folder + ' ' + wrong);
    INFO(result.output);
    CHECK(result.code == 2);
    CHECK_FALSE(fs::exists(folder));
  }
  CHECK(leeway_command(prefix, "cert " + folder).code == 0);
  const Result again = leeway_command(prefix, "cert " + folder);
  CHECK(again.code == 1);
  CHECK(again.output == "leeway: " + folder +
                            "/node exists already and is kept; remove it to make a new one, or "
                            "give another name with --node\n");
}

TEST_CASE("leeway sample refuses folders without a text model and documents its flags") {
  Prefix prefix;
  const std::string folder = prefix.bin().string();
  const Result nothing = leeway_command(prefix, "sample " + folder);
  CHECK(nothing.code == 2);
  CHECK(nothing.output ==
        "leeway: " + folder + ": is not a run folder; give one, such as runs/char-gpt-...\n");
  prefix.write(prefix.bin() / "plan.json", to_json([] {
                 Plan plan;
                 plan.name = "pictures";
                 plan.model = {plan::Linear{10}};
                 return plan;
               }()));
  const Result pictures = leeway_command(prefix, "sample " + folder);
  CHECK(pictures.code == 2);
  CHECK_THAT(pictures.output,
             Contains("the run \"pictures\" was not trained on text; give a run on text"));
  CHECK_THAT(leeway_command(prefix, "sample").output, Contains("RUN is required"));
  const Result help = leeway_command(prefix, "sample --help");
  CHECK(help.code == 0);
  for (const char* flag : {"--prompt", "--characters", "--temperature", "--seed"})
    CHECK_THAT(help.output, Contains(flag));
}

TEST_CASE("bad usage exits with 2, help and version with 0") {
  Prefix prefix;
  for (const char* command : {"", "lst", "run", "run --workers 3", "describe", "list --all"})
    CHECK(leeway_command(prefix, command).code == 2);
  for (const char* command : {"--help", "run --help", "describe --help", "list --help"}) {
    const Result result = leeway_command(prefix, command);
    CHECK(result.code == 0);
    CHECK_THAT(result.output, Contains("Usage") || Contains("leeway"));
  }
  CHECK_THAT(leeway_command(prefix, "lst").output, Contains("did you mean \"list\"?"));
  CHECK(leeway_command(prefix, "--version").output == "leeway 0.1.0\n");
}

TEST_CASE("every option of every command takes its value exactly or refuses it") {
  Prefix prefix;
  int options = 0;
  for (const char* command :
       {"describe x", "fuzz x", "calibrate", "cert x", "schedule 1f1b", "partition mlp", "sample x",
        "checkpoints x", "messages x", "evaluate x", "predict x y", "export x", "node", "join x:1",
        "up 1", "status x:1"}) {
    const std::string name = std::string(command).substr(0, std::string(command).find(' '));
    std::istringstream help(leeway_command(prefix, name + " --help").output);
    for (std::string line; std::getline(help, line);) {
      std::istringstream words(line);
      std::string flag, type;
      words >> flag >> type;
      if (!flag.starts_with("--") ||
          (type != "INT" && type != "UINT" && type != "FLOAT" && type != "TEXT"))
        continue;
      ++options;
      const auto refused = [&](const std::string& argument, const std::string& value) {
        const Result result = leeway_command(prefix, concat(command, ' ', argument));
        INFO(command << ' ' << argument << ": " << result.output);
        CHECK(result.code == 2);
        CHECK_THAT(result.output, Contains(flag + ": \"" + value + "\" is not allowed; give "));
      };
      refused(flag + " ''", "");
      refused(flag + "=", "");
      if (type == "TEXT") continue;
      for (const char* value : {"nan", "inf", "3x", "1e400", "0x10"})
        refused(concat(flag, ' ', value), value);
      if (type == "FLOAT") continue;
      for (const char* value : {"1e30", "18446744073709551617", "0.5"})
        refused(concat(flag, ' ', value), value);
      if (type == "UINT") refused(flag + " -1", "-1");
    }
  }
  CHECK(options > 35);
}
