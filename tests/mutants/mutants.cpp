// Plants each bug in turn and lets the search find it; reports the check that found it and the
// number of runs. Fails if a bug is not found, or if a run without a bug fails.
//
//   mutants_test                  all mutants
//   mutants_test fence_forgotten  only these
//   mutants_test --seeds 5000     more runs per mutant
//   mutants_test --report         also what the check has seen
//   mutants_test --markdown       prints the table of docs/simulator.md
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

/// The base plan of a search. A third of the runs drawn from `tiny` have pipelines, and all runs
/// drawn from the others. Gradients of `encoded` are sent in 8 bits. `tied` is a transformer with
/// tied weights in its first and last stage. Runs drawn from `crashing` write checkpoints, lose
/// power and are resumed; they train with Adam and an lr schedule. `encoded_crashing` is both.
/// Products of `overflowing` have operands in fp16, and losses often a factor too large for it.
/// Runs drawn from `clustered`, and no others, are on node agents. Runs drawn from `replicated`
/// lose replicas of shards, and those drawn from `losing` lose nodes with replicas.
enum class Base {
  tiny,
  encoded,
  piped,
  tied,
  crashing,
  encoded_crashing,
  overflowing,
  replicated,
  losing,
  clustered
};

bool is_crashing(Base base) {
  return base == Base::crashing || base == Base::encoded_crashing;
}

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
    LEEWAY_MUTANT(one_iteration_too_far, "a pull is answered one iteration beyond the bound"),
    LEEWAY_MUTANT(own_pushes_not_awaited,
                  "a pull does not wait for earlier pushes of the same worker"),
    LEEWAY_MUTANT(parked_pull_forgotten, "a parked pull is never answered"),
    LEEWAY_MUTANT(waits_for_the_evicted, "an evicted worker still counts in min_clock"),
    LEEWAY_MUTANT(waits_for_the_idle, "an idle worker still counts in min_clock"),
    LEEWAY_MUTANT(clock_counted_twice, "a push advances the clock by two"),
    LEEWAY_MUTANT(repeat_applied, "a repeated push is applied again"),
    LEEWAY_MUTANT(acknowledged_too_early,
                  "a repeated push is acknowledged before the first is applied"),
    LEEWAY_MUTANT(push_not_sent_again, "a push lost with a connection is not sent again"),
    LEEWAY_MUTANT(round_applied_early, "under bsp, a round is applied after its first push"),
    LEEWAY_MUTANT(dropped_push_applied, "a round takes pushes that arrive after it was closed"),
    LEEWAY_MUTANT_IN(clustered, round_closed_too_early,
                     "backup: the lead shard closes a round one push too early"),
    LEEWAY_MUTANT(closed_round_not_scaled,
                  "quorum: a round of more pushes than it needs has a larger weight"),
    LEEWAY_MUTANT(bound_falls_behind, "an adaptive bound falls for iterations that have begun"),
    LEEWAY_MUTANT(straggling_push_not_in_snapshot,
                  "a snapshot misses later pushes of earlier iterations"),
    LEEWAY_MUTANT(gradient_of_other_weights,
                  "a worker reports another version of the weights than it used"),
    LEEWAY_MUTANT_IN(encoded, residual_forgotten,
                     "a worker does not add what an encoding has lost"),
    LEEWAY_MUTANT_IN(encoded, residual_not_restored, "the residual of a dropped push stays"),
    LEEWAY_MUTANT_IN(encoded_crashing, missing_residuals_not_reported,
                     "a shard does not report that a checkpoint lacks residuals"),
    LEEWAY_MUTANT_IN(encoded_crashing, residual_kept_back,
                     "a worker encodes the push before a checkpoint"),
    LEEWAY_MUTANT_IN(overflowing, overflow_left_out,
                     "the other pushes of a round with an overflow are applied"),
    LEEWAY_MUTANT(group_gradient_not_awaited,
                  "the lead pushes without the last gradients of its group"),
    LEEWAY_MUTANT(group_samples_twice, "two workers of a group compute the same sample"),
    LEEWAY_MUTANT(group_session_kept, "a group goes on after a broken link between its workers"),
    LEEWAY_MUTANT_IN(tied, tied_gradient_applied_alone,
                     "one stage's gradient is applied without the other's"),
    LEEWAY_MUTANT_IN(tied, tied_gradient_lost,
                     "a gradient that waits for an evicted stage is dropped"),
    LEEWAY_MUTANT_IN(tied, sibling_not_awaited,
                     "a pull does not wait for the other stage's pushes"),
    LEEWAY_MUTANT_IN(piped, backward_on_newer_weights,
                     "a backward uses the newest version, not its forward's"),
    LEEWAY_MUTANT_IN(piped, micro_batch_twice, "an activation goes through the stage twice"),
    LEEWAY_MUTANT_IN(piped, stale_session_taken, "messages of an earlier session are accepted"),
    LEEWAY_MUTANT_IN(piped, pulled_too_early,
                     "a pull ignores the later iterations that go forward on it"),
    LEEWAY_MUTANT_IN(piped, own_updates_left_out,
                     "a pull requests weights without the stage's last update"),
    LEEWAY_MUTANT_IN(piped, stops_in_the_middle,
                     "a stage stops without finishing started micro-batches"),
    LEEWAY_MUTANT_IN(piped, links_of_stages_forgotten, "stages continue after a broken link"),
    LEEWAY_MUTANT_IN(piped, applied_buckets_pushed_again,
                     "a lease's list of applied buckets is ignored"),
    LEEWAY_MUTANT(fence_forgotten, "pushes of an evicted worker are accepted until it is removed"),
    LEEWAY_MUTANT(old_session_accepted, "pushes of an earlier session are accepted"),
    LEEWAY_MUTANT(admitted_behind, "a worker is admitted behind min_clock"),
    LEEWAY_MUTANT(admission_left_uneven, "a worker starts although the shards' iterations differ"),
    LEEWAY_MUTANT(started_too_early, "a worker starts before all shards know it"),
    LEEWAY_MUTANT(partial_push_counted_as_trained, "a partial push counts as trained"),
    LEEWAY_MUTANT(leaver_not_awaited, "a leaving worker is removed in the middle of an iteration"),
    LEEWAY_MUTANT_IN(piped, stage_joins_alone,
                     "a pipeline is admitted before all its stages have joined"),
    LEEWAY_MUTANT(leased_twice, "returned samples are leased to two workers"),
    LEEWAY_MUTANT(trained_leased_again, "a dead worker's trained samples are leased again"),
    LEEWAY_MUTANT(dropped_samples_lost, "samples of a dropped push are not leased again"),
    LEEWAY_MUTANT(applied_buckets_forgotten,
                  "a partial iteration is leased again without its applied buckets"),
    LEEWAY_MUTANT(no_data_not_sent, "no worker is notified that there are no samples"),
    LEEWAY_MUTANT(lease_not_asked_again, "a lease request lost with a connection is not repeated"),
    LEEWAY_MUTANT(order_not_sent_again, "an order lost with a connection is not sent again"),
    LEEWAY_MUTANT(repeated_order_obeyed, "an order that is sent again is carried out again"),
    LEEWAY_MUTANT_IN(replicated, output_not_committed,
                     "a primary's output leaves before its standby has the input"),
    LEEWAY_MUTANT_IN(replicated, takes_over_behind,
                     "a standby takes over without the last inputs that it has"),
    LEEWAY_MUTANT_IN(replicated, rounds_not_seeded,
                     "a new standby lacks the pushes that wait for their round"),
    LEEWAY_MUTANT_IN(replicated, in_sync_too_early,
                     "a standby counts as in sync without inputs whose outputs have left"),
    LEEWAY_MUTANT_IN(losing, takeover_not_announced,
                     "other nodes do not learn that a standby has taken over"),
    LEEWAY_MUTANT_IN(losing, standby_beside_primary,
                     "a new standby is launched on the node of its primary"),
    LEEWAY_MUTANT_IN(losing, standby_launch_not_counted,
                     "the next launch of a standby has the number of the last one"),
    LEEWAY_MUTANT_IN(losing, left_without_standby,
                     "a node that leaves ends its shard before the standby is in sync"),
    LEEWAY_MUTANT(start_not_sent_again, "a Start lost with a connection is not sent again"),
    LEEWAY_MUTANT(stop_not_sent_again, "a Stop lost with a connection is not sent again"),
    LEEWAY_MUTANT_IN(crashing, manifest_before_files,
                     "a manifest is written before a file that it lists"),
    LEEWAY_MUTANT_IN(crashing, file_not_flushed,
                     "a file is renamed before its content is on the disk"),
    LEEWAY_MUTANT_IN(crashing, folder_not_flushed, "the names of new files are not flushed"),
    LEEWAY_MUTANT_IN(crashing, old_removed_first,
                     "earlier checkpoints are removed before the next one is complete"),
    LEEWAY_MUTANT_IN(crashing, supply_of_another_moment,
                     "a manifest has the samples left when it is written"),
    LEEWAY_MUTANT_IN(crashing, returned_not_stored, "a manifest lacks the samples that came back"),
    LEEWAY_MUTANT_IN(crashing, versions_restart, "the versions of a resumed run start at 0"),
    LEEWAY_MUTANT_IN(crashing, slots_restart,
                     "the optimizer of a resumed run starts without state"),
    LEEWAY_MUTANT_IN(crashing, progress_restarts,
                     "the lr schedule of a resumed run starts at its begin"),
    LEEWAY_MUTANT_IN(crashing, iterations_restart, "the iterations of a resumed run start at 0"),
    LEEWAY_MUTANT_IN(crashing, epochs_restart,
                     "the orders of a resumed run are those of the first epoch"),
    LEEWAY_MUTANT_IN(clustered, launch_not_counted,
                     "the next launch of a worker has the number of the last one"),
    LEEWAY_MUTANT_IN(clustered, launch_not_announced,
                     "other nodes do not learn on which node a worker is launched"),
    LEEWAY_MUTANT_IN(clustered, loss_of_node_not_reported,
                     "actors do not learn that a node is gone"),
    LEEWAY_MUTANT_IN(clustered, link_loss_not_reported,
                     "agents do not report lost connections to the coordinator"),
    LEEWAY_MUTANT_IN(clustered, loading_not_reported,
                     "an agent does not report that it loads the data"),
    LEEWAY_MUTANT_IN(clustered, cut_off_not_resumed,
                     "workers that an outage has ended do not begin again"),
    LEEWAY_MUTANT_IN(clustered, offer_forgotten, "a node that waits for a worker is not answered"),
    LEEWAY_MUTANT_IN(clustered, lost_node_not_called,
                     "a lost node that runs again does not take part again"),
    LEEWAY_MUTANT_IN(clustered, second_job_taken, "a node that hosts a job takes another one"),
