// validate(): what a plan must satisfy by itself. Each error names the field, what was found, and
// what to change.
#include <algorithm>
#include <functional>
#include <limits>

#include "core/limits.hpp"
#include "plan/checks.hpp"
#include "plan/devices.hpp"

namespace leeway {
namespace {

constexpr std::uint32_t kMaxBatch = 1u << 24;
constexpr std::uint32_t kMaxShift = 999;
constexpr std::uint32_t kMaxContext = 1u << 20;
constexpr std::uint32_t kMaxStaleness = 1'000'000;

// --- data and loss
// -------------------------------------------------------------------------

enum class Targets { unknown, classes, numbers };

struct DataCheck {
  Checks& checks;

  void path(const char* name, const std::string& value) const {
    checks.require(!value.empty(), "data.", name, ": is empty; give the path of the file");
  }

  Targets operator()(const plan::FashionMnist& data) const {
    checks.require(!data.directory.empty(),
                   "data.fashion_mnist.directory: is empty; give the folder of the four files");
    return Targets::classes;
  }
  Targets operator()(const plan::Idx& data) const {
    path("idx.train_images", data.train_images);
    path("idx.train_labels", data.train_labels);
    path("idx.test_images", data.test_images);
    path("idx.test_labels", data.test_labels);
    return Targets::classes;
  }
  Targets operator()(const plan::Csv& data) const {
    path("csv.train", data.train);
    checks.require(!data.label.empty(), "data.csv.label: is empty; give the label column's name");
    checks.number("data.csv.test_share", data.test_share,
                  data.test_share > 0 && data.test_share < 1, "more than 0 and less than 1");
    return data.regression ? Targets::numbers : Targets::classes;
  }
  Targets operator()(const plan::Synthetic& data) const {
    constexpr auto kMost = std::numeric_limits<std::uint32_t>::max();
    checks.range("data.synthetic.samples", data.samples, 1, kMost, "");
    checks.range("data.synthetic.test_samples", data.test_samples, 1, kMost, "");
    if (const auto* line = std::get_if<plan::Line>(&data.kind)) {
      checks.number("data.synthetic.line.slope", line->slope, true, "a finite number");
      checks.number("data.synthetic.line.intercept", line->intercept, true, "a finite number");
      checks.number("data.synthetic.line.noise", line->noise, line->noise >= 0, "0 or more");
      return Targets::numbers;
    }
    const auto& clusters = std::get<plan::Clusters>(data.kind);
    checks.range("data.synthetic.clusters.classes", clusters.classes, 2, 1u << 20, "");
    checks.range("data.synthetic.clusters.features", clusters.features, 1, 1u << 20, "");
    checks.number("data.synthetic.clusters.spread", clusters.spread, clusters.spread >= 0,
                  "0 or more");
    return Targets::classes;
  }
  Targets operator()(const plan::TextCorpus& data) const {
    checks.range("data.text.context", data.context, 1, kMaxContext, "");
    checks.number("data.text.test_share", data.test_share,
                  data.test_share > 0 && data.test_share < 1, "more than 0 and less than 1");
    return Targets::classes;
  }
  Targets operator()(const plan::CustomData& data) const {
    checks.require(!data.name.empty(),
                   "data.custom.name: is empty; give the name that the data set is registered as");
    return Targets::unknown;
  }
};

void check_loss(Checks& checks, const Plan& plan, Targets targets) {
  // The third loss, sigmoid_cross_entropy, takes numbers in 0..1 and two classes alike.
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

// --- training
// -------------------------------------------------------------------------------------

struct OptimizerCheck {
  Checks& checks;

  template <class Adam>
  void adam(const std::string& name, const Adam& in) const {
    checks.fraction_below_one(name + ".beta1", in.beta1);
    checks.fraction_below_one(name + ".beta2", in.beta2);
    checks.number(name + ".epsilon", in.epsilon, in.epsilon > 0, "a number above 0");
  }
  void operator()(const plan::Sgd&) const {}
  void operator()(const plan::Momentum& in) const {
    checks.fraction_below_one("optimizer.momentum.factor", in.factor);
  }
  void operator()(const plan::Nesterov& in) const {
    checks.fraction_below_one("optimizer.nesterov.factor", in.factor);
  }
  void operator()(const plan::Adam& in) const { adam("optimizer.adam", in); }
  void operator()(const plan::AdamW& in) const { adam("optimizer.adamw", in); }
  void operator()(const plan::AdaGrad& in) const {
    checks.number("optimizer.adagrad.epsilon", in.epsilon, in.epsilon > 0, "a number above 0");
  }
};

void check_optimizer(Checks& checks, const Plan& plan) {
  const double rate = plan.optimizer.learning_rate;
  const double decay = plan.optimizer.weight_decay;
  checks.number("optimizer.learning_rate", rate, rate > 0, "--lr above 0, such as 0.1");
  checks.number("optimizer.weight_decay", decay, decay >= 0, "0 or more, such as 0.0001");
  std::visit(OptimizerCheck{checks}, plan.optimizer.kind);
}

void check_lr_schedule(Checks& checks, const Plan& plan) {
  const double warmup = plan.lr_schedule.warmup;
  checks.number("lr_schedule.warmup", warmup, warmup >= 0, "0 or more epochs");
  if (const auto* step = std::get_if<plan::Step>(&plan.lr_schedule.kind)) {
    checks.number("lr_schedule.step.every", step->every, step->every > 0, "more than 0 epochs");
    checks.number("lr_schedule.step.factor", step->factor, step->factor > 0, "a number above 0");
  }
  if (const auto* cosine = std::get_if<plan::Cosine>(&plan.lr_schedule.kind)) {
    checks.number("lr_schedule.cosine.floor", cosine->floor,
                  cosine->floor >= 0 && cosine->floor <= 1, "0 to 1");
    checks.require(plan.stop.epochs > 0,
                   "lr_schedule.cosine: ends with the last epoch, but the plan has no number of "
                   "epochs; give --epochs");
    checks.require(warmup < plan.stop.epochs, "lr_schedule.warmup: ", warmup,
                   " epochs leave nothing of the run's ", plan.stop.epochs,
                   " for the cosine; give a shorter warm-up or more --epochs");
  }
}

void check_stop(Checks& checks, const Plan& plan) {
  const plan::Stop& stop = plan.stop;
  checks.number("stop.epochs", stop.epochs, stop.epochs >= 0,
                "--epochs above 0, or 0 for no limit");
  checks.number("stop.seconds", stop.seconds, stop.seconds >= 0, "0 or more");
  checks.number("stop.accuracy", stop.accuracy, stop.accuracy >= 0 && stop.accuracy <= 1, "0 to 1");
  checks.require(stop.epochs > 0 || stop.iterations > 0 || stop.seconds > 0 || stop.accuracy > 0,
                 "stop: the run would never end; give --epochs, or stop.iterations, stop.seconds "
                 "or stop.accuracy");
  checks.number("evaluate_every", plan.evaluate_every, plan.evaluate_every >= 0,
                "a number of epochs, or 0 to evaluate at the end alone");
  checks.require(stop.accuracy == 0 || plan.evaluate_every > 0,
                 "stop.accuracy: is compared when the run is evaluated, but evaluate_every is 0; "
                 "give evaluate_every = 1");
}

// --- who takes part
// -------------------------------------------------------------------------------

void check_counts(Checks& checks, const Plan& plan) {
  checks.range("workers", plan.workers, 1, limits::kMaxWorkers, "--workers ");
  checks.range("shards", plan.shards, 1, limits::kMaxShards, "--shards ");
  checks.range("batch", plan.batch, 1, kMaxBatch, "--batch ");
  const std::uint64_t round = std::uint64_t{plan.workers} * plan.batch;
  checks.require(round <= std::numeric_limits<std::uint32_t>::max(), "batch: ", plan.workers,
                 " workers of ", plan.batch,
                 " samples each are too much for one round; give a smaller --batch");
  checks.range("micro_batches", plan.micro_batches, 1, plan.batch, "--micro-batches ");
  checks.require(plan.lease_size == 0 || plan.lease_size >= plan.batch,
                 "lease_size: ", plan.lease_size, " samples are less than a batch; give at least ",
                 plan.batch, ", or 0 for eight batches");
}

void check_devices(Checks& checks, const Plan& plan) {
  // Of nobody there is no placement; then the counts have been refused already.
  if (!checks.result()) return;
  const auto devices = parse_devices(plan.device, plan.workers, plan.shards);
  checks.require(devices.has_value(), devices ? "" : devices.error().text);
}

void check_consistency(Checks& checks, const Plan& plan) {
  const auto* ssp = std::get_if<plan::Ssp>(&plan.consistency);
  const auto* backup = std::get_if<plan::Backup>(&plan.consistency);
  const auto* adaptive = std::get_if<plan::Adaptive>(&plan.consistency);
  const bool barrier =
      std::holds_alternative<plan::Bsp>(plan.consistency) || backup || (ssp && ssp->staleness == 0);
  checks.require(!(plan.prefetch && barrier), "prefetch: with ",
                 ssp      ? "staleness 0"
                 : backup ? "backup workers"
                          : "bsp",
                 " it would park on itself, as it pulls for an iteration ahead of its own push; "
                 "give --staleness 1 or more, or --no-prefetch");
  if (backup)
    checks.require(backup->spare >= 1 && backup->spare < plan.workers,
                   "consistency.backup.spare: of ", plan.workers, " workers ", backup->spare,
                   " cannot be spare; give --staleness backup(1) and at least one worker more");
  if (adaptive) {
    checks.require(adaptive->low < adaptive->high && adaptive->high <= kMaxStaleness,
                   "consistency.adaptive: from ", adaptive->low, " to ", adaptive->high,
                   " is no range; give two rising bounds up to ", kMaxStaleness,
                   ", as in --staleness adaptive(1,8)");
    checks.require(!plan.prefetch || adaptive->low >= 1,
                   "prefetch: with a staleness that may fall to 0 it would park on itself; give "
                   "--staleness adaptive(1,8), or --no-prefetch");
  }
}

/// What only a pipeline has, in a plan of whole models.
void check_unpiped(Checks& checks, const plan::Pipeline& pipeline) {
  const auto parts = std::count(pipeline.split.begin(), pipeline.split.end(), ',') + 1;
  checks.require(pipeline.split.empty(), "pipeline.split: \"", pipeline.split,
                 "\" cuts the model, but each worker trains all of it; give --stages ",
                 std::max<std::int64_t>(parts / pipeline.chunks, 2), ", or no split");
  checks.require(pipeline.chunks == 1, "pipeline.chunks: ", pipeline.chunks,
                 " parts of the model on each stage, but there are no stages; give --stages 2 or "
                 "more, or --chunks 1");
  checks.require(pipeline.recompute.empty(),
                 "pipeline.recompute: there are no stages; give --stages 2 or more, or --recompute "
                 "none");
}

void check_pipeline(Checks& checks, const Plan& plan) {
  const plan::Pipeline& pipeline = plan.pipeline;
  checks.range("pipeline.stages", pipeline.stages, 1, limits::kMaxStages, "--stages ");
  checks.range("pipeline.chunks", pipeline.chunks, 1, limits::kMaxChunks, "--chunks ");
  if (!checks.result()) return;
  if (pipeline.stages == 1) return check_unpiped(checks, pipeline);
  const std::uint32_t stages = pipeline.stages, over = plan.workers % stages;
  const std::uint32_t fewer = plan.workers - over;
  checks.require(over == 0, "pipeline.stages: ", plan.workers, " workers are no whole number of ",
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
                 "prefetch: a stage pulls when its schedule makes the next version of its weights; "
                 "give --no-prefetch, or --stages 1");
  checks.require(!std::holds_alternative<plan::Backup>(plan.consistency),
                 "consistency.backup: a pipeline cannot stop in the middle of an iteration that is "
                 "late; give --staleness bsp, or --stages 1");
}

void check_name(Checks& checks, const std::string& name) {
  checks.require(!name.empty() && name.size() <= 100, "name: has ", name.size(),
                 " characters; give 1 to 100");
  for (const char c : name)
    checks.require(static_cast<unsigned char>(c) >= ' ' && c != '/' && c != 0x7f,
                   "name: it names a folder, too; give one without '/' and control characters");
  checks.require(name.empty() || name.front() != '.', "name: ", name,
                 " begins with a dot; give another one");
}

}  // namespace

Status validate(const Plan& plan) {
  Checks checks;
  check_name(checks, plan.name);
  check_counts(checks, plan);
  check_devices(checks, plan);
  check_consistency(checks, plan);
  check_pipeline(checks, plan);
  const Targets targets = std::visit(DataCheck{checks}, plan.data);
  check_loss(checks, plan, targets);
  checks.range("augment.shift", plan.augment.shift, 0, kMaxShift, "");
  check_model(checks, plan);
  check_optimizer(checks, plan);
  check_stop(checks, plan);
  check_lr_schedule(checks, plan);
  check_trouble(checks, plan);
  return checks.result();
}

}  // namespace leeway
