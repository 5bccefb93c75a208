#include "runtime/outcome.hpp"

#include <algorithm>
#include <filesystem>

#include "checkpoint/store.hpp"
#include "core/check.hpp"
#include "core/exit_codes.hpp"
#include "core/text.hpp"
#include "kernels/precision.hpp"
#include "models/datasets/vocabulary.hpp"
#include "models/safetensors.hpp"
#include "monitoring/effects.hpp"
#include "monitoring/format.hpp"
#include "monitoring/summary.hpp"
#include "plan/precision.hpp"
#include "runtime/cluster/options.hpp"
#include "runtime/user_run.hpp"

namespace leeway {
namespace {

/// Assembles whole tensors from blocks; null without blocks.
std::shared_ptr<const NamedTensors> assemble(const Job& job, const std::vector<Blob>& blocks) {
  if (blocks.empty()) return nullptr;
  NamedTensors tensors;
  for (const auto& parameter : job.model->parameters())
    tensors.push_back({parameter.name, parameter.spec.shape, DType::f32,
                       Blob::floats(parameter.spec.shape.count())});
  for (const auto& block : job.layout->blocks()) {
    const Blob data = blocks[block.id.value()].on_host();
    for (const auto& slice : block.slices) {
      auto& tensor = tensors[static_cast<std::size_t>(slice.parameter)];
      std::copy_n(data.as_floats() + slice.offset, slice.floats,
                  tensor.data.mutable_floats() + slice.first);
    }
  }
  return std::make_shared<const NamedTensors>(std::move(tensors));
}

/// The flags of a run with other processes.
std::string cluster_flags(const ClusterOptions& cluster) {
  std::string flags;
  if (!cluster.nodes.empty()) flags = concat(" --nodes ", join(cluster.nodes, ","));
  if (!cluster.tls.empty()) flags += concat(" --tls ", shell_path(cluster.tls));
  if (!cluster.place.empty()) flags += concat(" --place ", cluster.place);
  const ClusterOptions usual;
  if (cluster.transport != usual.transport)
    flags += concat(" --transport ", name_of(cluster.transport));
  if (cluster.silence != usual.silence) flags += " --silence " + silence_text(cluster.silence);
  if (cluster.at_least > 0) flags += concat(" --at-least ", cluster.at_least);
  if (cluster.port > 0) flags += concat(" --port ", cluster.port);
  return flags;
}

std::string resume_from(const std::string& folder, const Job& job, const RunOptions& options) {
  ClusterOptions cluster = options.cluster ? *options.cluster : ClusterOptions();
  if (const auto& user = options.user_run; user && !user->program.empty()) {
    const auto workers = std::min<std::size_t>(job.plan.workers, cluster.nodes.size());
    cluster.nodes.erase(cluster.nodes.begin(),
                        cluster.nodes.begin() + static_cast<std::ptrdiff_t>(workers));
    cluster.place.clear();
    return concat(user->command, " --resume ", shell_path(folder), cluster_flags(cluster), ' ',
                  user->program);
  }
  const bool by_flag = options.command != kResumeCommand;
  return concat(options.command, by_flag ? " --resume " : " ", shell_path(folder),
                cluster.nodes.empty() ? "" : cluster_flags(cluster));
}

}  // namespace

std::span<const float> Result::weight(const std::string& name) const {
  LW_CHECK(weights, "the weights of a shard were lost");
  for (const auto& tensor : *weights)
    if (tensor.name == name)
      return {tensor.data.as_floats(), static_cast<std::size_t>(tensor.shape.count())};
  LW_CHECK(false, name);
}

Result empty_result(const Plan& plan) {
  Result result;
  result.plan = plan;
  result.seed = plan.seed;
  size_tables(result.totals, plan);
  result.straggler_seconds = result.totals.straggler_seconds;
  result.faults_fired = result.totals.faults_fired;
  return result;
}

void fill(Result& result, const Job& job, RunTotals totals) {
  add_host_counts(totals, job);
  find_ineffective(totals, job);
  const auto& last = totals.last;
  result.ran = true;
  result.seconds = (last.now - Instant{}).seconds();
  result.samples_trained = totals.end.samples_trained;
  result.samples_per_second =
      static_cast<double>(samples_of_this_process(job, totals)) / std::max(result.seconds, 1e-9);
  result.iterations = last.iterations;
  result.max_clock_gap = last.max_clock_gap;
  result.parked_pulls = last.parked_pulls;
  result.partial_pushes = totals.end.partial_pushes;
  result.dropped_pushes = totals.end.dropped_pushes;
  result.seed = job.plan.seed;
  result.train_samples = static_cast<std::uint64_t>(job.data.train->size());
  result.plan = job.given;
  result.straggler_seconds = totals.straggler_seconds;
  result.faults_fired = totals.faults_fired;
  result.warnings = totals.warnings;
  result.vocabulary = job.data.train->vocabulary();
  const auto bound = job.consistency->largest_bound();
  if (bound != kUnbounded) result.staleness_bound = bound;
  if (!totals.evaluations.empty() && totals.evaluations.back().final) {
    result.test_loss = totals.evaluations.back().loss;
    result.test_accuracy = totals.evaluations.back().accuracy;
  }
  result.weights = assemble(job, totals.weights);
  if (totals.end.reason == msg::RunEnded::Reason::failed) {
    result.exit_code = kExitFailed;
    result.error = totals.end.text;
    result.last_snapshot = assemble(job, totals.last_snapshot);
  } else if (totals.end.reason == msg::RunEnded::Reason::interrupted) {
    result.exit_code = kExitInterrupted;
  }
  result.totals = std::move(totals);
}

void keep_last_snapshot(Result& result, RunFolder* folder) {
  if (!result.last_snapshot) return;
  const Iteration iteration = result.totals.last_snapshot_iteration;
  std::string text = concat("; the last evaluated snapshot is of iteration ", iteration);
  if (folder) {
    const auto saved = folder->keep_last_snapshot(*result.last_snapshot, iteration);
    text += saved ? concat(": continue with --init ", folder->path("last-snapshot.safetensors"))
                  : concat("; ", saved.error().text);
  }
  result.totals.end.text += text;
  result.error += text;
}

void keep_result(Result& result, const Job& job, RunFolder& folder) {
  const auto& unwritten = folder.finish(result_json(job, result.totals),
                                        result.weights ? *result.weights : NamedTensors());
  for (const auto& file : unwritten) {
    if (!result.error.empty() || file.name == "curves.svg") continue;
    if (result.exit_code == kExitOk) result.exit_code = kExitFailed;
    result.error = concat("training has ended, but ", file.cause);
  }
}

std::string precision_note(const Job& job) {
  const auto precisions = parse_precision(job.plan.precision, job.plan.model);
  const auto& devices = job.devices.workers();
  const bool on_cpu = std::any_of(devices.begin(), devices.end(), [](const Device& device) {
    return device.kind != Device::Kind::cuda;
  });
  if (job.plan.simulated || !precisions || !on_cpu) return "";
  const auto slow = std::find_if(precisions->begin(), precisions->end(), [](Precision precision) {
    return is_half(precision) && kernels::operand_type(precision) == DType::f32;
  });
  if (slow == precisions->end()) return "";
  return concat("precision: this processor rounds operands to ", name_of(*slow),
                " and multiplies them in fp32, so ", name_of(*slow),
                " is slower than fp32; give --precision fp32, unless you want the rounding");
}

std::string space_note(const std::string& folder, const Job& job) {
  std::error_code error;
  const auto space = std::filesystem::space(folder, error);
  std::uint64_t needed = 0;
  for (const auto& parameter : job.model->parameters())
    needed += static_cast<std::uint64_t>(parameter.spec.shape.count()) * sizeof(float);
  if (error || space.available > needed) return "";
  return concat(folder, ": its disk has ", size_text(space.available),
                " free, and the trained weights need ", size_text(needed),
                "; free space before the run ends, or start it again with --out DIR on another "
                "disk");
}

void be_strict(Result& result) {
  if (result.warnings.empty() || result.exit_code != kExitOk) return;
  result.exit_code = kExitFailed;
  result.error = concat("strict: ", join(result.warnings, "; "));
}

std::string resume_text(const Job& job, const Result& result, const RunOptions& options) {
  const auto& written = result.totals.checkpoints;
  const bool has_written = std::any_of(written.begin(), written.end(),
                                       [](const auto& one) { return one.error.empty(); });
  if (result.exit_code == kExitOk || !(has_written || job.resumed)) return "";
  return concat(
      "\nResume it with: ",
      has_written ? resume_command(job, options) : resume_from(job.resumed->path(), job, options),
      '\n');
}

std::string resume_command(const Job& job, const RunOptions& options) {
  return resume_from(options.folder.empty() ? job.checkpoints->folder() : options.folder, job,
                     options);
}

}  // namespace leeway
