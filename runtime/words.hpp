#pragma once
// The vocabulary of scenarios: functions that make the parts of a plan. models.hpp has layers and
// models.
#include <chrono>
#include <initializer_list>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "plan/values.hpp"

namespace leeway {

// ---- data ----

/// Fashion-MNIST (Xiao et al. 2017) as Debian's dataset-fashion-mnist installs it: 60,000 + 10,000
/// images of 1x28x28, 10 classes.
inline plan::DataSource fashion_mnist() {
  return plan::FashionMnist{};
}
/// Gzipped or plain IDX files.
inline plan::DataSource idx(std::string train_images, std::string train_labels,
                            std::string test_images, std::string test_labels) {
  return plan::Idx{std::move(train_images), std::move(train_labels), std::move(test_images),
                   std::move(test_labels)};
}
/// A CSV file, plain or gzipped, with one column to predict, `label`. Defaults, which the members
/// of the result change: the first line names the columns (`header`); the label is a class
/// (`regression`); a fifth of the rows, drawn by the seed, is the test set (`test_share`, or a file
/// `test`); columns of numbers are scaled to mean 0 and deviation 1 by the training rows
/// (`normalize`); columns of texts become one input per text; missing values are refused
/// (`missing`). See docs/data.md.
inline plan::Csv csv(std::string train, std::string label = "label") {
  plan::Csv source;
  source.train = std::move(train);
  source.label = std::move(label);
  return source;
}
/// Files of numpy.save: features (N, ...) and labels (N). A fifth of the samples is the test set,
/// unless the result's `test_features` and `test_labels` are set.
inline plan::Npy npy(std::string features, std::string labels) {
  return {.features = std::move(features), .labels = std::move(labels)};
}
/// A folder with a subfolder of PNG and JPEG images of one size for each class. If it has the two
/// subfolders train and test, these are such folders; otherwise a fifth of the images is the test
/// set.
inline plan::ImageFolder image_folder(std::string folder) {
  return {.train = std::move(folder)};
}
/// Characters of a UTF-8 file, each predicted from up to `context` characters before it. Without a
/// file: the King James Bible of Debian's package bible-kjv.
inline plan::DataSource text(std::uint32_t context, std::string file = "") {
  return plan::TextCorpus{.file = std::move(file), .context = context};
}
/// Samples of y = slope * x + intercept + noise * N(0, 1).
inline plan::Synthetic line(double slope, double intercept, double noise,
                            std::uint32_t samples = 10000) {
  return {samples, samples / 10, plan::Line{slope, intercept, noise}};
}
/// One Gaussian cluster per class.
inline plan::Synthetic clusters(std::uint32_t classes, std::uint32_t features,
                                std::uint32_t samples = 10000) {
  return {samples, samples / 10, plan::Clusters{classes, features, 3}};
}

// ---- optimizers and lr schedules ----

inline plan::Optimizer sgd(double learning_rate) {
  return {learning_rate, 0, plan::Sgd{}};
}
/// `dampening`: the share of a gradient that does not enter the velocity; the first enters whole.
inline plan::Optimizer momentum(double learning_rate, double factor = 0.9, double dampening = 0) {
  return {learning_rate, 0, plan::Momentum{factor, dampening}};
}
inline plan::Optimizer nesterov(double learning_rate, double factor = 0.9) {
  return {learning_rate, 0, plan::Nesterov{factor}};
}
/// `amsgrad`: divides by the largest second moment so far.
inline plan::Optimizer adam(double learning_rate = 1e-3, bool amsgrad = false) {
  return {learning_rate, 0, plan::Adam{.amsgrad = amsgrad}};
}
inline plan::Optimizer adamw(double learning_rate = 1e-3, double weight_decay = 0.01,
                             bool amsgrad = false) {
  return {learning_rate, weight_decay, plan::AdamW{.amsgrad = amsgrad}};
}
/// `beta1`: decay of the first moment. Weight decay is apart from the gradient, as adamw's.
inline plan::Optimizer nadam(double learning_rate = 2e-3, double beta1 = 0.9,
                             double weight_decay = 0) {
  return {learning_rate, weight_decay, plan::NAdam{.beta1 = beta1}};
}
/// Orthogonal steps of weight matrices; adamw for vectors, embeddings and positions.
inline plan::Optimizer muon(double learning_rate = 1e-3, double weight_decay = 0.01) {
  return {learning_rate, weight_decay, plan::Muon{}};
}
inline plan::Optimizer lion(double learning_rate = 1e-4, double weight_decay = 0) {
  return {learning_rate, weight_decay, plan::Lion{}};
}
/// `rounds`: rounds between two moves of the velocity.
inline plan::Optimizer delayed_nesterov(double learning_rate, double factor = 0.9,
                                        std::uint32_t rounds = 1) {
  return {learning_rate, 0, plan::DelayedNesterov{factor, rounds}};
}
/// `initial`: the sum of squares at the start.
inline plan::Optimizer adagrad(double learning_rate = 0.01, double initial = 0) {
  return {learning_rate, 0, plan::AdaGrad{.initial = initial}};
}

/// Adds the sum of the workers' gradients to the weights, without a learning rate.
inline plan::Optimizer sum_gradients() {
  return {1, 0, plan::Sum{}};
}
/// Replaces the weights by the sum of the workers' gradients.
inline plan::Optimizer assign_gradients() {
  return {1, 0, plan::Assign{}};
}

/// A function that the program has given to register_updater().
inline plan::Optimizer updater(const std::string& name) {
  return {1, 0, plan::Updater{name}};
}

/// The optimizers of `--optimizer`, with their usual learning rates.
struct NamedOptimizer {
  const char* name;
  plan::Optimizer optimizer;
};
inline const NamedOptimizer kOptimizers[] = {
    {"sgd", sgd(0.1)},
    {"momentum", momentum(0.1)},
    {"nesterov", nesterov(0.1)},
    {"adam", adam()},
    {"adamw", adamw()},
    {"adagrad", adagrad()},
    {"nadam", nadam()},
    {"lion", lion()},
    {"sum", sum_gradients()},
    {"assign", assign_gradients()},
    {"delayed_nesterov", delayed_nesterov(0.1)},
    {"muon", muon()},
};
static_assert(std::size(kOptimizers) + 1 == std::variant_size_v<plan::OptimizerKind::variant>,
              "all but updaters, whose names the program decides");

inline plan::LrSchedule constant(double warmup_epochs = 0) {
  return {warmup_epochs, plan::Constant{}};
}
inline plan::LrSchedule step(double every_epochs, double factor, double warmup_epochs = 0) {
  return {warmup_epochs, plan::Step{every_epochs, factor}};
}
inline plan::LrSchedule cosine(double warmup_epochs = 0, double floor = 0) {
  return {warmup_epochs, plan::Cosine{floor}};
}
/// Restarts at the full rate after `period` epochs; each period is `growth` times as long as the
/// one before.
inline plan::LrSchedule cosine_restarts(double period, double growth = 1, double warmup_epochs = 0,
                                        double floor = 0) {
  return {warmup_epochs, plan::Cosine{floor, period, growth}};
}
/// A line from the full rate to `floor` at the last epoch. Not linear(), which is a layer.
inline plan::LrSchedule linear_decay(double warmup_epochs = 0, double floor = 0) {
  return {warmup_epochs, plan::LinearLr{floor}};
}
/// Falls by `factor` in each epoch.
inline plan::LrSchedule exponential(double factor = 0.95, double warmup_epochs = 0) {
  return {warmup_epochs, plan::ExponentialLr{factor}};
}
/// Rises from 1 / start_divisor in the first `rise` of the run, and falls to that / end_divisor.
inline plan::LrSchedule one_cycle(double rise = 0.3, double start_divisor = 25,
                                  double end_divisor = 1e4) {
  return {0, plan::OneCycle{rise, start_divisor, end_divisor}};
}
/// Any lr schedule after a linear warm-up that starts at a share of the full rate.
inline plan::LrSchedule warm_up(double epochs, double start, plan::LrSchedule then) {
  then.warmup = epochs;
  then.warmup_start = start;
  return then;
}

// ---- compression ----

inline plan::Codec bf16() {
  return plan::Bf16{};
}
inline plan::Codec fp16() {
  return plan::Fp16{};
}
inline plan::Codec int8() {
  return plan::Int8{};
}
inline plan::Codec int4() {
  return plan::Int4{};
}
inline plan::Codec two_bit(double threshold = 0.5) {
  return plan::TwoBit{threshold};
}
inline plan::Codec one_bit() {
  return plan::OneBit{};
}
/// `share`: of the values that is sent. `warmup`: epochs in which the share falls from a quarter.
inline plan::Codec top_k(double share = 0.01, double warmup = 0) {
  return plan::TopK{share, warmup};
}
inline plan::Codec random_k(double share = 0.01) {
  return plan::RandomK{share};
}

// ---- consistency ----

/// A barrier: all workers wait for each other after each iteration.
inline plan::Consistency bsp() {
  return plan::Bsp{};
}
/// Like bsp(), but a round does not wait for the last `spare` workers. Their straggling pushes are
/// dropped, and the samples are leased again.
inline plan::Consistency backup(std::uint32_t spare) {
  return plan::Backup{spare};
}
/// Like bsp(), but a round waits for `count` pushes and then for `grace_ms` milliseconds.
/// Straggling pushes are dropped, and their samples are leased again.
inline plan::Consistency quorum(std::uint32_t count, double grace_ms = 0) {
  return plan::Quorum{count, grace_ms};
}
/// Like quorum(), but a round waits until the median of recent arrivals plus three median absolute
/// deviations.
inline plan::Consistency adaptive_quorum(std::uint32_t count) {
  return plan::Quorum{.count = count, .mad = true};
}
/// A worker may be up to `staleness` iterations ahead of the slowest worker.
inline plan::Consistency ssp(std::uint32_t staleness) {
  return plan::Ssp{staleness};
}
/// No worker waits.
inline plan::Consistency asp() {
  return plan::Asp{};
}
/// Like ssp(), with a bound from `low` to `high` that rises while workers wait and falls otherwise.
inline plan::Consistency adaptive(std::uint32_t low, std::uint32_t high) {
  return plan::Adaptive{low, high};
}
/// A bound that follows the waiting times from `high` down, batches by speed, and ordered momentum.
inline plan::Consistency automatic(std::uint32_t high = 16) {
  return plan::Automatic{high};
}

// ---- delayed pushes ----

/// The learning rate divided by the lag to this power, which falls to 0 within `rounds`; 0: it
/// stays.
inline plan::DelayPolicy lag_scaled(double power = 1, double rounds = 0) {
  return plan::LagScaled{power, rounds};
}
/// The product of learning rate and lag is at most this.
inline plan::DelayPolicy delay_adaptive(double most) {
  return plan::DelayAdaptive{most};
}
/// Gradients divided by the distance, in usual steps, that the weights have moved since the pull.
inline plan::DelayPolicy gap_aware(double decay = 0.999) {
  return plan::GapAware{decay};
}
/// Gradients moved to the present weights with their squares as second derivatives.
inline plan::DelayPolicy delay_compensated(double lambda = 0.04) {
  return plan::DelayCompensated{.lambda = lambda};
}
/// The same, with `lambda` divided by the root of the mean square gradient.
inline plan::DelayPolicy adaptive_delay_compensated(double lambda = 2, double decay = 0.95) {
  return plan::DelayCompensated{.lambda = lambda, .adaptive = true, .decay = decay};
}
/// The models of workers after local steps, mixed into the shard's by this share / (1 + lag)^power.
inline plan::DelayPolicy fed_async(double mixing = 0.6, double power = 0.5) {
  return plan::FedAsync{mixing, power};
}
/// The same with the share / (1 + hinge * (lag - within)), for lags above `within`.
inline plan::DelayPolicy hinged_fed_async(double mixing, double hinge, double within) {
  return plan::FedAsync{.mixing = mixing, .hinge = hinge, .within = within};
}
/// An update of this many pushes, each divided by (1 + updates since its pull)^power.
inline plan::DelayPolicy fed_buff(std::uint32_t count = 4, double power = 0.5) {
  return plan::FedBuff{count, power};
}
/// Weights with this lag are too old: the worker computes its iteration again with newer ones.
inline plan::DelayPolicy delay_threshold(double limit = 4) {
  return plan::DelayThreshold{limit};
}
/// Momentum as if pushes came in the order of their pulls.
inline plan::DelayPolicy ordered_momentum() {
  return plan::OrderedMomentum{};
}

// ---- local steps ----

/// This many steps of the optimizer on a worker's own copy of the weights; shards average the
/// copies.
inline plan::LocalSteps local_sgd(std::uint32_t steps) {
  return {.count = steps};
}
/// The same, with Nesterov momentum on the shards (Douillard et al., "DiLoCo", 2023).
inline plan::LocalSteps diloco(std::uint32_t steps, double rate = 0.7, double momentum = 0.9) {
  return {.count = steps, .outer = {.learning_rate = rate, .kind = plan::Nesterov{momentum}}};
}
/// Local steps whose pseudo-gradients count by the samples of each worker (FedAvg; McMahan et al.,
/// AISTATS 2017, algorithm 1).
inline plan::LocalSteps fed_avg(std::uint32_t steps) {
  return {.count = steps, .merge = plan::Merge::by_samples};
}
/// The same local steps. Shards merge the pseudo-gradients of a round to their mean length along
/// their mean direction (Decoupled DiLoCo, arXiv 2604.21428, 2026). Example:
/// radial_directional(diloco(20)).
inline plan::LocalSteps radial_directional(plan::LocalSteps steps) {
  steps.merge = plan::Merge::radial_directional;
  return steps;
}

// ---- split data ----

/// The workers of a process, or of a simulated node, sum their gradients.
inline plan::Aggregate host_groups() {
  return plan::HostGroups{};
}
/// Groups of adjacent workers do so.
inline plan::Aggregate groups_of(std::uint32_t workers) {
  return plan::GroupsOf{workers};
}

/// Each worker has its own share of the training samples, drawn at random.
inline plan::SplitData iid() {
  return plan::IidSplit{};
}
/// The same, with shares of the classes from a Dirichlet distribution: the smaller alpha, the more
/// the workers differ.
inline plan::SplitData dirichlet(double alpha = 0.5) {
  return plan::DirichletSplit{alpha};
}
/// The same, with samples of few labels.
inline plan::SplitData by_label(std::uint32_t labels = 2) {
  return plan::LabelSplit{labels};
}

// ---- stragglers and faults ----

/// The target of a straggler: one worker by its number; `all_workers`, each with independent random
/// draws; or together({2, 3}), with common ones.
struct Slowed {
  Slowed(std::uint32_t number) : worker(number) {}
  static Slowed every_worker() {
    Slowed slowed(0);
    slowed.all = true;
    return slowed;
  }
  plan::Straggler by(plan::StragglerKind kind) const {
    return {worker, all, std::move(kind), together, 0.0};
  }

