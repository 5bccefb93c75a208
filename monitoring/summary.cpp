#include "monitoring/summary.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "actors/stage/stage_memory.hpp"
#include "checkpoint/store.hpp"
#include "core/text.hpp"
#include "monitoring/format.hpp"
#include "plan/groups.hpp"
#include "plan/settings.hpp"

namespace leeway {
namespace {

/// Null if the run computed no gradients or was never evaluated.
const EvaluationResult* final_evaluation(const Job& job, const RunReport& totals) {
  if (!job.has_losses() || totals.evaluations.empty() || !totals.evaluations.back().final)
    return nullptr;
  return &totals.evaluations.back();
}

/// Peak memory of each stage: predicted from shapes and measured.
void print_memory(std::ostream& out, const Job& job, const RunReport& totals) {
  const Stages& stages = *job.stages;
  const auto measures = [](const WorkerTotals& worker) { return worker.memory_bytes > 0; };
  if (!stages.piped() || std::ranges::none_of(totals.workers, measures)) return;
  out << "\nMemory of a stage     weights   gradients  activations   together    measured\n";
  for (std::uint32_t stage = 0; stage < stages.count(); ++stage) {
    const StageMemory memory = predicted_memory(job.plan, *job.model, stages, stage);
    std::uint64_t measured = 0;
    for (std::size_t worker = stage; worker < totals.workers.size(); worker += stages.count())
      measured = std::max(measured, totals.workers[worker].memory_bytes);
    if (measured == 0) continue;
    out << std::setw(17) << stage << std::setw(12) << size_text(memory.weights) << std::setw(12)
        << size_text(memory.gradients) << std::setw(13) << size_text(memory.activations)
        << std::setw(11) << size_text(memory.total()) << std::setw(12) << size_text(measured)
        << '\n';
  }
}

/// Such as "dirichlet, 812 to 14,020 samples of each worker's own".
std::string split_text(const Job& job) {
  std::int64_t least = job.data.train->size(), most = 0;
  for (std::uint32_t share = 0; share < job.split->shares(); ++share) {
    least = std::min(least, job.split->size_of(share));
    most = std::max(most, job.split->size_of(share));
  }
  return concat(plan::choices("split_data")[job.plan.split_data.index()], ", ",
                grouped(static_cast<std::uint64_t>(least)), " to ",
                grouped(static_cast<std::uint64_t>(most)), " samples of each ",
                job.stages->piped()     ? "pipeline"
                : job.stages->grouped() ? "group"
                                        : "worker",
                "'s own");
}

std::uint64_t outdated_iterations(const RunReport& totals) {
  std::uint64_t count = 0;
  for (const WorkerTotals& worker : totals.workers) count += worker.outdated;
  return count;
}

void print_end(std::ostream& out, const WorkerTotals& row, const char* indent) {
  if (!row.end.empty()) out << indent << (row.back ? "came back after: " : "ended: ") << row.end;
}

void print_workers(std::ostream& out, const RunReport& totals) {
  out << "  worker  iterations     samples   computing     waiting\n";
  for (std::size_t worker = 0; worker < totals.workers.size(); ++worker) {
    const auto& row = totals.workers[worker];
    out << "  " << std::setw(6) << worker << std::setw(12) << grouped(row.iterations)
        << std::setw(12) << grouped(row.samples) << std::setw(12) << duration(row.compute.seconds())
        << std::setw(12) << duration(row.wait.seconds());
    print_end(out, row, "   ");
    out << '\n';
  }
}

/// The samples of a stage are those of its pipeline. Waiting time is split by its cause: the stage
/// before, the stage after, or weights and leases.
void print_stages(std::ostream& out, const Stages& stages, const RunReport& totals) {
  const std::size_t count = stages.count();
  out << "  pipeline  stage  worker  iterations     samples   computing     waiting for: stage "
         "before"
         "  stage after  weights, samples\n";
  for (std::size_t worker = 0; worker < totals.workers.size(); ++worker) {
    const auto& row = totals.workers[worker];
    const std::size_t lead = worker - worker % count;
    out << std::setw(10) << worker / count << std::setw(7) << worker % count << std::setw(8)
        << worker << std::setw(12) << grouped(row.iterations) << std::setw(12)
        << grouped(totals.workers[lead + stages.loss_stage()].samples) << std::setw(12)
        << duration(row.compute.seconds()) << std::setw(12) << duration(row.wait.seconds())
        << std::setw(18) << duration(row.wait_before.seconds()) << std::setw(13)
        << duration(row.wait_after.seconds()) << std::setw(18)
        << duration((row.wait - row.wait_before - row.wait_after).seconds()) << '\n';
    if (worker + 1 == lead + count && !totals.workers[lead].end.empty()) {
      print_end(out, totals.workers[lead], "            ");
      out << '\n';
    }
  }
}

/// Workers that wait for a pipeline wait for its slowest stage: prints the busiest one.
void print_bottlenecks(std::ostream& out, const Stages& stages, const RunReport& totals) {
  std::map<WorkerId, Duration> waited;
  for (const auto& wait : totals.waits)
    if (const WorkerId lead = stages.lead_of(wait.for_worker); lead != stages.lead_of(wait.worker))
      waited[lead] += wait.time;
  for (const auto& [lead, time] : waited) {
    const auto compute = [&, first = lead](std::uint32_t stage) {
      return totals.workers[stages.worker(first, stage).value()].compute;
    };
    std::uint32_t busiest = 0;
    for (std::uint32_t stage = 1; stage < stages.count(); ++stage)
      if (compute(stage) > compute(busiest)) busiest = stage;
    const auto& row = totals.workers[stages.worker(lead, busiest).value()];
    const double all = (row.compute + row.wait).seconds();
    if (all <= 0) continue;
    out << "  all for pipeline " << lead.value() / stages.count() << ": "
        << duration(time.seconds()) << "; its busiest is stage " << busiest << " (worker "
        << stages.worker(lead, busiest) << "), which computed "
        << percent(row.compute.seconds() / all) << " of its time\n";
  }
}

void print_waits(std::ostream& out, const Stages& stages, const RunReport& totals) {
  if (totals.waits.empty()) return;
  out << "\nLongest waits between workers\n";
  const std::size_t shown = std::min<std::size_t>(totals.waits.size(), 5);
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& wait = totals.waits[i];
    const bool is_in_group =
        stages.grouped() && stages.lead_of(wait.worker) == stages.lead_of(wait.for_worker);
    out << "  " << stages.name_of(wait.worker) << " for " << stages.name_of(wait.for_worker) << ": "
        << duration(wait.time.seconds()) << " in " << grouped(wait.count)
        << (is_in_group ? " iterations" : " pulls") << '\n';
  }
  if (totals.waits.size() > shown)
    out << "  ... and " << totals.waits.size() - shown << " more pairs\n";
  if (stages.piped()) print_bottlenecks(out, stages, totals);
}

void print_lags(std::ostream& out, const std::vector<std::uint64_t>& lags) {
  const std::uint64_t all = std::accumulate(lags.begin(), lags.end(), std::uint64_t{0});
  if (all == 0) return;
  out << "\nVersion lag of the pushes (updates between pull and push)\n  median "
      << lag_quantile(lags, 0.5) << ", 90% within " << lag_quantile(lags, 0.9) << ", 99% within "
      << lag_quantile(lags, 0.99) << '\n';
  for (std::size_t lag = 0; lag < lags.size(); ++lag) {
    const double share = static_cast<double>(lags[lag]) / static_cast<double>(all);
    if (share < 0.005) continue;
    out << "  " << std::setw(4) << lag << (lag + 1 == lags.size() ? "+" : " ") << std::setw(8)
        << percent(share) << "  "
        << std::string(static_cast<std::size_t>(std::lround(share * 50)), '#') << '\n';
  }
}

void print_checkpoints(std::ostream& out, const Job& job, const RunReport& totals) {
  if (job.resumed)
    out << "  resumed from    checkpoint " << job.resumed->manifest.number << ", at "
        << grouped(totals.end.samples_trained - samples_of_this_process(job, totals))
        << " samples\n";
  const CheckpointResult *last = nullptr, *failed = nullptr;
  std::size_t written = 0;
  for (const auto& checkpoint : totals.checkpoints) {
    written += checkpoint.error.empty() ? 1 : 0;
    (checkpoint.error.empty() ? last : failed) = &checkpoint;
  }
  if (last)
    out << "  checkpoints     " << written << " written, the last one is number " << last->number
        << ", at " << grouped(last->samples_trained) << " samples (" << size_text(last->bytes)
        << ")\n";
  if (failed)
    out << "  checkpoints     " << totals.checkpoints.size() - written
        << " could not be written: " << failed->error << '\n';
}

void add_checkpoints(nlohmann::ordered_json& json, const Job& job, const RunReport& totals) {
  if (job.resumed) json["resumed_from_checkpoint"] = job.resumed->manifest.number;
  json["checkpoints"] = nlohmann::ordered_json::array();
  for (const auto& checkpoint : totals.checkpoints) {
    nlohmann::ordered_json entry{{"number", checkpoint.number},
                                 {"seconds", (checkpoint.now - Instant{}).seconds()},
                                 {"samples_trained", checkpoint.samples_trained},
                                 {"bytes", checkpoint.bytes}};
    if (!checkpoint.error.empty()) entry["error"] = checkpoint.error;
    json["checkpoints"].push_back(entry);
  }
}

void print_warnings(std::ostream& out, const RunReport& totals) {
  if (totals.warnings.empty()) return;
  out << "\nWithout effect\n";
  for (const auto& warning : totals.warnings) out << "  " << warning << '\n';
}

void add_effects(nlohmann::ordered_json& json, const RunReport& totals) {
  json["straggler_seconds"] = totals.straggler_seconds;
  json["faults_fired"] = totals.faults_fired;
  json["warnings"] = totals.warnings;
}

}  // namespace

