#pragma once
// The words of which a scenario is made: short names for the parts of a plan.
#include <string>

#include "messages/plan.hpp"

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
inline plan::Layer relu() {
  return plan::Relu{};
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

inline plan::Schedule constant(double warmup_epochs = 0) {
  return {warmup_epochs, plan::Constant{}};
}
inline plan::Schedule step(double every_epochs, double factor, double warmup_epochs = 0) {
  return {warmup_epochs, plan::Step{every_epochs, factor}};
}
inline plan::Schedule cosine(double warmup_epochs = 0, double floor = 0) {
  return {warmup_epochs, plan::Cosine{floor}};
}

// ---- who waits for whom ----

/// Everybody waits for everybody after each iteration.
inline plan::Consistency bsp() {
  return plan::Bsp{};
}
/// A worker may be `staleness` iterations ahead of the slowest.
inline plan::Consistency ssp(std::uint32_t staleness) {
  return plan::Ssp{staleness};
}
/// Nobody waits.
inline plan::Consistency asp() {
  return plan::Asp{};
}

// ---- trouble ----

/// `worker` takes `factor` times as long, always.
inline plan::Straggler slow(std::uint32_t worker, double factor) {
  return {worker, factor, 1, 50};
}
/// `worker` takes `factor` times as long in a `share` of its iterations, in random bursts of
/// `length` iterations on average.
inline plan::Straggler slow_in_bursts(std::uint32_t worker, double factor, double share,
                                      std::uint32_t length = 50) {
  return {worker, factor, share, length};
}

}  // namespace leeway
