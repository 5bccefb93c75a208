// Plants one bug after the other, and has the search look for it: which check finds it, and how
// many runs it takes.
//
//   mutants_test                  all of them; fails when one is not found, or a run without fails
//   mutants_test fence_forgotten  these alone
//   mutants_test --seeds 5000     gives up later
//   mutants_test --markdown       the table as it stands in docs/simulator.md
#include <charconv>
#include <cstdio>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "core/check.hpp"
#include "core/mutant.hpp"
#include "core/text.hpp"
#include "sim/search/search.hpp"
#include "tests/support/text_task.hpp"

namespace leeway {
namespace {

/// Around which plan the search draws. A third of what it draws around `tiny` has pipelines, and
/// all around the others. `tied` is a transformer whose first and last stage share a table.
enum class Base { tiny, piped, tied };

struct Described {
  Mutant mutant;
  std::string_view name, breaks;
  Base base = Base::tiny;
};

constexpr Described kMutants[] = {
#define LEEWAY_MUTANT(name, breaks) \
  { Mutant::name, #name, breaks }
#define LEEWAY_MUTANT_IN(base, name, breaks) \
  { Mutant::name, #name, breaks, Base::base }
    LEEWAY_MUTANT(one_iteration_too_far, "a pull is let through one iteration beyond the bound"),
    LEEWAY_MUTANT(own_pushes_not_awaited, "a pull does not wait for its own worker's pushes"),
    LEEWAY_MUTANT(parked_pull_forgotten, "a pull that has to wait is lost"),
    LEEWAY_MUTANT(waits_for_the_evicted, "who is out still counts in the minimum"),
    LEEWAY_MUTANT(waits_for_the_idle, "who has no samples still counts in the minimum"),
    LEEWAY_MUTANT(clock_counted_twice, "a push moves the clock by two"),
    LEEWAY_MUTANT(repeat_applied, "a push that comes again is applied again"),
    LEEWAY_MUTANT(acknowledged_too_early, "a repeat is acknowledged before the first is applied"),
    LEEWAY_MUTANT(push_not_sent_again, "a push that is lost with its connection stays lost"),
    LEEWAY_MUTANT(round_applied_early, "a round is applied when the first has pushed it"),
    LEEWAY_MUTANT(dropped_push_applied, "a round takes the pushes that it was closed without"),
    LEEWAY_MUTANT(round_closed_too_early, "of backup workers, one more is not waited for"),
    LEEWAY_MUTANT(bound_falls_behind, "an adaptive bound falls for iterations that have begun"),
    LEEWAY_MUTANT(straggling_push_not_in_snapshot,
                  "a fork misses the late pushes that belong to it"),
    LEEWAY_MUTANT(gradient_of_other_weights, "a push names other weights than it is of"),
    LEEWAY_MUTANT_IN(tied, tied_gradient_applied_alone,
                     "a stage's half is applied without that of the other"),
    LEEWAY_MUTANT_IN(tied, tied_gradient_lost,
                     "a half that waits for an evicted stage is forgotten"),
    LEEWAY_MUTANT_IN(tied, sibling_not_awaited,
                     "a pull does not wait for the stage that shares a block"),
    LEEWAY_MUTANT_IN(piped, backward_on_newer_weights,
                     "a backward takes other weights than its forward"),
    LEEWAY_MUTANT_IN(piped, micro_batch_twice, "a micro-batch goes through a stage again"),
    LEEWAY_MUTANT_IN(piped, stale_start_taken, "messages of an earlier Start are taken"),
    LEEWAY_MUTANT_IN(piped, pulled_too_early,
                     "a pull leaves out later iterations that go forward on it"),
    LEEWAY_MUTANT_IN(piped, own_updates_left_out, "a pull does not wait for the stage's update"),
    LEEWAY_MUTANT_IN(piped, stops_in_the_middle, "a stage stops with iterations unfinished"),
    LEEWAY_MUTANT_IN(piped, links_of_stages_forgotten,
                     "what is lost between two stages stays lost"),
    LEEWAY_MUTANT_IN(piped, applied_buckets_pushed_again,
                     "what has the samples of an iteration gets them again"),
    LEEWAY_MUTANT(fence_forgotten, "pushes of an evicted worker are still taken"),
    LEEWAY_MUTANT(old_incarnation_accepted, "pushes of an earlier incarnation are taken"),
    LEEWAY_MUTANT(admitted_behind, "a worker is admitted behind the minimum"),
    LEEWAY_MUTANT(admission_left_uneven, "a worker starts where the shards do not agree"),
    LEEWAY_MUTANT(started_too_early, "a worker starts before all shards know it"),
    LEEWAY_MUTANT(partial_push_counted_as_trained, "what only some shards have counts as trained"),
    LEEWAY_MUTANT(leaver_not_awaited, "who is asked to leave is forgotten before it has stopped"),
    LEEWAY_MUTANT_IN(piped, stage_joins_alone,
                     "a pipeline is admitted before all its stages are there"),
    LEEWAY_MUTANT(leased_twice, "samples that come back are leased to two"),
    LEEWAY_MUTANT(trained_leased_again, "what a dead worker has trained is leased again"),
    LEEWAY_MUTANT(dropped_samples_lost, "what a late worker was to train is forgotten"),
    LEEWAY_MUTANT(applied_buckets_forgotten,
                  "what has the samples of a partial push gets them again"),
    LEEWAY_MUTANT(no_data_not_sent, "nobody is told that there are no samples"),
    LEEWAY_MUTANT(lease_not_asked_again, "a lease that is lost with its connection stays lost"),
    LEEWAY_MUTANT(start_not_sent_again, "a Start that is lost with its connection stays lost"),
    LEEWAY_MUTANT(stop_not_sent_again, "so does a Stop"),
#undef LEEWAY_MUTANT_IN
#undef LEEWAY_MUTANT
};
static_assert(std::size(kMutants) + 1 == static_cast<std::size_t>(Mutant::count_));

struct Arguments {
  bool markdown = false;
  std::uint64_t seeds = 1000;
  std::vector<std::string_view> names;

  bool wants(const Described& mutant) const {
    return names.empty() || std::find(names.begin(), names.end(), mutant.name) != names.end();
  }
};

Arguments parse(std::span<char* const> words) {
  Arguments arguments;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--markdown") {
      arguments.markdown = true;
    } else if (word == "--seeds" && i + 1 < words.size()) {
      const std::string_view number = words[++i];
      std::from_chars(number.data(), number.data() + number.size(), arguments.seeds);
    } else {
      arguments.names.push_back(word);
    }
  }
  return arguments;
}

std::shared_ptr<const Job> job_of(Base base) {
  if (base == Base::tiny) return test::job_of(test::tiny_plan());
  Plan plan = base == Base::tied ? test::text_plan() : test::tiny_plan();
  plan.pipeline.stages = 2;
  plan.workers = 2;
  return test::job_of(plan);
}

sim::SearchResult search_with(Mutant mutant, Base base, std::uint64_t seeds) {
  planted_mutant = mutant;
  sim::SearchOptions options;
  options.last = seeds;
  options.twice_one_in = 0;
  options.shrink_trials = 0;
  options.draw = {.least_workers = 2, .most_workers = 6, .most_shards = 3, .iterations = 150};
  return sim::search(*job_of(base), options);
}

void print(const Arguments& arguments, const Described& mutant, const std::string& seeds,
           double took, const std::string& by) {
  const std::string name(mutant.name), breaks(mutant.breaks);
  if (arguments.markdown) {
    std::printf("| `%s` | %s | %s | %s |\n", name.c_str(), breaks.c_str(), by.c_str(),
                seeds.c_str());
  } else {
    std::printf("%-26s %-60s %5s %5.1f s  %s\n", name.c_str(), breaks.c_str(), seeds.c_str(), took,
                by.c_str());
  }
  std::fflush(stdout);
}

void print(const Arguments& arguments, const Described& mutant, const sim::SearchResult& result) {
  const bool found = !result.failures.empty();
  print(arguments, mutant, found ? concat(result.failures[0].seed) : concat("> ", arguments.seeds),
        result.took.count(), found ? result.failures[0].trial.property : "NOT FOUND");
}

/// True when no run without a bug fails. A transformer takes longer, and has fewer.
bool sound(const Arguments& arguments, Base base) {
  const std::uint64_t seeds = base == Base::tied ? arguments.seeds / 5 : arguments.seeds;
  const auto result = search_with(Mutant::none, base, seeds);
  if (result.failures.empty()) {
    if (!arguments.markdown)
      std::printf("no bug planted: %s runs pass in %.1f s\n", concat(result.seeds).c_str(),
                  result.took.count());
    return true;
  }
  const auto& [seed, drawn, shrunk, trial] = result.failures[0];
  std::printf("with no bug planted, seed %s fails: %s\n%s\n", concat(seed).c_str(),
              trial.property.c_str(), trial.report.c_str());
  return false;
}

int run(const Arguments& arguments) {
  for (const Base base : {Base::tiny, Base::tied})
    if (arguments.names.empty() && !sound(arguments, base)) return 1;
  if (arguments.markdown) {
    std::printf("| planted | what it breaks | found by | seed |\n|---|---|---|---|\n");
  }
  int missed = 0;
  for (const Described& mutant : kMutants) {
    if (!arguments.wants(mutant)) continue;
    const auto result = search_with(mutant.mutant, mutant.base, arguments.seeds);
    print(arguments, mutant, result);
    missed += result.failures.empty() ? 1 : 0;
  }
  if (missed > 0) std::printf("%d not found\n", missed);
  return missed > 0 ? 1 : 0;
}

}  // namespace
}  // namespace leeway

int main(int count, char** words) {
  return leeway::run(leeway::parse({words, static_cast<std::size_t>(count)}));
}
