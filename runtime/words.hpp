#pragma once
// The words of which a scenario is made: short names for the parts of a plan. Whole models have
// theirs in models.hpp.
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
/// A CSV file with a header line; `label` names the column of the class.
inline plan::Csv csv(std::string train, std::string label = "label") {
  plan::Csv source;
  source.train = std::move(train);
  source.label = std::move(label);
  return source;
}
/// Characters of a UTF-8 file, each to be told from up to `context` before it; without a file, of
/// the King James Bible as Debian's bible-kjv has it.
inline plan::DataSource text(std::uint32_t context, std::string file = "") {
  return plan::TextCorpus{.file = std::move(file), .context = context};
}
/// Samples of y = slope * x + intercept + noise * N(0, 1).
inline plan::Synthetic line(double slope, double intercept, double noise,
                            std::uint32_t samples = 10000) {
  return {samples, samples / 10, plan::Line{slope, intercept, noise}};
}
/// One Gaussian cluster a class.
inline plan::Synthetic clusters(std::uint32_t classes, std::uint32_t features,
                                std::uint32_t samples = 10000) {
  return {samples, samples / 10, plan::Clusters{classes, features, 3}};
}

// ---- layers and losses ----

inline plan::Layer linear(std::uint32_t outputs, plan::Init init = plan::Init::he) {
  return plan::Linear{outputs, init};
}
/// As in `conv2d(64, 3, {.padding = 1})`.
struct ConvOptions {
  std::uint32_t stride = 1, padding = 0, groups = 1;
  bool bias = true;
  plan::Init init = plan::Init::he;
};
/// A convolution of `outputs` channels with square kernels.
inline plan::Layer conv2d(std::uint32_t outputs, std::uint32_t kernel, ConvOptions options = {}) {
  return plan::Conv2d{outputs,        kernel,       options.stride, options.padding,
                      options.groups, options.bias, options.init};
}
/// Windows of kernel x kernel pixels, side by side; see plan::MaxPool2d for the rest.
inline plan::Layer max_pool(std::uint32_t kernel) {
  return plan::MaxPool2d{kernel, kernel, 0};
}
inline plan::Layer avg_pool(std::uint32_t kernel) {
  return plan::AvgPool2d{kernel, kernel, 0};
}
/// The mean of each channel's whole image.
inline plan::Layer global_avg_pool() {
  return plan::AvgPool2d{0, 1, 0};
}
inline plan::Layer batch_norm() {
  return plan::BatchNorm{};
}
inline plan::Layer layer_norm() {
  return plan::LayerNorm{};
}
inline plan::Layer relu() {
  return plan::Relu{};
}
inline plan::Layer gelu() {
  return plan::Gelu{};
}
/// Not plain tanh and sigmoid: the first is a function of <cmath>.
inline plan::Layer tanh_layer() {
  return plan::Tanh{};
}
inline plan::Layer sigmoid_layer() {
  return plan::Sigmoid{};
}
/// Zeroes each number with this probability while training.
inline plan::Layer dropout(double probability = 0.5) {
  return plan::Dropout{probability};
}
/// Rows of `features` numbers for tokens 0 to vocabulary - 1.
inline plan::Layer embedding(std::uint32_t vocabulary, std::uint32_t features) {
  return plan::Embedding{vocabulary, features};
}
/// A learned row for each place in a sequence, added to the features there.
inline plan::Layer positions() {
  return plan::Positions{};
}
/// Causal attention over queries, keys and values side by side: behind linear(3 * features).
inline plan::Layer attention(std::uint32_t heads) {
  return plan::Attention{heads};
}
/// How well each row of the embedding before fits: the last layer of a model of tokens.
inline plan::Layer unembedding() {
  return plan::Unembedding{};
}
/// body(x) + shortcut(x); without a shortcut, body(x) + x.
inline plan::Layer residual(std::vector<plan::Layer> body, std::vector<plan::Layer> shortcut = {}) {
  return plan::Residual{std::move(body), std::move(shortcut)};
}
inline plan::Layer flatten() {
  return plan::Flatten{};
}
inline plan::Layer custom(std::string name, std::string arguments = "") {
  return plan::CustomLayer{std::move(name), std::move(arguments)};
}
inline plan::Loss softmax_cross_entropy() {
  return plan::Loss::softmax_cross_entropy;
}
inline plan::Loss mean_squared_error() {
  return plan::Loss::mean_squared_error;
}

/// Of numbers in 0..1, or of two classes by one output.
inline plan::Loss sigmoid_cross_entropy() {
  return plan::Loss::sigmoid_cross_entropy;
}

// ---- optimizers and schedules ----

inline plan::Optimizer sgd(double learning_rate) {
  return {learning_rate, 0, plan::Sgd{}};
}
inline plan::Optimizer momentum(double learning_rate, double factor = 0.9) {
  return {learning_rate, 0, plan::Momentum{factor}};
}
inline plan::Optimizer nesterov(double learning_rate, double factor = 0.9) {
  return {learning_rate, 0, plan::Nesterov{factor}};
}
inline plan::Optimizer adam(double learning_rate = 1e-3) {
  return {learning_rate, 0, plan::Adam{}};
}
inline plan::Optimizer adamw(double learning_rate = 1e-3, double weight_decay = 0.01) {
  return {learning_rate, weight_decay, plan::AdamW{}};
}
inline plan::Optimizer adagrad(double learning_rate = 0.01) {
  return {learning_rate, 0, plan::AdaGrad{}};
}

