#include <catch2/catch.hpp>
#include <limits>

#include "plan/plan.hpp"

using namespace leeway;
using Catch::Contains;

namespace {

/// The error of a valid plan after `change`, or "".
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

TEST_CASE("the default plan is valid once it has a model") {
  CHECK(after([](Plan&) {}) == "");
}

TEST_CASE("the error of a count out of range names the flag to change") {
  CHECK(after([](Plan& p) { p.workers = 0; }) ==
        "workers: 0 is not allowed; give --workers 1 to 65536");
  CHECK(after([](Plan& p) { p.workers = 65537; }) ==
        "workers: 65537 is not allowed; give --workers 1 to 65536");
  CHECK_THAT(after([](Plan& p) { p.shards = 0; }), Contains("give --shards 1 to 4096"));
  CHECK_THAT(after([](Plan& p) { p.batch = 0; }), Contains("batch: 0") && Contains("--batch 1 to"));
  CHECK_THAT(after([](Plan& p) { p.workers = 65536, p.batch = 1u << 24; }),
             Contains("too much for one round; give a smaller --batch"));
  CHECK_THAT(after([](Plan& p) { p.micro_batches = 0; }), Contains("micro_batches: 0"));
  CHECK_THAT(after([](Plan& p) { p.micro_batches = 65; }),
             Contains("give --micro-batches 1 to 64"));
  CHECK(after([](Plan& p) { p.micro_batches = 64; }) == "");
  CHECK_THAT(after([](Plan& p) { p.lease_size = 63; }),
             Contains("lease_size: 63 samples are less"));
  CHECK(after([](Plan& p) { p.lease_size = 64; }) == "");
}

TEST_CASE("prefetch needs a staleness bound of at least 1") {
  const auto prefetch = [](plan::Consistency consistency) {
    return after([&](Plan& p) { p.prefetch = true, p.consistency = consistency; });
  };
  CHECK_THAT(prefetch(plan::Bsp{}),
             Contains("prefetch: with bsp a worker would wait for its own push") &&
                 Contains("--staleness 1 or more"));
  CHECK_THAT(prefetch(plan::Ssp{0}), Contains("prefetch: with staleness 0"));
  CHECK(prefetch(plan::Ssp{1}) == "");
  CHECK(prefetch(plan::Asp{}) == "");
  CHECK(prefetch(plan::Adaptive{1, 8}) == "");
  CHECK_THAT(prefetch(plan::Adaptive{0, 8}), Contains("may fall to 0"));
}

TEST_CASE("the bounds of adaptive must increase") {
  const auto range = [](std::uint32_t low, std::uint32_t high) {
    return after([&](Plan& p) { p.consistency = plan::Adaptive{low, high}; });
  };
  CHECK(range(0, 1) == "");
  CHECK(range(3, 1'000'000) == "");
  for (const auto& wrong : {range(3, 3), range(4, 3), range(0, 1'000'001)})
    CHECK_THAT(wrong, Contains("is not a range") && Contains("--staleness adaptive(1,8)"));
}

TEST_CASE("a quorum has no more pushes than workers, and one kind of grace window") {
  const auto quorum = [](plan::Quorum spec) {
    return after([&](Plan& p) { p.workers = 4, p.consistency = spec; });
  };
  CHECK(quorum({4, 20}) == "");
  CHECK(quorum({.count = 1, .mad = true}) == "");
  for (const std::uint32_t count : {0u, 5u})
    CHECK_THAT(quorum({count, 0}),
               Contains("a round of 4 workers cannot wait for") && Contains("with K from 1 to 4"));
  CHECK_THAT(quorum({2, -1}), Contains("consistency.quorum.grace_ms: -1 is not allowed"));
  CHECK_THAT(quorum({2, 20, true}), Contains("give one of the two"));
}

TEST_CASE("the bound of auto may fall to 0, so workers cannot prefetch") {
  const auto automatic = [](std::uint32_t high, bool prefetch) {
    return after([&](Plan& p) { p.consistency = plan::Automatic{high}, p.prefetch = prefetch; });
  };
  CHECK(automatic(16, false) == "");
  CHECK_THAT(automatic(0, false), Contains("consistency.auto.high: 0 is not a largest bound"));
  CHECK_THAT(automatic(16, true), Contains("the bound of auto may fall to 0") &&
                                      Contains("give --staleness adaptive(1,8)"));
}

TEST_CASE("encodings and factors of losses that would have no effect are refused") {
  const auto compressed = [](plan::Compression compress) {
    return after([&](Plan& p) { p.compress = compress; });
  };
  CHECK(compressed({.push = plan::TopK{0.2, 1}}) == "");
  CHECK(compressed({.push = plan::TopK{0.5, 0}}) == "");
  CHECK_THAT(compressed({.push = plan::TopK{0.25, 1}}),
             Contains("begins with a quarter of the values, but the share is 0.25") &&
                 Contains("give a share below 0.25"));
  for (const auto& stages : {plan::Compression{.activations = plan::Bf16{}},
                             plan::Compression{.activation_gradients = plan::Int8{}}})
    CHECK_THAT(compressed(stages), Contains("there are no stages; give --stages 2 or more"));
  const auto scaled = [](const char* precision) {
    return after([&](Plan& p) { p.loss_scale = 1024, p.precision = precision; });
  };
  CHECK(scaled("fp16") == "");
  for (const char* precision : {"fp32", "bf16", "mixed"})
    CHECK_THAT(scaled(precision),
               Contains("loss_scale: 1024 has no effect") && Contains("give --precision fp16"));
}

TEST_CASE("the workers must divide into whole pipelines") {
  const auto piped = [](std::uint32_t stages, std::uint32_t workers) {
    return after([&](Plan& p) { p.pipeline.stages = stages, p.workers = workers; });
  };
  CHECK(piped(4, 4) == "");
  CHECK(piped(4, 12) == "");
  CHECK(piped(1024, 1024) == "");
  CHECK(piped(0, 4) == "pipeline.stages: 0 is not allowed; give --stages 1 to 1024");
  CHECK(piped(1025, 1025) == "pipeline.stages: 1025 is not allowed; give --stages 1 to 1024");
  CHECK(piped(4, 6) ==
        "pipeline.stages: 6 workers cannot be divided into pipelines of 4 stages; give --workers 4 "
        "or 8");
  CHECK(piped(4, 3) ==
        "pipeline.stages: 3 workers cannot be divided into pipelines of 4 stages; give --workers "
        "4");
}

TEST_CASE("settings that a pipeline does not support are refused with a remedy") {
  const auto piped = [](auto change) {
    return after([&](Plan& p) {
      p.pipeline.stages = 2;
      change(p);
    });
  };
  CHECK(piped([](Plan& p) { p.pipeline.chunks = 26; }) == "");
  CHECK(piped([](Plan& p) { p.pipeline.chunks = 0; }) ==
        "pipeline.chunks: 0 is not allowed; give --chunks 1 to 26");
  CHECK(piped([](Plan& p) { p.pipeline.chunks = 27; }) ==
        "pipeline.chunks: 27 is not allowed; give --chunks 1 to 26");
  CHECK(piped([](Plan& p) { p.pipeline.recompute = {0, 1}; }) == "");
  CHECK(piped([](Plan& p) {
          p.pipeline.recompute = {0, 2};
        }) == "pipeline.recompute: there is no stage 2; give stages from 0 to 1");
  for (const std::vector<std::uint32_t>& wrong : {std::vector<std::uint32_t>{1, 0}, {1, 1}})
    CHECK(piped([&](Plan& p) { p.pipeline.recompute = wrong; }) ==
          "pipeline.recompute: give each stage once, in ascending order");
  CHECK(piped([](Plan& p) { p.prefetch = true, p.consistency = plan::Asp{}; }) ==
        "prefetch: a stage pulls at the times that its schedule sets; give --no-prefetch, or "
        "--stages 1");
  CHECK(piped([](Plan& p) { p.consistency = plan::Backup{1}; }) ==
        "consistency: a pipeline cannot abandon an iteration that it has begun, as backup and "
        "quorum require; give --staleness bsp, or --stages 1");
}

TEST_CASE("pipeline settings are refused if workers train the whole model") {
  const auto whole = [](plan::Pipeline pipeline) {
    return after([&](Plan& p) { p.pipeline = std::move(pipeline); });
  };
  CHECK(whole({.schedule = "2bw"}) == "");  // a schedule is allowed, because flags may add stages
  CHECK(whole({.split = "0-3,4-5,6"}) ==
        "pipeline.split: \"0-3,4-5,6\" splits the model, but each worker trains all of it; give "
        "--stages 3, or no split");
  CHECK_THAT(whole({.split = "0-3"}), Contains("give --stages 2, or no split"));
  CHECK(whole({.chunks = 2}) ==
        "pipeline.chunks: 2 chunks of the model on each stage, but there are no stages; give "
        "--stages 2 or more, or --chunks 1");
  CHECK(whole({.recompute = {0}}) ==
        "pipeline.recompute: there are no stages; give --stages 2 or more, or --recompute none");
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

namespace {

std::string with_layer(plan::Layer layer) {
  return after([&](Plan& p) { p.model = {std::move(layer), plan::Linear{10}}; });
}

}  // namespace

TEST_CASE("the settings of layers are checked") {
  CHECK(with_layer(plan::Conv2d{}) == "model[0].conv2d.outputs: 0 is not allowed; give 1 or more");
  CHECK_THAT(with_layer(plan::Conv2d{.outputs = 4, .kernel = 0}),
             Contains("model[0].conv2d.kernel: 0 is not allowed; give 1 to 1024"));
  CHECK_THAT(with_layer(plan::Conv2d{.outputs = 4, .stride = 0}), Contains("conv2d.stride: 0"));
  CHECK_THAT(with_layer(plan::Conv2d{.outputs = 4, .padding = 3}),
             Contains("conv2d.padding: 3 is not allowed; give less than the kernel, 3"));
  CHECK_THAT(with_layer(plan::Conv2d{.outputs = 4, .groups = 3}),
             Contains("conv2d.groups: 3 does not divide the 4 outputs"));
  CHECK_THAT(with_layer(plan::Conv2d{.outputs = 4, .groups = 0}), Contains("conv2d.groups: 0"));
  CHECK_THAT(with_layer(plan::Conv2d{.outputs = ~0u, .kernel = 1024}),
             Contains("model[0].conv2d: 4294967295 outputs of a 1024x1024 kernel need more than"));
  CHECK(with_layer(plan::Conv2d{4, 5, 2, 4, 2}) == "");
  CHECK_THAT(with_layer(plan::MaxPool2d{0}), Contains("max_pool2d.kernel: 0"));
  CHECK_THAT(with_layer(plan::MaxPool2d{16}), Contains("max_pool2d.kernel: 16 is not allowed"));
  CHECK(with_layer(plan::AvgPool2d{28}) == "");
  CHECK_THAT(with_layer(plan::AvgPool2d{1025}), Contains("avg_pool2d.kernel: 1025"));
  CHECK_THAT(with_layer(plan::Conv2d{.outputs = 4, .stride = ~0u}),
             Contains("conv2d.stride: 4294967295 is not allowed; give 1 to 1024"));
  // Values that round to 0 or 1 as floats.
  CHECK_THAT(with_layer(plan::BatchNorm{1e-60}), Contains("batch_norm.epsilon: "));
  CHECK_THAT(with_layer(plan::Dropout{0.99999999}), Contains("dropout.probability: "));
  CHECK_THAT(with_layer(plan::AvgPool2d{2, 0}), Contains("avg_pool2d.stride: 0"));
  CHECK_THAT(with_layer(plan::MaxPool2d{3, 1, 2}), Contains("give at most half the kernel, 1"));
  CHECK(with_layer(plan::MaxPool2d{15, 1, 7}) == "");
  CHECK(with_layer(plan::AvgPool2d{.kernel = 0}) == "");
  for (const double value : {0.0, kNan, kInf}) {
    CHECK_THAT(with_layer(plan::BatchNorm{value}), Contains("model[0].batch_norm.epsilon: "));
    CHECK_THAT(with_layer(plan::LayerNorm{value}), Contains("model[0].layer_norm.epsilon: "));
    CHECK_THAT(with_layer(plan::BatchNorm{1e-5, value}), Contains("batch_norm.momentum: "));
  }
  CHECK_THAT(with_layer(plan::BatchNorm{1e-5, 1.1}), Contains("batch_norm.momentum: 1.1"));
  CHECK(with_layer(plan::BatchNorm{1e-5, 1}) == "");
  CHECK_THAT(with_layer(plan::Dropout{1}), Contains("model[0].dropout.probability: 1"));
  CHECK_THAT(with_layer(plan::Dropout{-0.1}), Contains("dropout.probability: -0.1"));
  CHECK(with_layer(plan::Dropout{0}) == "");
  CHECK(with_layer(plan::Embedding{0, 1}) == "");
  CHECK_THAT(with_layer(plan::Attention{0}), Contains("attention.heads: 0"));
  for (const double value : {0.0, -1.0, kNan, kInf}) {
    CHECK_THAT(with_layer(plan::Positions{plan::Init::normal, value}),
               Contains("model[0].positions.deviation: "));
    CHECK_THAT(with_layer(plan::Embedding{1, 1, plan::Init::normal, value}),
               Contains("model[0].embedding.deviation: "));
    CHECK_THAT(with_layer(plan::Linear{1, plan::Init::normal, true, value}),
               Contains("model[0].linear.deviation: "));
  }
  CHECK_THAT(with_layer(plan::Embedding{1, 0}), Contains("embedding.features: 0"));
  CHECK_THAT(with_layer(plan::Embedding{~0u, ~0u}), Contains("give fewer features"));
  for (const plan::Layer& layer :
       {plan::Layer(plan::Gelu{}), plan::Layer(plan::Tanh{}), plan::Layer(plan::Sigmoid{})})
    CHECK(with_layer(layer) == "");
}

TEST_CASE("a value beyond the largest float is refused with the bound") {
  CHECK_THAT(with_layer(plan::BatchNorm{1e300}),
             Contains("epsilon: 1e+300 is not allowed") && Contains("above 0, at most 1000000000"));
}

TEST_CASE("integers are checked and shown exactly") {
  const auto at = [](std::int64_t iteration) {
    return after([&](Plan& p) {
      p.faults = {{address_of(WorkerId(0)), iteration, 0, plan::Throws{}}};
    });
  };
  CHECK(at((std::int64_t{1} << 40) - 1) == "");
  CHECK(at(std::numeric_limits<std::int64_t>::max()) ==
        "faults[0].at.iteration: 9223372036854775807 is not allowed; give 0 to 1099511627775");
  CHECK(at(std::numeric_limits<std::int64_t>::min()) ==
        "faults[0].at.iteration: -9223372036854775808 is not allowed; give 0 to 1099511627775");
}

TEST_CASE("nested layers are checked, and errors name their place") {
  CHECK(with_layer(plan::Residual{{plan::Relu{}, plan::Conv2d{}}, {}}) ==
        "model[0].residual.body[1].conv2d.outputs: 0 is not allowed; give 1 or more");
  CHECK_THAT(with_layer(plan::Residual{{plan::Relu{}}, {plan::Residual{{plan::Linear{}}, {}}}}),
             Contains("model[0].residual.shortcut[0].residual.body[0].linear.outputs: 0"));
  CHECK_THAT(with_layer(plan::Residual{{}, {plan::Relu{}}}),
             Contains("model[0].residual.body: has no layers; give at least one"));
  CHECK(after([](Plan& p) { p.model = {plan::Residual{{plan::Linear{10}}, {}}}; }) == "");
  CHECK_THAT(after([](Plan& p) {
               p.model = {plan::Residual{{plan::Relu{}}, {}}};
             }),
             Contains("nothing to train"));

  plan::Layer nested = plan::Linear{10};
  for (int i = 0; i < 8; ++i) nested = plan::Residual{{nested}, {}};
  CHECK(with_layer(nested) == "");
  CHECK_THAT(with_layer(plan::Residual{{nested}, {}}), Contains("nest them less deeply"));
  CHECK(after([&](Plan& p) { p.model = {nested, nested}; }) == "");
  CHECK_THAT(with_layer(plan::Residual{std::vector<plan::Layer>(4095, plan::Relu{}), {}}),
             Contains("more than 4096 layers"));
  CHECK(with_layer(plan::Residual{std::vector<plan::Layer>(4094, plan::Relu{}), {}}) == "");
}

TEST_CASE("images are shifted by at most 999 pixels") {
  CHECK(after([](Plan& p) { p.augment = {true, 999}; }) == "");
  CHECK(after([](Plan& p) { p.augment.shift = 1000; }) ==
        "augment.shift: 1000 is not allowed; give 0 to 999");
}

TEST_CASE("devices are assigned only to workers and shards that exist") {
  const auto device = [](std::string text) {
    return after([&](Plan& p) { p.device = std::move(text); });
  };
  CHECK(device("workers=cuda,worker3=cpu,shard1=cuda:1") == "");
  CHECK(device("worker4=cuda") ==
        "device: there is no worker 4; give one from worker0 to worker3, or more --workers");
  CHECK_THAT(device("gpu"), Contains("device: \"gpu\""));
  CHECK_THAT(after([](Plan& p) { p.workers = 0, p.device = "gpu"; }), Contains("workers: 0"));
}

TEST_CASE("the loss must fit the data") {
  const auto loss = [](plan::DataSource data, plan::Loss value, double accuracy = 0) {
    return after([&](Plan& p) { p.data = data, p.loss = value, p.stop.accuracy = accuracy; });
  };
  const plan::DataSource classes = plan::FashionMnist{};
  const plan::DataSource numbers = plan::Synthetic{};
  CHECK_THAT(loss(classes, plan::Loss::mean_squared_error), Contains("give softmax_cross_entropy"));
  CHECK_THAT(loss(numbers, plan::Loss::softmax_cross_entropy),
             Contains("give mean_squared_error, or sigmoid_cross_entropy"));
  CHECK(loss(numbers, plan::Loss::mean_squared_error) == "");
  CHECK(loss(numbers, plan::Loss::sigmoid_cross_entropy) == "");
  CHECK(loss(classes, plan::Loss::sigmoid_cross_entropy, 0.9) == "");
  for (const auto value : {plan::Loss::mean_squared_error, plan::Loss::sigmoid_cross_entropy})
    CHECK_THAT(loss(numbers, value, 0.9), Contains("stop.accuracy: only classes"));
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
               Contains("optimizer.learning_rate: ") && Contains("give --lr 1e-30 to"));
  CHECK_THAT(after([](Plan& p) { p.optimizer.weight_decay = -1; }), Contains("weight_decay: -1"));
  CHECK_THAT(with_optimizer(plan::Momentum{1}), Contains("optimizer.momentum.factor: 1"));
  CHECK_THAT(with_optimizer(plan::Nesterov{-0.1}), Contains("optimizer.nesterov.factor: -0.1"));
  CHECK_THAT(with_optimizer(plan::Adam{1}), Contains("optimizer.adam.beta1: 1"));
  CHECK_THAT(with_optimizer(plan::AdamW{0.9, 1}), Contains("optimizer.adamw.beta2: 1"));
  CHECK_THAT(with_optimizer(plan::Adam{0.9, 0.9, 0}), Contains("optimizer.adam.epsilon: 0"));
  CHECK_THAT(with_optimizer(plan::AdaGrad{0}), Contains("optimizer.adagrad.epsilon: 0"));
  CHECK(with_optimizer(plan::Momentum{0}) == "");
}

TEST_CASE("lr schedules are checked") {
  const auto schedule = [](plan::LrSchedule value, double epochs = 10) {
    return after([&](Plan& p) {
      p.lr_schedule = value;
      p.stop = {epochs, 100, 0, 0};
    });
  };
  CHECK_THAT(schedule({-1, {}}), Contains("lr_schedule.warmup: -1"));
  CHECK_THAT(schedule({0, plan::Step{0}}), Contains("lr_schedule.step.every: 0"));
  CHECK_THAT(schedule({0, plan::Step{1, 0}}), Contains("lr_schedule.step.factor: 0"));
  CHECK_THAT(schedule({0, plan::Cosine{2}}), Contains("lr_schedule.cosine.floor: 2"));
  CHECK_THAT(schedule({0, plan::Cosine{}}, 0), Contains("give --epochs"));
  CHECK_THAT(schedule({10, plan::Cosine{}}),
             Contains("lr_schedule.warmup: 10 epochs leave nothing"));
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
  CHECK_THAT(slow({{}, {3, true}}),
             Contains("stragglers[1].worker: 3 is given, and all = true as well; keep one"));
  CHECK(slow({{0}, {3}, {3}, {0, true}}) == "");
  CHECK(slow({{.together = {0, 3}}}) == "");
  CHECK_THAT(slow({{.together = {0, 4}}}),
             Contains("stragglers[0].together: there is no worker 4"));
  CHECK_THAT(slow({{.together = {3, 3}}}), Contains("together: names a worker twice"));
  CHECK_THAT(slow({{.worker = 1, .together = {0, 3}}}), Contains("together: another worker"));
  CHECK_THAT(slow({{.all = true, .together = {0, 3}}}), Contains("together: another worker"));
  CHECK_THAT(fault({address_of(WorkerId(4)), std::int64_t{0}, 0, plan::Throws{}}),
             Contains("faults[0].actor: there is no worker 4; give worker0 to worker3, shard0"));
  CHECK_THAT(fault({address_of(WorkerId(0)), std::int64_t{-1}, 0, plan::Throws{}}),
             Contains("faults[0].at.iteration: -1"));
}

TEST_CASE("settings of stragglers out of range are refused") {
  const auto slow = [](plan::StragglerKind kind) {
    return after([&](Plan& p) { p.stragglers = {{}, {2, false, std::move(kind)}}; });
  };
  CHECK(slow(plan::ConstantFactor{0.5}) ==
        "stragglers[1].factor: 0.5 is not allowed; give a factor from 1 to 1000000, as in --slow "
        "3:4x");
  const auto [kind, expected] = GENERATE(table<plan::StragglerKind, std::string>({
      {plan::ConstantFactor{kInf}, "factor: inf"},
      {plan::ConstantFactor{2e6}, "factor: 2000000"},
      {plan::Bursts{kNan}, "bursts.factor: nan"},
      {plan::Bursts{4, 1.1}, "bursts.share: 1.1"},
      {plan::Bursts{4, kNan}, "bursts.share: nan"},
      {plan::Bursts{4, 0.5, 0}, "bursts.length: 0"},
      {plan::Pareto{0}, "pareto.alpha: 0"},
      {plan::Pareto{kNan}, "pareto.alpha: nan"},
      {plan::Pareto{101}, "pareto.alpha: 101"},
      {plan::Pareto{1, 0.9}, "pareto.cap: 0.9"},
      {plan::Pareto{1, 1e7}, "pareto.cap: 10000000"},
      {plan::Pauses{0}, "pauses.length_ms: 0"},
      {plan::Pauses{4e6}, "pauses.length_ms: 4000000"},
      {plan::Pauses{1, 0u}, "pauses.iterations: 0"},
      {plan::Pauses{1, kNan}, "pauses.seconds: nan"},
      {plan::Pauses{1, 1e5}, "pauses.seconds: 100000"},
      {plan::Pauses{500, 0.5}, "pauses.length_ms: a pause of 500 ms every 0.5 s leaves no time"},
      {plan::Decay{-1}, "decay.factor: -1"},
      {plan::Decay{2, 0}, "decay.iterations: 0"},
      {plan::Sharing{0}, "sharing.factor: 0"},
      {plan::Sharing{2, 0}, "sharing.on: 0"},
      {plan::Sharing{2, 1, 0}, "sharing.off: 0"},
      {plan::Trace{}, "trace.file: is empty; give the path"},
      {plan::Sharing{2, 3, 4, -2}, "sharing.phase: -2"},
      {plan::Sharing{2, 3, 4, 7}, "sharing.phase: 7 is not within the cycle of 7 iterations"},
      {plan::Repeated{}, "repeated.factors: is empty"},
      {plan::Repeated{{2, 0.5}}, "repeated.factors: 0.5"},
      {plan::Repeated{{kNan}}, "repeated.factors: nan"},
      {plan::FixedDelay{0}, "fixed_delay.delay_ms: 0"},
      {plan::CustomStraggler{}, "custom.function: is empty; give the name"},
  }));
  CHECK_THAT(slow(kind), Contains("stragglers[1]." + expected) && Contains("; give "));
}

TEST_CASE("a straggler begins at a valid iteration, or after a share of a limited run") {
  const auto from = [](plan::StragglerStart start, plan::Stop stop) {
    return after([&](Plan& p) {
      p.stragglers = {{.from = start}};
      p.stop = stop;
    });
  };
  const plan::Stop epochs{2}, iterations{0, 50}, time{0, 0, 5};
  CHECK(from(0.5, epochs) == "");
  CHECK(from(0.5, iterations) == "");
  CHECK(from(std::int64_t{100}, time) == "");
  CHECK(from(0.0, time) == "");
  CHECK_THAT(from(0.5, time), Contains("stragglers[0].from.share: the run has no limit"));
  CHECK_THAT(from(1.0, epochs), Contains("stragglers[0].from.share: 1 is not allowed; give 0 to"));
  CHECK_THAT(from(std::int64_t{-1}, epochs), Contains("stragglers[0].from.iteration: -1"));
}

TEST_CASE("stragglers of every kind are allowed up to their limits") {
  for (const plan::StragglerKind& kind : std::vector<plan::StragglerKind>{
           plan::ConstantFactor{1e6}, plan::Bursts{1, 0, 1}, plan::Bursts{1, 1, 1},
           plan::Pareto{0.1, 1}, plan::Pauses{3.6e6}, plan::Pauses{499, 0.5}, plan::Decay{1, 1},
           plan::Sharing{1, 1, 1}, plan::Sharing{1, 1, 1, 1}, plan::Trace{"x"},
           plan::Repeated{{1, 1e6}}, plan::FixedDelay{3.6e6}, plan::CustomStraggler{"x"}})
    CHECK(after([&](Plan& p) { p.stragglers = {{0, true, kind}}; }) == "");
}

TEST_CASE("a plan's name must be valid for a folder") {
  for (const char* name : {"", "a/b", ".hidden", "a\nb"})
    CHECK_THAT(after([&](Plan& p) { p.name = name; }), Contains("name: "));
}