std::size_t lag_quantile(const std::vector<std::uint64_t>& lags, double share) {
  const auto all = static_cast<double>(std::accumulate(lags.begin(), lags.end(), std::uint64_t{0}));
  double below = 0;
  for (std::size_t lag = 0; lag < lags.size(); ++lag) {
    below += static_cast<double>(lags[lag]);
    if (below >= share * all) return lag;
  }
  return lags.empty() ? 0 : lags.size() - 1;
}

std::string describe_actors(const Plan& plan) {
  const auto counted = [](std::uint32_t count, const char* what) {
    return concat(count, ' ', what, count == 1 ? "" : "s");
  };
  const auto& pipeline = plan.pipeline;
  const std::string shards = counted(plan.shards, "shard");
  if (const std::uint32_t group = workers_per_group(plan); group > 1)
    return concat(counted(plan.workers / group, "host group"), " of ", group, " workers, ", shards);
  if (pipeline.stages <= 1) return concat(counted(plan.workers, "worker"), ", ", shards);
  return concat(counted(plan.workers / pipeline.stages, "pipeline"), " of ", pipeline.stages,
                " stages (", pipeline.schedule,
                pipeline.chunks > 1 ? concat(", ", pipeline.chunks, " chunks each") : "", ", ",
                plan.micro_batches, plan.micro_batches == 1 ? " micro-batch" : " micro-batches",
                "), ", shards);
}