/// The optimizers of `--optimizer`, with their usual learning rates.
struct NamedOptimizer {
  const char* name;
  plan::Optimizer optimizer;
};
inline const NamedOptimizer kOptimizers[] = {
    {"sgd", sgd(0.1)}, {"momentum", momentum(0.1)}, {"nesterov", nesterov(0.1)},
    {"adam", adam()},  {"adamw", adamw()},          {"adagrad", adagrad()},
};

inline plan::LrSchedule constant(double warmup_epochs = 0) {
  return {warmup_epochs, plan::Constant{}};
}
inline plan::LrSchedule step(double every_epochs, double factor, double warmup_epochs = 0) {
  return {warmup_epochs, plan::Step{every_epochs, factor}};
}
inline plan::LrSchedule cosine(double warmup_epochs = 0, double floor = 0) {
  return {warmup_epochs, plan::Cosine{floor}};
}

// ---- who waits for whom ----

/// Everybody waits for everybody after each iteration.
inline plan::Consistency bsp() {
  return plan::Bsp{};
}
/// Like bsp(), but a round does not wait for the last `spare` workers: what they push too late is
/// dropped, and its samples are trained in another round.
inline plan::Consistency backup(std::uint32_t spare) {
  return plan::Backup{spare};
}
/// A worker may be `staleness` iterations ahead of the slowest.
inline plan::Consistency ssp(std::uint32_t staleness) {
  return plan::Ssp{staleness};
}
/// Nobody waits.
inline plan::Consistency asp() {
  return plan::Asp{};
}
/// As ssp, with a bound from `low` to `high` that rises while workers wait, and falls while not.
inline plan::Consistency adaptive(std::uint32_t low, std::uint32_t high) {
  return plan::Adaptive{low, high};
}

// ---- trouble ----

/// Whom a straggler slows: a worker by its number, or `all_workers`, each with chances of its own.
struct Slowed {
  Slowed(std::uint32_t number) : worker(number) {}
  static Slowed everybody() {
    Slowed slowed(0);
    slowed.all = true;
    return slowed;
  }
  plan::Straggler by(plan::StragglerKind kind) const { return {worker, all, std::move(kind)}; }

  std::uint32_t worker;
  bool all = false;
};
inline const Slowed all_workers = Slowed::everybody();

/// Takes `factor` times as long, always.
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
/// Stands still for `length_ms` every so many iterations, or seconds.
inline plan::Straggler pauses(Slowed who, double length_ms, std::uint32_t every_iterations) {
  return who.by(plan::Pauses{length_ms, every_iterations});
}
inline plan::Straggler pauses_by_clock(Slowed who, double length_ms, double every_seconds) {
  return who.by(plan::Pauses{length_ms, every_seconds});
}
/// Slows evenly up to `factor` over so many iterations, and stays slow.
inline plan::Straggler slows_down(Slowed who, double factor, std::uint32_t iterations) {
  return who.by(plan::Decay{factor, iterations});
}
/// Takes `factor` times as long in `on` iterations, is not slow in `off`, and so on.
inline plan::Straggler shares_machine(Slowed who, double factor, std::uint32_t on,
                                      std::uint32_t off) {
  return who.by(plan::Sharing{factor, on, off});
}
/// Takes its factors from a file, one a line, from the first again after the last.
inline plan::Straggler slow_by_trace(Slowed who, std::string file) {
  return who.by(plan::Trace{std::move(file)});
}

/// Whom a fault befalls; `kScheduler` is the third.
inline Address worker(std::uint32_t number) {
  return address_of(WorkerId(number));
}
inline Address shard(std::uint32_t number) {
  return address_of(ShardId(number));
}
/// When it does: as the actor begins this iteration, or at a time. Drawn from the seed, up to so
/// much later: `.spread` of plan::Fault.
inline plan::FaultTime at_iteration(std::int64_t iteration) {
  return iteration;
}
inline plan::FaultTime at_seconds(double seconds) {
  return seconds;
}
/// Any fault, as in `fault(worker(2), at_seconds(3), plan::SlowLink{.factor = 10})`.
inline plan::Fault fault(Address who, plan::FaultTime when, plan::FaultKind kind) {
  return {who, when, 0, std::move(kind)};
}
/// Ends, and is started again after `back` seconds; 0: never.
inline plan::Fault crashes(Address who, plan::FaultTime when, double back = 0) {
  return fault(who, when, plan::Crash{back});
}
/// Is not there before.
inline plan::Fault joins(Address who, double seconds) {
  return fault(who, seconds, plan::Joins{});
}
/// Finishes its iteration, and takes part no longer.
inline plan::Fault leaves(Address who, plan::FaultTime when) {
  return fault(who, when, plan::Leaves{});
}
/// Does nothing for a while, as if its process had been stopped.
inline plan::Fault freezes(Address who, plan::FaultTime when, double seconds) {
  return fault(who, when, plan::Freeze{seconds});
}

}  // namespace leeway