  std::uint32_t worker;
  bool all = false;
  std::vector<std::uint32_t> together;
};
inline const Slowed all_workers = Slowed::every_worker();
/// Workers that are slow in the same iterations, like machines of one rack. Example:
/// slow_in_bursts(together({2, 3}), 4, 0.2).
inline Slowed together(std::vector<std::uint32_t> workers) {
  Slowed slowed(0);
  slowed.together = std::move(workers);
  return slowed;
}
/// Any straggler of such workers. Example: slow_together({2, 3}, plan::Pareto{.alpha = 1.5}).
inline plan::Straggler slow_together(std::vector<std::uint32_t> workers, plan::StragglerKind kind) {
  return together(std::move(workers)).by(std::move(kind));
}
/// The same straggler, from a `share` of the run's epochs or iterations on, or from an iteration of
/// the worker on. Examples: from_share(0.5, slow(3, 4)), from_iteration(100, slow(3, 4)).
inline plan::Straggler from_share(double share, plan::Straggler straggler) {
  straggler.from = share;
  return straggler;
}
inline plan::Straggler from_iteration(std::int64_t iteration, plan::Straggler straggler) {
  straggler.from = iteration;
  return straggler;
}

/// Always takes `factor` times as long.
inline plan::Straggler slow(Slowed who, double factor) {
  return who.by(plan::ConstantFactor{factor});
}
/// Takes `factor` times as long in a `share` of its iterations, in random bursts of `length`
/// iterations on average.
inline plan::Straggler slow_in_bursts(Slowed who, double factor, double share,
                                      std::uint32_t length = 50) {
  return who.by(plan::Bursts{factor, share, length});
}
/// Draws a factor for each iteration: above x with probability x^-alpha, and at most `cap`.
inline plan::Straggler slow_by_pareto(Slowed who, double alpha, double cap = 100) {
  return who.by(plan::Pareto{alpha, cap});
}
/// Pauses for `length_ms` every `every_iterations` iterations.
inline plan::Straggler pauses(Slowed who, double length_ms, std::uint32_t every_iterations) {
  return who.by(plan::Pauses{length_ms, every_iterations});
}
/// Pauses for `length_ms` every `every_seconds`.
inline plan::Straggler pauses_by_clock(Slowed who, double length_ms, double every_seconds) {
  return who.by(plan::Pauses{length_ms, every_seconds});
}
/// Slows down linearly to `factor` over `iterations`, and stays slow.
inline plan::Straggler slows_down(Slowed who, double factor, std::uint32_t iterations) {
  return who.by(plan::Decay{factor, iterations});
}
/// Alternates: `factor` times as long for `on` iterations, then normal for `off` iterations.
/// `phase`: iterations of this cycle that are over at the start; -1: random.
inline plan::Straggler shares_machine(Slowed who, double factor, std::uint32_t on,
                                      std::uint32_t off, std::int64_t phase = -1) {
  return who.by(plan::Sharing{factor, on, off, phase});
}
/// Takes these factors for its iterations, again and again. Example: slow_by(3, {4, 4, 1, 1}).
inline plan::Straggler slow_by(Slowed who, std::initializer_list<double> factors) {
  return who.by(plan::Repeated{factors});
}
inline plan::Straggler slow_by(Slowed who, std::vector<double> factors) {
  return who.by(plan::Repeated{std::move(factors)});
}
/// Takes the factors of a function: see register_straggler().
inline plan::Straggler slow_by(Slowed who, std::string function) {
  return who.by(plan::CustomStraggler{std::move(function)});
}
/// Takes some time longer for each iteration. Example: delay(3, 5ms).
inline plan::Straggler delay(Slowed who, std::chrono::duration<double, std::milli> longer) {
  return who.by(plan::FixedDelay{longer.count()});
}
/// Takes the factors of its iterations from a file, one per line, repeated from the first line.
inline plan::Straggler slow_by_trace(Slowed who, std::string file) {
  return who.by(plan::Trace{std::move(file)});
}

/// The interval of checkpoints: seconds, epochs, or iterations of all workers together.
inline plan::CheckpointsKind every_seconds(double seconds) {
  return plan::EverySeconds{seconds};
}
inline plan::CheckpointsKind every_epochs(double epochs) {
  return plan::EveryEpochs{epochs};
}
inline plan::CheckpointsKind every_iterations(std::uint64_t iterations) {
  return plan::EveryIterations{iterations};
}
inline plan::CheckpointsKind never() {
  return plan::Never{};
}

/// The time of a fault: the start of this iteration of the actor, or a time. `.spread` of
/// plan::Fault adds a random delay.
inline plan::FaultTime at_iteration(std::int64_t iteration) {
  return iteration;
}
inline plan::FaultTime at_seconds(double seconds) {
  return seconds;
}
/// Any fault. Example: fault(worker(2), at_seconds(3), plan::SlowLink{.factor = 10}).
inline plan::Fault fault(Address who, plan::FaultTime when, plan::FaultKind kind) {
  return {who, when, 0, std::move(kind)};
}
/// Crashes, and restarts after `back` seconds; 0: never.
inline plan::Fault crashes(Address who, plan::FaultTime when, double back = 0) {
  return fault(who, when, plan::Crash{back});
}
/// Joins the run after `seconds`.
inline plan::Fault joins(Address who, double seconds) {
  return fault(who, seconds, plan::Joins{});
}
/// Finishes its iteration and leaves the run.
inline plan::Fault leaves(Address who, plan::FaultTime when) {
  return fault(who, when, plan::Leaves{});
}
/// Does nothing for `seconds`, like a stopped process.
inline plan::Fault freezes(Address who, plan::FaultTime when, double seconds) {
  return fault(who, when, plan::Freeze{seconds});
}

}  // namespace leeway