std::uint64_t samples_of_this_process(const Job& job, const RunReport& totals) {
  if (!job.resumed) return totals.end.samples_trained;
  const auto before = checkpoint::samples_trained(job.resumed->manifest);
  return totals.end.samples_trained - std::min(totals.end.samples_trained, before);
}

std::string summary(const Job& job, const RunReport& totals) {
  std::ostringstream out;
  const auto& plan = job.plan;
  const double time = (totals.last.now - Instant{}).seconds();
  const auto bound = job.consistency->largest_bound();
  out << '\n' << plan.name << ": " << name_of(totals.end.reason);
  if (!totals.end.text.empty()) out << " (" << totals.end.text << ')';
  out << "\n\n";
  if (const auto* last = final_evaluation(job, totals)) {
    out << "  test loss       " << fixed(last->loss, 4) << '\n';
    if (job.data.test->classes() > 0)
      out << "  test accuracy   " << percent(last->accuracy) << '\n';
  }
  if (job.stages->has_several()) out << "  actors          " << describe_actors(plan) << '\n';
  out << "  time            " << duration(time) << '\n'
      << "  throughput      "
      << grouped(static_cast<std::uint64_t>(
             static_cast<double>(samples_of_this_process(job, totals)) / std::max(time, 1e-9)))
      << " samples/s\n"
      << "  samples trained " << grouped(totals.end.samples_trained) << '\n'
      << "  consistency     " << job.consistency->name();
  if (job.consistency->has_moving_bound())
    out << ", staleness bound " << job.consistency->bound() << " to " << bound << ", in the end "
        << totals.last.staleness;
  else if (bound != kUnbounded && !job.consistency->by_rounds())
    out << ", staleness bound " << bound;
  if (const RoundSize size = job.consistency->round_size(); size.drops())
    out << ", rounds of " << size.of(job.stages->pipelines()) << " pushes or more";
  if (job.delay_policy) {
    out << "\n  delay policy    " << job.delay_policy->name();
    if (const auto limit = job.delay_policy->lag_limit()) out << ", lags below " << *limit;
  }
  if (job.local_optimizer)
    out << "\n  local steps     " << plan.local_steps.count << " of " << job.local_optimizer->name()
        << ", outer optimizer "
        << plan::choices("local_steps.outer")[plan.local_steps.outer.kind.index()] << " at rate "
        << plan.local_steps.outer.learning_rate;
  if (job.split) out << "\n  split data      " << split_text(job);
  if (plan.participation < 1)
    out << "\n  participation   " << percent(plan.participation) << " of the "
        << (job.stages->piped()     ? "pipelines"
            : job.stages->grouped() ? "groups"
                                    : "workers")
        << " in each round";
  if (plan.balance == plan::Balance::by_speed) out << "\n  balance         by speed";
  out << "\n  clock gap       at most " << totals.last.max_clock_gap;
  if (bound != kUnbounded)
    out << ", allowed " << bound + 1 << " (the bound plus the iteration just pushed)";
  out << "\n  parked pulls    " << grouped(totals.last.parked_pulls) << '\n';
  for (const auto& [name, text] :
       {std::pair("gradients", codec_text(totals.last.push_bytes, totals.last.plain_push_bytes)),
        std::pair("weights  ", codec_text(totals.last.pull_bytes, totals.last.plain_pull_bytes)),
        std::pair("stages   ", codec_text(totals.last.stage_bytes, totals.last.plain_stage_bytes))})
    if (!text.empty()) out << "  " << name << "       " << text << '\n';
  if (totals.last.kept_bytes > 0)
    out << "  old weights     " << size_text(totals.last.kept_bytes) << " kept at most for "
        << job.delay_policy->name() << '\n';
  if (totals.end.partial_pushes > 0)
    out << "  partial pushes  " << totals.end.partial_pushes << " (completed by others)\n";
  if (totals.end.lost_residuals > 0)
    out << "  lost residuals  " << totals.end.lost_residuals
        << " (of workers that ended; docs/compression.md)\n";
  if (totals.end.dropped_pushes > 0)
    out << "  dropped pushes  " << grouped(totals.end.dropped_pushes)
        << " (their samples were trained in other rounds)\n";
  if (totals.last.loss_scale > 0)
    out << "  loss scale      " << grouped(static_cast<std::uint64_t>(totals.last.loss_scale))
        << " at the end; " << grouped(totals.last.skipped_updates)
        << (totals.last.skipped_updates == 1 ? " update" : " updates")
        << " skipped after an overflow\n";
  if (const auto outdated = outdated_iterations(totals); outdated > 0)
    out << "  outdated        " << grouped(outdated)
        << " (iterations computed again with newer weights)\n";
  if (totals.last.malformed > 0)
    out << "  malformed       " << totals.last.malformed << " messages refused\n";
  print_checkpoints(out, job, totals);
  out << '\n';
  if (job.stages->piped())
    print_stages(out, *job.stages, totals);
  else
    print_workers(out, totals);
  print_memory(out, job, totals);
  print_waits(out, *job.stages, totals);
  print_lags(out, totals.version_lags);
  print_warnings(out, totals);
  return out.str();
}

