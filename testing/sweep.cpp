#include "testing/sweep.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/number.hpp"
#include "core/text.hpp"
#include "sim/search/shrink.hpp"

namespace leeway {
namespace {

using Property = std::function<Verdict(const SimulatedRun&)>;

constexpr std::uint64_t kDrawStream = 0x7377656570;

/// In which way a run lacks the property. A smaller plan must fail in the same way.
std::string way_of_failing(const SimulatedRun& run, const Verdict& verdict) {
  if (verdict) return "";
  if (!run.violated.empty()) return run.violated;
  if (run.ok()) return "property";
  if (!run.ran) return "refused";
  return run.warnings.empty() ? "failed" : "strict";
}

struct Attempt {
  std::string failure;  // empty: the property holds
  std::string text;
};

Attempt attempt(const Plan& plan, const SimulateOptions& options, const Property& property) {
  const SimulatedRun run = simulate(plan, options);
  const Verdict verdict = property(run);
  return {way_of_failing(run, verdict), verdict.text()};
}

Plan plan_of(const Plan& base, std::uint64_t seed, const std::function<void(Plan&, Rng&)>& draw) {
  Plan plan = base;
  plan.seed = seed;
  Rng rng = Rng::stream(seed, kDrawStream);
  if (draw) draw(plan, rng);
  return plan;
}

/// The command line of this program.
std::string this_command() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(in, word, '\0');) words.push_back(shell_word(word));
  return words.empty() ? "the test" : join(words, " ");
}

/// Where the plan was kept, or the plan itself if it cannot be.
std::string kept_plan(const Plan& plan, const std::string& folder) {
  const auto path = std::filesystem::path(folder) / concat(plan.name, "-seed-", plan.seed, ".json");
  std::ofstream file(path);
  file << to_json(plan);
  file.close();
  if (!file) return concat("its plan cannot be written to ", folder, ":\n", to_json(plan));
  // Only this program knows its custom data, layers and stragglers.
  const bool is_custom = needs_program(plan);
  return concat("its plan is kept: ", is_custom ? "YOUR-PROGRAM --from " : "leeway run ",
                path.string(), " simulates it");
}

std::string size_of(const Plan& plan) {
  return concat("workers: ", plan.workers, ", shards: ", plan.shards,
                ", stragglers: ", plan.stragglers.size(), ", faults: ", plan.faults.size());
}

Verdict report(const Plan& plan, Attempt first, const SweepOptions& options,
               const Property& property) {
  Attempt last = first;
  const auto fails = [&](const Plan& candidate) {
    Attempt again = attempt(candidate, options.simulate, property);
    if (again.failure != first.failure) return false;
    last = std::move(again);
    return true;
  };
  const Plan shrunk =
      first.failure == "refused" ? plan : sim::shrink(plan, fails, options.shrink_trials);
  return {false, concat("seed ", plan.seed, " of ", options.first, " to ", options.last, ": ",
                        first.text, "\nrepeat it: LEEWAY_SEED=", plan.seed, ' ', this_command(),
                        "\nthe smallest plan that still fails (", size_of(shrunk), "): ", last.text,
                        "\n", kept_plan(shrunk, options.folder))};
}

/// Leaves only the seed that the environment names, if it does.
Status take_seed_of_environment(SweepOptions& options) {
  const char* text = std::getenv("LEEWAY_SEED");
  if (!text || *text == '\0') return {};
  const auto seed = parse_number<std::uint64_t>(text);
  if (!seed) return Error{concat("LEEWAY_SEED: \"", text, "\" is not a seed; give a number")};
  options.first = options.last = *seed;
  return {};
}

}  // namespace

Verdict sweep(const Scenario& scenario, const SweepOptions& options, const Property& property) {
  SweepOptions range = options;
  Plan base = scenario.plan();
  if (range.simulate.world) base.simulated = *range.simulate.world;
  if (!base.simulated) base.simulated = plan::World{};
  // Both are part of the plan, which may change them.
  range.simulate.seed.reset();
  range.simulate.world.reset();
  if (const Status taken = take_seed_of_environment(range); !taken)
    return {false, taken.error().text};
  if (range.last < range.first)
    return {false, concat("seeds ", range.first, " to ", range.last, " are none; give a range")};
  for (std::uint64_t seed = range.first;; ++seed) {
    const Plan plan = plan_of(base, seed, range.draw);
    Attempt tried = attempt(plan, range.simulate, property);
    if (!tried.failure.empty()) return report(plan, std::move(tried), range, property);
    if (seed == range.last) break;
  }
  return {true, concat("holds for the seeds ", range.first, " to ", range.last)};
}

}  // namespace leeway
