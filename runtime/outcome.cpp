#include "runtime/outcome.hpp"

#include <algorithm>

#include "checkpoint/store.hpp"
#include "core/check.hpp"
#include "core/text.hpp"
#include "models/datasets/vocabulary.hpp"
#include "models/safetensors.hpp"
#include "monitoring/summary.hpp"
#include "runtime/cluster/options.hpp"

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
      const std::int64_t row = tensor.shape.row_count();
      std::copy_n(data.as_floats() + slice.offset, slice.rows * row,
                  tensor.data.mutable_floats() + slice.first_row * row);
    }
  }
  return std::make_shared<const NamedTensors>(std::move(tensors));
}

/// The flags of a run on a cluster; empty without nodes.
std::string cluster_flags(const RunOptions& options) {
  if (!options.cluster || options.cluster->nodes.empty()) return "";
  const ClusterOptions& cluster = *options.cluster;
  std::string flags = concat(" --nodes ", join(cluster.nodes, ","));
  if (!cluster.tls.empty()) flags += concat(" --tls ", cluster.tls);
  if (!cluster.place.empty()) flags += concat(" --place ", cluster.place);
  return flags;
}

}  // namespace

std::span<const float> Result::weight(const std::string& name) const {
  LW_CHECK(weights, "the weights of a shard were lost");
  for (const auto& tensor : *weights)
    if (tensor.name == name)
      return {tensor.data.as_floats(), static_cast<std::size_t>(tensor.shape.count())};
  LW_CHECK(false, name);
}

void fill(Result& result, const Job& job, RunTotals totals) {
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
  result.plan = job.plan;
  result.vocabulary = job.data.train->vocabulary();
  const auto bound = job.consistency->largest_bound();
  if (bound != kUnbounded) result.staleness_bound = bound;
  if (!totals.evaluations.empty() && totals.evaluations.back().final) {
    result.test_loss = totals.evaluations.back().loss;
    result.test_accuracy = totals.evaluations.back().accuracy;
  }
  result.weights = assemble(job, totals.weights);
  if (totals.end.reason == msg::RunEnded::Reason::failed) {
    result.exit_code = 1;
    result.error = totals.end.text;
    result.last_snapshot = assemble(job, totals.last_snapshot);
  } else if (totals.end.reason == msg::RunEnded::Reason::interrupted) {
    result.exit_code = 130;
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

std::string resume_text(const Job& job, const Result& result, const RunOptions& options) {
  const auto& written = result.totals.checkpoints;
  const bool has_written = std::any_of(written.begin(), written.end(),
                                       [](const auto& one) { return one.error.empty(); });
  if (result.exit_code == 0 || !(has_written || job.resumed)) return "";
  const std::string folder = !has_written             ? job.resumed->path()
                             : options.folder.empty() ? job.checkpoints->folder()
                                                      : options.folder;
  const bool by_flag = options.command != kResumeCommand;
  return concat("\nResume it with: ", options.command, by_flag ? " --resume " : " ", folder,
                cluster_flags(options), '\n');
}

}  // namespace leeway
