// validate(): checks a plan without its data. Each error names the field, the value found and the
// remedy.
#include <capnp/message.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "core/limits.hpp"
#include "plan/check_ranges.hpp"
#include "plan/checks.hpp"
#include "plan/devices.hpp"
#include "plan/fine_tuning.hpp"
#include "plan/groups.hpp"
#include "plan/local_steps.hpp"
#include "plan/precision.hpp"
#include "plan/settings.hpp"
#include "plan/values.wire.hpp"

namespace leeway {
namespace {

constexpr std::uint32_t kMaxStaleness = 1'000'000;

enum class Targets { unknown, classes, numbers };

Targets targets_of(const plan::DataSource& data) {
  if (std::holds_alternative<plan::CustomData>(data)) return Targets::unknown;
  const auto* csv = std::get_if<plan::Csv>(&data);
  const auto* synthetic = std::get_if<plan::Synthetic>(&data);
  const auto* npy = std::get_if<plan::Npy>(&data);
  const bool numbers = (csv && csv->regression) || (npy && npy->regression) ||
                       (synthetic && std::holds_alternative<plan::Line>(synthetic->kind));
  return numbers ? Targets::numbers : Targets::classes;
}

void check_loss(Checks& checks, const Plan& plan) {
  const Targets targets = targets_of(plan.data);
  // The third loss, sigmoid_cross_entropy, takes numbers in 0..1 and also two classes.
  const bool softmax = plan.loss == plan::Loss::softmax_cross_entropy;
  const bool squared = plan.loss == plan::Loss::mean_squared_error;
  checks.require(!(softmax && targets == Targets::numbers),
                 "loss: softmax_cross_entropy needs classes, but this data has numbers to predict; "
                 "give mean_squared_error, or sigmoid_cross_entropy if they are 0 and 1");
  checks.require(!(squared && targets == Targets::classes),
                 "loss: mean_squared_error needs numbers to predict, but this data has classes; "
                 "give softmax_cross_entropy");
  checks.require(!(squared || targets == Targets::numbers) || plan.stop.accuracy == 0,
                 "stop.accuracy: only classes have an accuracy, but this run predicts numbers; "
                 "leave it out");
}

void check_data(Checks& checks, const plan::DataSource& data) {
  const auto* npy = std::get_if<plan::Npy>(&data);
  if (npy)
    checks.require(npy->test_features.empty() == npy->test_labels.empty(),
                   "data.npy: test_features and test_labels belong together; give both, or none "
                   "for a share of the samples");
}

/// The name of an lr schedule that ends with the last epoch; null for others.
const char* name_of_ending(const plan::LrSchedule& lr_schedule) {
  const auto* cosine = std::get_if<plan::Cosine>(&lr_schedule.kind);
  if (cosine && cosine->period == 0) return "cosine";
  if (std::holds_alternative<plan::LinearLr>(lr_schedule.kind)) return "linear";
  return std::holds_alternative<plan::OneCycle>(lr_schedule.kind) ? "one_cycle" : nullptr;
}

void check_lr_schedule(Checks& checks, const Plan& plan) {
  const plan::LrSchedule& lr_schedule = plan.lr_schedule;
  checks.require(lr_schedule.warmup > 0 || lr_schedule.warmup_start == 0,
                 "lr_schedule.warmup_start: there is no warm-up; give --warmup, or leave out "
                 "--warmup-start");
  const auto* cosine = std::get_if<plan::Cosine>(&lr_schedule.kind);
  checks.require(!cosine || cosine->period > 0 || cosine->growth == 1,
                 "lr_schedule.cosine.growth: there is no restart; give a period, or leave out the "
                 "growth");
  const char* const name = name_of_ending(lr_schedule);
  if (!name) return;
  checks.require(plan.stop.epochs > 0, "lr_schedule.", name,
                 ": ends with the last epoch, but the plan does not limit the epochs; give "
                 "--epochs, or --lr-schedule constant");
  checks.require(lr_schedule.warmup < plan.stop.epochs, "lr_schedule.warmup: ", lr_schedule.warmup,
                 " epochs leave nothing of the run's ", plan.stop.epochs, " for the ", name,
                 "; give a shorter warm-up or more --epochs");
}

void check_stop(Checks& checks, const Plan& plan) {
  const plan::Stop& stop = plan.stop;
  checks.require(stop.epochs > 0 || stop.iterations > 0 || stop.seconds > 0 || stop.accuracy > 0,
                 "stop: the run would never end; give --epochs, or stop.iterations, stop.seconds "
                 "or stop.accuracy");
  checks.require(
      stop.accuracy == 0 || plan.evaluate_every > 0,
      "stop.accuracy: needs evaluations, but evaluate_every is 0; give evaluate_every = 1");
}

void check_counts(Checks& checks, const Plan& plan) {
  const std::uint64_t samples = iteration_samples(plan);
  const char* const also = has_local_steps(plan) ? " or fewer --local-steps" : "";
  checks.require(round_samples(plan) <= std::numeric_limits<std::uint32_t>::max(),
                 "batch: ", plan.workers, " workers with ", round_samples(plan),
                 " samples are too much for one round; give a smaller --batch", also);
  checks.require(plan.micro_batches <= plan.batch, "micro_batches: ", plan.micro_batches,
                 " is not allowed; give --micro-batches 1 to ", plan.batch);
  const bool is_batch = samples == plan.batch;
  // In a cluster, the workers of a host are not known yet.
  const bool is_open = std::holds_alternative<plan::HostGroups>(plan.aggregate);
  checks.require(plan.lease_size == 0 || plan.lease_size >= samples || is_open,
                 "lease_size: ", plan.lease_size, " samples are less than ",
                 is_batch ? "a batch" : "an iteration", "; give at least ", samples, ", or 0 for ",
                 has_local_steps(plan) ? "one iteration"
                 : is_batch            ? "eight batches"
                                       : "eight iterations");
}

void check_devices(Checks& checks, const Plan& plan) {
  const auto devices = parse_devices(plan.device, plan.workers, plan.shards);
  checks.require(devices.has_value(), devices ? "" : devices.error().text);
}

void check_consistency(Checks& checks, const Plan& plan) {
  const auto* ssp = std::get_if<plan::Ssp>(&plan.consistency);
  const auto* backup = std::get_if<plan::Backup>(&plan.consistency);
  const auto* adaptive = std::get_if<plan::Adaptive>(&plan.consistency);
  const auto* quorum = std::get_if<plan::Quorum>(&plan.consistency);
  const auto* automatic = std::get_if<plan::Automatic>(&plan.consistency);
  const bool barrier = std::holds_alternative<plan::Bsp>(plan.consistency) || backup || quorum ||
                       (ssp && ssp->staleness == 0);
  checks.require(!(plan.prefetch && barrier), "prefetch: with ",
                 ssp      ? "staleness 0"
                 : backup ? "backup workers"
                 : quorum ? "a quorum"
                          : "bsp",
                 " a worker would wait for its own push, because it pulls one iteration ahead; "
                 "give --staleness 1 or more, or --no-prefetch");
  if (backup)
    checks.require(backup->spare >= 1 && backup->spare < plan.workers,
                   "consistency.backup.spare: ", backup->spare, " of ", plan.workers,
                   " workers cannot be spare; give --staleness backup(1) and at least 2 workers");
  if (quorum) {
    checks.require(quorum->count >= 1 && quorum->count <= plan.workers,
                   "consistency.quorum.count: a round of ", plan.workers,
                   " workers cannot wait for ", quorum->count,
                   " pushes; give --staleness \"quorum(K)\" with K from 1 to ", plan.workers);
    checks.require(!quorum->mad || quorum->grace_ms == 0,
                   "consistency.quorum: the grace window is ", quorum->grace_ms,
                   " ms long, or follows from recent arrivals (mad); give one of the two");
  }
  checks.require(plan.participation == 1 || std::holds_alternative<plan::Bsp>(plan.consistency),
                 "participation: workers are drawn for each round of bsp, which ",
                 plan::choices("consistency")[plan.consistency.index()],
                 " does not have; give --staleness bsp, or --participation 1");
  if (adaptive) {
    checks.require(adaptive->low < adaptive->high && adaptive->high <= kMaxStaleness,
                   "consistency.adaptive: from ", adaptive->low, " to ", adaptive->high,
                   " is not a range; give two increasing bounds up to ", kMaxStaleness,
                   ", as in --staleness adaptive(1,8)");
    checks.require(
        !plan.prefetch || adaptive->low >= 1,
        "prefetch: with a bound that may fall to 0, a worker would wait for its own push; "
        "give --staleness adaptive(1,8), or --no-prefetch");
  }
  if (automatic) {
    checks.require(automatic->high >= 1 && automatic->high <= kMaxStaleness,
                   "consistency.auto.high: ", automatic->high,
                   " is not a largest bound; give 1 to ", kMaxStaleness, ", or --staleness auto");
    checks.require(!plan.prefetch,
                   "prefetch: the bound of auto may fall to 0, and a worker would wait for its own "
                   "push; give --staleness adaptive(1,8), or --no-prefetch");
  }
}

/// Without stages, the settings of a pipeline keep their defaults.
void check_unpiped(Checks& checks, const plan::Pipeline& pipeline) {
  const auto chunks = std::count(pipeline.split.begin(), pipeline.split.end(), ',') + 1;
  checks.require(pipeline.split.empty(), "pipeline.split: \"", pipeline.split,
                 "\" splits the model, but each worker trains all of it; give --stages ",
                 std::max<std::int64_t>(chunks / pipeline.chunks, 2), ", or no split");
  checks.require(pipeline.chunks == 1, "pipeline.chunks: ", pipeline.chunks,
                 " chunks of the model on each stage, but there are no stages; give --stages 2 or "
                 "more, or --chunks 1");
  checks.require(pipeline.recompute.empty(),
                 "pipeline.recompute: there are no stages; give --stages 2 or more, or --recompute "
                 "none");
  checks.require(!pipeline.predict_weights,
                 "pipeline.predict_weights: there are no stages; give --stages 2 or more, or leave "
                 "out --predict-weights");
}

/// Settings of the encodings that would have no effect.
void check_compression(Checks& checks, const Plan& plan) {
  const plan::Compression& compress = plan.compress;
  const bool encodes_stages =
      compress.activations != plan::Codec{} || compress.activation_gradients != plan::Codec{};
  checks.require(
      plan.pipeline.stages > 1 || !encodes_stages,
      "compress: activations and activation_gradients are sent between stages, but there "
      "are no stages; give --stages 2 or more, or leave them out");
  const auto* top = std::get_if<plan::TopK>(&compress.push);
  checks.require(!top || top->warmup == 0 || top->share < 0.25,
                 "compress.push: a warm-up of top_k "
                 "begins with a quarter of the values, but the share is ",
                 top ? top->share : 0, "; give a share below 0.25, or no warm-up");
}

void check_pipeline(Checks& checks, const Plan& plan) {
  const plan::Pipeline& pipeline = plan.pipeline;
  if (pipeline.stages == 1) return check_unpiped(checks, pipeline);
  const std::uint32_t stages = pipeline.stages, over = plan.workers % stages;
  const std::uint32_t fewer = plan.workers - over;
  checks.require(over == 0, "pipeline.stages: ", plan.workers, " workers cannot be divided into ",
                 "pipelines of ", stages, " stages; give --workers ",
                 fewer > 0 ? concat(fewer, " or ") : std::string(), fewer + stages);
  for (const std::uint32_t stage : pipeline.recompute)
    checks.require(stage < stages, "pipeline.recompute: there is no stage ", stage,
                   "; give stages from 0 to ", stages - 1);
  const auto& recompute = pipeline.recompute;
  checks.require(std::adjacent_find(recompute.begin(), recompute.end(), std::greater_equal<>()) ==
                     recompute.end(),
                 "pipeline.recompute: give each stage once, in ascending order");
  checks.require(!plan.prefetch,
                 "prefetch: a stage pulls at the times that its schedule sets; give --no-prefetch, "
                 "or --stages 1");
  checks.require(
      !std::holds_alternative<plan::Backup>(plan.consistency) &&
          !std::holds_alternative<plan::Quorum>(plan.consistency),
      "consistency: a pipeline cannot abandon an iteration that it has begun, as backup and quorum "
      "require; give --staleness bsp, or --stages 1");
}

void check_aggregate(Checks& checks, const Plan& plan) {
  if (std::holds_alternative<plan::NoGroups>(plan.aggregate)) return;
  checks.require(
      std::holds_alternative<plan::Bsp>(plan.consistency),
      "aggregate: a host group sums the gradients of a round, and ",
      plan::choices("consistency")[plan.consistency.index()],
      " applies each worker's push by itself; give --staleness bsp, or --aggregate none");
  checks.require(
      plan.pipeline.stages == 1,
      "aggregate: the stages of a pipeline have no gradients in common; give --stages 1, "
      "or --aggregate none");
  checks.require(!has_local_steps(plan),
                 "aggregate: each worker steps on its own copy of the weights; give --local-steps "
                 "0, or --aggregate none");
  const std::uint32_t group = workers_per_group(plan);
  const bool is_by_host = std::holds_alternative<plan::HostGroups>(plan.aggregate);
  if (is_by_host && plan.simulated && plan.simulated->agents == 0)
    checks.require(group > 1 || plan.workers == 1,
                   "aggregate: each simulated worker has its own node; give --world "
                   "workers_per_node=4, or a number of workers instead of host");
  const std::uint32_t over = group > 0 ? plan.workers % group : 0, fewer = plan.workers - over;
  checks.require(group > 0, "aggregate: ", plan.workers,
                 " workers are fewer than the nodes; give more --workers, or --aggregate none");
  checks.require(over == 0, "aggregate: ", plan.workers,
                 " workers cannot be divided into groups of ", group, "; give --workers ",
                 fewer > 0 ? concat(fewer, " or ") : std::string(), fewer + group);
}

void check_fine_tuning(Checks& checks, const Plan& plan) {
  const plan::FineTuning& tuning = plan.fine_tuning;
  const auto map = parse_init_map(tuning.init_map);
  checks.require(bool(map), map ? "" : map.error().text);
  checks.require(plan.init_from.size() > 0 || tuning.init_map.empty(),
                 "fine_tuning.init_map: renames initial weights, but the plan has no file of them; "
                 "give --init FILE");
  checks.require(plan.init_from.size() > 0 || !tuning.partial,
                 "fine_tuning.partial: there is no file of initial weights; give --init FILE");
  const auto frozen = parse_freeze(tuning.freeze, plan.model.size());
  checks.require(bool(frozen), frozen ? "" : frozen.error().text);
}

void check_precision(Checks& checks, const Plan& plan) {
  const auto precisions = parse_precision(plan.precision, plan.model);
  checks.require(bool(precisions), precisions ? "" : precisions.error().text);
  const double scale = plan.loss_scale, power = std::exp2(std::round(std::log2(scale)));
  checks.require(scale == power, "loss_scale: ", scale,
                 " is not a power of two; give --loss-scale ",
                 std::min(power, double{limits::kMostLossScale}));
  checks.require(multiplies_in_fp16(plan) || scale == Plan().loss_scale, "loss_scale: ", scale,
                 " has no effect, because no layer multiplies in fp16; give --precision fp16, or "
                 "leave out --loss-scale");
}

void check_name(Checks& checks, const std::string& name) {
  checks.require(!name.empty() && name.size() <= 100, "name: has ", name.size(),
                 " characters; give 1 to 100");
  for (const char c : name)
    checks.require(
        static_cast<unsigned char>(c) >= ' ' && c != '/' && c != 0x7f,
        "name: the run's folder has this name; give one without '/' and control characters");
  checks.require(name.empty() || name.front() != '.', "name: ", name,
                 " begins with a dot; give another one");
}

}  // namespace

Status validate(const Plan& plan) {
  capnp::MallocMessageBuilder message;
  const auto root = message.initRoot<plan_schema::Plan>();
  wire::write(root, plan);
  if (const Status ranges = plan::check_ranges(root.asReader()); !ranges) return ranges;
  Checks checks;
  check_name(checks, plan.name);
  check_precision(checks, plan);
  check_counts(checks, plan);
  check_devices(checks, plan);
  check_consistency(checks, plan);
  check_pipeline(checks, plan);
  check_compression(checks, plan);
  check_aggregate(checks, plan);
  check_data(checks, plan.data);
  check_loss(checks, plan);
  check_model(checks, plan);
  check_fine_tuning(checks, plan);
  check_stop(checks, plan);
  check_lr_schedule(checks, plan);
  check_stragglers(checks, plan);
  check_faults(checks, plan);
  return checks.result();
}

}  // namespace leeway