#undef LEEWAY_MUTANT_IN
#undef LEEWAY_MUTANT
};
static_assert(std::size(kMutants) + 1 == static_cast<std::size_t>(Mutant::count_));

struct Arguments {
  bool markdown = false, report = false;
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
    } else if (word == "--report") {
      arguments.report = true;
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
  if (base == Base::tiny || base == Base::replicated || base == Base::losing ||
      base == Base::clustered)
    return test::job_of(test::tiny_plan());
  if (is_crashing(base)) {
    Plan plan = test::tiny_plan();
    plan.optimizer.kind = plan::Adam{};
    plan.lr_schedule.kind = plan::Cosine{};
    if (base == Base::encoded_crashing) plan.compress.push = plan::Int8{};
    return test::job_of(plan);
  }
  if (base == Base::encoded || base == Base::overflowing) {
    Plan plan = test::tiny_plan();
    if (base == Base::encoded) plan.compress.push = plan::Int8{};
    if (base == Base::overflowing) plan.precision = "fp16";
    return test::job_of(plan);
  }
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
  options.crash_one_in = is_crashing(base) ? 1 : 0;
  options.loss_one_in = base == Base::replicated || base == Base::losing ? 1 : 0;
  options.shrink_trials = 0;
  options.draw = {.least_workers = 2,
                  .most_workers = 6,
                  .most_shards = 3,
                  .iterations = 150,
                  .cluster_one_in = base == Base::losing || base == Base::clustered ? 1u : 0u};
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

/// True if all runs without a bug pass. Tries fewer seeds for those that take longer.
bool passes_without_bugs(const Arguments& arguments, Base base) {
  const std::uint64_t seeds = base == Base::tiny ? arguments.seeds : arguments.seeds / 5;
  const auto result = search_with(Mutant::none, base, seeds);
  if (result.failures.empty()) {
    if (!arguments.markdown)
      std::printf("no bug planted: %s runs pass in %.1f s\n", concat(result.seeds).c_str(),
                  result.took.count());
    return true;
  }
  const auto& [seed, drawn, shrunk, trial, crashes] = result.failures[0];
  std::printf("with no bug planted, seed %s fails: %s\n%s\n", concat(seed).c_str(),
              trial.property.c_str(), trial.report.c_str());
  return false;
}

int run(const Arguments& arguments) {
  for (const Base base :
       {Base::tiny, Base::encoded, Base::tied, Base::crashing, Base::encoded_crashing,
        Base::overflowing, Base::replicated, Base::losing, Base::clustered})
    if (arguments.names.empty() && !passes_without_bugs(arguments, base)) return 1;
  if (arguments.markdown) {
    std::printf("| mutant | planted bug | found by | seed |\n|---|---|---|---|\n");
  }
  int missed = 0;
  for (const Described& mutant : kMutants) {
    if (!arguments.wants(mutant)) continue;
    const auto result = search_with(mutant.mutant, mutant.base, arguments.seeds);
    print(arguments, mutant, result);
    if (arguments.report && !result.failures.empty())
      std::printf("%s\n", result.failures[0].trial.report.c_str());
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
