#include "cli/commands.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <optional>

#include "cli/describe.hpp"
#include "cli/manifest.hpp"
#include "core/text.hpp"
#include "kv/table.hpp"
#include "plan/settings.hpp"
#include "runtime/checkpoints.hpp"
#include "runtime/flags/plan_file.hpp"

namespace leeway::cli {
namespace {

void print_broken(const Found& found) {
  for (const auto& text : found.broken) std::cerr << "leeway: ignored " << text << '\n';
}

std::string describe_places(const std::vector<Place>& places) {
  std::string out;
  for (const auto& place : places)
    if (std::filesystem::is_directory(place.manifests))
      out += "  " + place.manifests.string() + '\n';
  if (out.empty())
    return "There is no folder share/leeway/scenarios next to this program or next to a folder of "
           "PATH.\n";
  return "Searched in\n" + out;
}

/// Finds a scenario. For an unknown name, prints similar names and the searched folders.
std::optional<Manifest> find(const std::string& name) {
  const auto places = search_places();
  const Found found = find_scenarios(places);
  for (const auto& scenario : found.scenarios)
    if (scenario.name == name) return scenario;
  std::vector<std::string> names;
  for (const auto& scenario : found.scenarios) names.push_back(scenario.name);
  std::cerr << "leeway: unknown scenario \"" << name << '"'
            << (names.empty() ? "" : suggest(name, names)) << '\n'
            << describe_places(places);
  print_broken(found);
  return std::nullopt;
}

/// The argument vector for exec: pointers into `words`, then null.
std::vector<char*> argument_vector(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (auto& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

bool is_plan_file(const std::string& target) {
  const auto extension = std::filesystem::path(target).extension();
  return extension == ".toml" || extension == ".json";
}

int list() {
  const auto places = search_places();
  const Found found = find_scenarios(places);
  print_broken(found);
  if (found.scenarios.empty()) {
    std::cerr << "leeway: no scenarios found\n" << describe_places(places);
    return kExitOk;
  }
  std::cout << list_text(found.scenarios);
  return kExitOk;
}

int describe(const std::string& name, bool plan_only) {
  const auto scenario = find(name);
  if (!scenario) return kExitRefused;
  std::cout << (plan_only ? plan_file_text(scenario->plan) : describe_text(*scenario));
  return kExitOk;
}

int settings() {
  std::cout << plan::settings_page();
  return kExitOk;
}

int refuse(const Error& error, int code) {
  std::cerr << "leeway: " << error.text << '\n';
  return code;
}

int run(const std::string& target, const std::vector<std::string>& args) {
  std::vector<std::string> words{target};
  words.insert(words.end(), args.begin(), args.end());
  if (is_plan_file(target)) {
    words[0] = concat("leeway run ", shell_path(target));  // how to start it again
    auto argv = argument_vector(words);
    return run_plan_file(target, static_cast<int>(words.size()), argv.data());
  }
  const auto scenario = find(target);
  if (!scenario) return kExitRefused;
  words[0] = scenario->program.string();
  auto argv = argument_vector(words);
  std::cout.flush();
  ::execv(words[0].c_str(), argv.data());
  std::cerr << "leeway: cannot start " << words[0] << ": " << std::strerror(errno)
            << "; build or install the scenario again\n";
  return kExitFailed;
}

int fuzz(const std::string& target, const std::string& seeds,
         const std::vector<std::string>& args) {
  std::vector<std::string> all{"--fuzz", seeds};
  all.insert(all.end(), args.begin(), args.end());
  return run(target, all);
}

int resume(const std::string& folder, const std::vector<std::string>& args) {
  const auto from = find_checkpoint(folder, "");
  if (!from) return refuse(from.error());
  if (!kv::table_keys(from->plan.model).empty())
    return refuse(
        Error{concat(folder,
                     ": was started by `leeway launch` or kv::run(); resume it with `leeway launch "
                     "--resume ",
                     shell_path(folder), " PROGRAM`, where PROGRAM is ", from->plan.name,
                     ", or with Options::run.resume")});
  std::vector<std::string> words{"--resume", folder == "latest" ? from->path() : folder};
  words.insert(words.end(), args.begin(), args.end());
  const std::string& name = from->plan.name;
  for (const auto& scenario : find_scenarios(search_places()).scenarios)
    if (scenario.name == name) return run(name, words);
  if (needs_program(from->plan)) {
    std::cerr << "leeway: " << folder << ": the data or layers of " << name
              << " are part of its program; give --resume " << folder << " to that program\n";
    return kExitRefused;
  }
  words.insert(words.begin(), "leeway resume");
  auto argv = argument_vector(words);
  return run_plan(from->plan, static_cast<int>(words.size()), argv.data());
}

int sample(const std::string& folder, const SampleOptions& options) {
  const auto text = leeway::sample(folder, options);
  if (!text) return refuse(text.error());
  std::cout << *text << '\n';
  return kExitOk;
}

}  // namespace leeway::cli