std::string result_json(const Job& job, const RunReport& totals) {
  const auto& plan = job.plan;
  const double time = (totals.last.now - Instant{}).seconds();
  const auto bound = job.consistency->largest_bound();
  nlohmann::ordered_json json;
  json["name"] = plan.name;
  std::string reason(name_of(totals.end.reason));
  std::replace(reason.begin(), reason.end(), ' ', '_');
  json["reason"] = reason;
  json["text"] = totals.end.text;
  json["seed"] = plan.seed;
  if (const auto* last = final_evaluation(job, totals)) {
    json["test_loss"] = last->loss;
    if (job.data.test->classes() > 0) json["test_accuracy"] = last->accuracy;
  }
  json["seconds"] = time;
  json["samples_per_second"] =
      static_cast<double>(samples_of_this_process(job, totals)) / std::max(time, 1e-9);
  json["iterations"] = totals.last.iterations;
  json["samples_trained"] = totals.end.samples_trained;
  json["consistency"] = job.consistency->name();
  json["staleness_bound"] =
      bound == kUnbounded ? nlohmann::ordered_json() : nlohmann::ordered_json(bound);
  if (job.consistency->has_moving_bound()) {
    json["least_staleness_bound"] = job.consistency->bound();
    json["last_staleness_bound"] = totals.last.staleness;
  }
  json["max_clock_gap"] = totals.last.max_clock_gap;
  json["parked_pulls"] = totals.last.parked_pulls;
  json["pushed_bytes"] = totals.last.push_bytes;
  json["pushed_bytes_without_codec"] = totals.last.plain_push_bytes;
  json["pulled_bytes"] = totals.last.pull_bytes;
  json["pulled_bytes_without_codec"] = totals.last.plain_pull_bytes;
  json["stage_bytes"] = totals.last.stage_bytes;
  json["stage_bytes_without_codec"] = totals.last.plain_stage_bytes;
  json["balance"] = plan::choices("balance")[static_cast<std::size_t>(plan.balance)];
  json["delay_policy"] = job.delay_policy ? job.delay_policy->name() : "plain";
  json["local_steps"] = plan.local_steps.count;
  json["split_data"] = plan::choices("split_data")[plan.split_data.index()];
  json["participation"] = plan.participation;
  json["kept_weight_bytes"] = totals.last.kept_bytes;
  json["partial_pushes"] = totals.end.partial_pushes;
  json["dropped_pushes"] = totals.end.dropped_pushes;
  json["loss_scale"] = totals.last.loss_scale;
  json["skipped_updates"] = totals.last.skipped_updates;
  json["outdated_iterations"] = outdated_iterations(totals);
  json["lost_residuals"] = totals.end.lost_residuals;
  json["malformed_messages"] = totals.last.malformed;
  json["refused_messages"] = totals.last.refused;
  for (std::size_t worker = 0; worker < totals.workers.size(); ++worker) {
    const auto& row = totals.workers[worker];
    nlohmann::ordered_json entry{{"worker", worker}};
    const std::size_t count = job.stages->count(), stage = worker % count;
    if (job.stages->piped()) {
      entry["pipeline"] = worker / count;
      entry["stage"] = stage;
      entry["memory_bytes"] = row.memory_bytes;
      entry["predicted_memory_bytes"] =
          predicted_memory(job.plan, *job.model, *job.stages, static_cast<std::uint32_t>(stage))
              .total();
    }
    if (job.stages->grouped()) entry["group"] = worker / count;
    entry["iterations"] = row.iterations;
    const std::size_t counted = job.stages->counts_samples(WorkerId(worker))
                                    ? worker
                                    : worker - stage + job.stages->loss_stage();
    entry["samples"] = totals.workers[counted].samples;
    entry["compute_seconds"] = row.compute.seconds();
    entry["wait_seconds"] = row.wait.seconds();
    if (job.stages->piped()) {
      entry["wait_for_stage_before_seconds"] = row.wait_before.seconds();
      entry["wait_for_stage_after_seconds"] = row.wait_after.seconds();
    }
    if (!row.end.empty()) entry[row.back ? "came_back_after" : "ended"] = row.end;
    json["workers"].push_back(entry);
  }
  json["waits"] = nlohmann::ordered_json::array();
  for (const auto& wait : totals.waits)
    json["waits"].push_back({{"worker", wait.worker.value()},
                             {"for_worker", wait.for_worker.value()},
                             {"seconds", wait.time.seconds()},
                             {"pulls", wait.count}});
  add_effects(json, totals);
  add_checkpoints(json, job, totals);
  json["version_lag"] = totals.version_lags;
  json["evaluations"] = nlohmann::ordered_json::array();
  for (const auto& result : totals.evaluations) {
    if (!job.has_losses()) break;
    nlohmann::ordered_json entry{{"seconds", (result.now - Instant{}).seconds()},
                                 {"samples_trained", result.samples_trained},
                                 {"test_loss", result.loss}};
    if (job.data.test->classes() > 0) entry["test_accuracy"] = result.accuracy;
    json["evaluations"].push_back(entry);
  }
  return json.dump(2) + "\n";
}

}  // namespace leeway
