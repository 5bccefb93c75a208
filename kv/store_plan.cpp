#include "kv/store_plan.hpp"

#include <algorithm>

#include "actors/job.hpp"
#include "core/text.hpp"
#include "runtime/words.hpp"

namespace leeway::kv {
namespace {

/// For a run whose loops decide when it ends: iterations of a worker in an epoch, and epochs. No
/// run needs more.
constexpr std::int64_t kEpochIterations = std::int64_t{1} << 18;
constexpr double kManyEpochs = 1e9;

}  // namespace

bool counts_zeros(const plan::Optimizer& optimizer) {
  return std::holds_alternative<plan::Assign>(optimizer.kind) ||
         std::holds_alternative<plan::Updater>(optimizer.kind);
}

Plan store_plan(const Declarations& declarations, const Options& options) {
  Plan plan;
  plan.name = "kv";
  plan.seed = options.seed;
  auto layers =
      table_layers(declarations.keys, counts_zeros(declarations.optimizer.value_or(sum_gradients()))
                                          ? Grouping::none
                                          : Grouping::small_keys);
  if (!layers) throw StoreError(layers.error().text);
  plan.model = std::move(*layers);
  plan.loss = plan::Loss::mean_squared_error;
  plan.optimizer = declarations.optimizer.value_or(sum_gradients());
  plan.consistency = options.consistency;
  plan.delay_policy = options.delay_policy;
  plan.compress = options.compress;
  plan.workers = options.workers;
  plan.shards = shards_for(plan.model, options.shards);
  plan.replicas = options.replicas;
  const bool leases = options.samples > 0;
  // An epoch of whole rounds: otherwise some workers would skip its last iteration.
  plan.data =
      register_numbered_samples(leases ? options.samples : kEpochIterations * options.workers);
  plan.batch = leases ? options.batch : 1;
  plan.stop.epochs = leases ? options.epochs : kManyEpochs;
  plan.evaluate_every = 0;
  plan.checkpoints = options.checkpoints;
  plan.stragglers = options.stragglers;
  plan.faults = options.faults;
  return plan;
}

std::uint32_t shards_for(const std::vector<plan::Layer>& table, std::uint32_t wanted) {
  const auto model =
      Model::build(table, plan::Loss::mean_squared_error, Shape{1}, 0, /*target_count=*/1);
  if (!model) throw StoreError(model.error().text);
  for (std::uint32_t shards = wanted; shards > 1; --shards) {
    const Layout layout = balanced_layout(**model, shards);
    bool each = true;
    for (std::uint32_t shard = 0; shard < shards; ++shard)
      each = each && !layout.blocks_of(ShardId(shard)).empty();
    if (each) return shards;
  }
  return 1;
}

bool leases_samples(const Plan& plan) {
  return plan.stop.epochs < kManyEpochs;
}

void continue_samples(Plan& plan, const Plan& began) {
  if (leases_samples(plan) || leases_samples(began)) return;
  if (register_if_numbered_samples(began.data)) plan.data = began.data;
}

std::string difference(const std::vector<TableKey>& first, const std::vector<TableKey>& found,
                       const std::string& other) {
  const auto find = [](const std::vector<TableKey>& in, const std::string& name) {
    return std::ranges::find(in, name, &TableKey::name);
  };
  for (const TableKey& key : first) {
    const auto same = find(found, key.name);
    if (same == found.end()) return concat("has not initialised key \"", key.name, "\" of ", other);
    if (same->shape != key.shape)
      return concat("has initialised key \"", key.name, "\" with the shape ", same->shape, ", ",
                    other, " with ", key.shape);
  }
  for (const TableKey& key : found)
    if (find(first, key.name) == first.end())
      return concat("has initialised key \"", key.name, "\", ", other, " has not");
  return "";
}

}  // namespace leeway::kv
