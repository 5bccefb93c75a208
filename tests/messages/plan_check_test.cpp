#include <catch2/catch.hpp>
#include <limits>

#include "messages/plan.hpp"

using namespace leeway;
using Catch::Contains;

namespace {

/// The error of a good plan after `change`, or "".
template <class Change>
std::string after(Change change) {
  Plan plan;
  plan.model = {plan::Linear{10}};
  change(plan);
  const Status status = validate(plan);
  return status ? "" : status.error().text;
}

template <class Kind>
std::string with_optimizer(Kind kind) {
  return after([&](Plan& p) { p.optimizer.kind = kind; });
}
template <class Data>
std::string with_data(Data data) {
  return after([&](Plan& p) { p.data = data; });
}

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("a plan with a model is valid by its defaults") {
  CHECK(after([](Plan&) {}) == "");
}

TEST_CASE("counts out of range name the flag to change") {
  CHECK(after([](Plan& p) { p.workers = 0; }) ==
        "workers: 0 is not allowed; give --workers 1 to 4096");
  CHECK(after([](Plan& p) { p.workers = 4097; }) ==
        "workers: 4097 is not allowed; give --workers 1 to 4096");
  CHECK_THAT(after([](Plan& p) { p.shards = 0; }), Contains("give --shards 1 to 4096"));
  CHECK_THAT(after([](Plan& p) { p.batch = 0; }), Contains("batch: 0") && Contains("--batch 1 to"));
  CHECK_THAT(after([](Plan& p) { p.workers = 4096, p.batch = 1u << 24; }),
             Contains("too much for one round; give a smaller --batch"));
  CHECK_THAT(after([](Plan& p) { p.micro_batches = 0; }), Contains("micro_batches: 0"));
  CHECK_THAT(after([](Plan& p) { p.micro_batches = 65; }), Contains("give 1 to 64"));
  CHECK(after([](Plan& p) { p.micro_batches = 64; }) == "");
  CHECK_THAT(after([](Plan& p) { p.chunk = 63; }), Contains("chunk: 63 samples are less"));
  CHECK(after([](Plan& p) { p.chunk = 64; }) == "");
}

TEST_CASE("a prefetch needs a unit of leeway to spend") {
  const auto prefetch = [](plan::Consistency consistency) {
    return after([&](Plan& p) { p.prefetch = true, p.consistency = consistency; });
  };
  CHECK_THAT(prefetch(plan::Bsp{}), Contains("prefetch: with bsp it would park on itself") &&
                                        Contains("--staleness 1 or more"));
  CHECK_THAT(prefetch(plan::Ssp{0}), Contains("prefetch: with staleness 0"));
  CHECK(prefetch(plan::Ssp{1}) == "");
  CHECK(prefetch(plan::Asp{}) == "");
}

TEST_CASE("a model needs layers that can be trained") {
  const auto model = [](std::vector<plan::Layer> layers) {
    return after([&](Plan& p) { p.model = std::move(layers); });
  };
  CHECK_THAT(model({}), Contains("model: has no layers"));
  CHECK_THAT(model({plan::Flatten{}, plan::Relu{}}), Contains("nothing to train"));
  CHECK_THAT(model({plan::Relu{}, plan::Linear{0}}), Contains("model[1].linear.outputs: 0"));
  CHECK_THAT(model({plan::Linear{4'000'000'000u}, plan::Relu{}, plan::Linear{4'000'000'000u}}),
             Contains("model[2].linear: 4000000000 inputs"));
  CHECK_THAT(model({plan::CustomLayer{}}), Contains("model[0].custom.name: is empty"));
  CHECK(model({plan::CustomLayer{"lora", ""}}) == "");
}

TEST_CASE("the loss must fit the data") {
  CHECK_THAT(after([](Plan& p) { p.loss = plan::Loss::mean_squared_error; }),
             Contains("give softmax_cross_entropy"));
  CHECK_THAT(with_data(plan::Synthetic{}), Contains("give mean_squared_error"));
  CHECK_THAT(after([](Plan& p) {
               p.data = plan::Synthetic{};
               p.loss = plan::Loss::mean_squared_error;
               p.stop.accuracy = 0.9;
             }),
             Contains("stop.accuracy: only classes"));
}

TEST_CASE("data sources are checked field by field") {
  CHECK_THAT(with_data(plan::FashionMnist{""}), Contains("data.fashion_mnist.directory: is empty"));
  CHECK_THAT(with_data(plan::Idx{"a", "b", "c", ""}), Contains("data.idx.test_labels: is empty"));
  CHECK_THAT(with_data(plan::Csv{}), Contains("data.csv.train: is empty"));
  CHECK_THAT(with_data(plan::Csv{"a", "b", ""}), Contains("data.csv.label: is empty"));
  for (const double share : {0.0, 1.0, kNan})
    CHECK_THAT(with_data(plan::Csv{"a", "", "label", false, share}),
               Contains("data.csv.test_share: "));
  CHECK_THAT(with_data(plan::Synthetic{0, 1, plan::Clusters{}}), Contains("synthetic.samples: 0"));
  CHECK_THAT(with_data(plan::Synthetic{1, 0, plan::Clusters{}}), Contains("test_samples: 0"));
  CHECK_THAT(with_data(plan::Synthetic{1, 1, plan::Clusters{1}}), Contains("classes: 1"));
  CHECK_THAT(with_data(plan::Synthetic{1, 1, plan::Clusters{2, 0}}), Contains("features: 0"));
  CHECK_THAT(with_data(plan::Synthetic{1, 1, plan::Line{kInf}}), Contains("line.slope: inf"));
  CHECK_THAT(with_data(plan::Synthetic{1, 1, plan::Line{1, 1, -1}}), Contains("line.noise: -1"));
  CHECK_THAT(with_data(plan::CustomData{}), Contains("data.custom.name: is empty"));
}

TEST_CASE("optimizer settings are checked") {
  for (const double rate : {0.0, -1.0, kInf, kNan})
    CHECK_THAT(after([&](Plan& p) { p.optimizer.learning_rate = rate; }),
               Contains("optimizer.learning_rate: ") && Contains("give --lr above 0"));
  CHECK_THAT(after([](Plan& p) { p.optimizer.weight_decay = -1; }), Contains("weight_decay: -1"));
  CHECK_THAT(with_optimizer(plan::Momentum{1}), Contains("optimizer.momentum.factor: 1"));
  CHECK_THAT(with_optimizer(plan::Nesterov{-0.1}), Contains("optimizer.nesterov.factor: -0.1"));
  CHECK_THAT(with_optimizer(plan::Adam{1}), Contains("optimizer.adam.beta1: 1"));
  CHECK_THAT(with_optimizer(plan::AdamW{0.9, 1}), Contains("optimizer.adamw.beta2: 1"));
  CHECK_THAT(with_optimizer(plan::Adam{0.9, 0.9, 0}), Contains("optimizer.adam.epsilon: 0"));
  CHECK_THAT(with_optimizer(plan::AdaGrad{0}), Contains("optimizer.adagrad.epsilon: 0"));
  CHECK(with_optimizer(plan::Momentum{0}) == "");
}

TEST_CASE("schedules are checked") {
  const auto schedule = [](plan::Schedule value, double epochs = 10) {
    return after([&](Plan& p) {
      p.schedule = value;
      p.stop = {epochs, 100, 0, 0};
    });
  };
  CHECK_THAT(schedule({-1, {}}), Contains("schedule.warmup: -1"));
  CHECK_THAT(schedule({0, plan::Step{0}}), Contains("schedule.step.every: 0"));
  CHECK_THAT(schedule({0, plan::Step{1, 0}}), Contains("schedule.step.factor: 0"));
  CHECK_THAT(schedule({0, plan::Cosine{2}}), Contains("schedule.cosine.floor: 2"));
  CHECK_THAT(schedule({0, plan::Cosine{}}, 0), Contains("give --epochs"));
  CHECK_THAT(schedule({10, plan::Cosine{}}), Contains("schedule.warmup: 10 epochs leave nothing"));
  CHECK(schedule({1, plan::Cosine{}}) == "");
}

TEST_CASE("a run must end") {
  const auto stop = [](plan::Stop value, double every = 1) {
    return after([&](Plan& p) { p.stop = value, p.evaluate_every = every; });
  };
  CHECK_THAT(stop({0, 0, 0, 0}), Contains("stop: the run would never end; give --epochs"));
  CHECK_THAT(stop({-1, 0, 0, 0}), Contains("stop.epochs: -1"));
  CHECK_THAT(stop({1, 0, kNan, 0}), Contains("stop.seconds: nan"));
  CHECK_THAT(stop({1, 0, 0, 1.5}), Contains("stop.accuracy: 1.5"));
  CHECK_THAT(stop({1, 0, 0, 0.9}, 0), Contains("give evaluate_every = 1"));
  CHECK_THAT(stop({1, 0, 0, 0}, -1), Contains("evaluate_every: -1"));
  CHECK(stop({0, 7, 0, 0}) == "");
}

TEST_CASE("stragglers and faults name workers that exist") {
  const auto slow = [](std::vector<plan::Straggler> list) {
    return after([&](Plan& p) { p.stragglers = std::move(list); });
  };
  const auto fault = [](plan::Fault value) { return after([&](Plan& p) { p.faults = {value}; }); };
  CHECK_THAT(slow({{4}}), Contains("there is no worker 4; give --slow a worker from 0 to 3"));
  CHECK_THAT(slow({{3}, {3}}), Contains("stragglers[1].worker: 3 is slowed twice"));
  CHECK_THAT(slow({{3, 0.5}}), Contains("stragglers[0].factor: 0.5"));
  CHECK_THAT(slow({{3, kInf}}), Contains("stragglers[0].factor: inf"));
  CHECK_THAT(slow({{3, 4, 1.1}}), Contains("stragglers[0].share: 1.1"));
  CHECK_THAT(slow({{3, 4, 1, 0}}), Contains("stragglers[0].burst: 0"));
  CHECK(slow({{0}, {3, 1, 0, 1}}) == "");
  CHECK_THAT(fault({4, 0}), Contains("faults[0].worker: there is no worker 4"));
  CHECK_THAT(fault({0, -1}), Contains("faults[0].iteration: -1"));
}

TEST_CASE("a plan's name can name a folder") {
  for (const char* name : {"", "a/b", ".hidden", "a\nb"})
    CHECK_THAT(after([&](Plan& p) { p.name = name; }), Contains("name: "));
}
