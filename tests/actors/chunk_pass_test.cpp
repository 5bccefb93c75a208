// A model in chunks, in the order of every schedule, gives the bits of the whole model.
#include <catch2/catch.hpp>

#include "kernels/executors.hpp"
#include "tests/actors/chunk_tasks.hpp"
#include "tests/support/fake_gpu.hpp"

using namespace leeway;
using namespace leeway::test;
using pipeline::Spec;

namespace {

Table table_of(const Spec& spec) {
  auto table = pipeline::make_table(spec);
  LW_CHECK(table.has_value(), table ? "" : table.error().text);
  return std::move(*table);
}

/// Every flushed schedule with 1 to 4 stages and 1 to 8 micro-batches.
std::vector<Spec> flushed_specs() {
  std::vector<Spec> specs;
  for (const auto& entry : pipeline::catalogue()) {
    if (entry.schedule().asynchronous()) continue;
    for (int stages = 1; stages <= 4; ++stages)
      for (const int micro_batches : {1, 2, 3, 4, 8})
        for (int chunks = 1; chunks <= 2; ++chunks) {
          const Spec spec{std::string(entry.name), stages, micro_batches, chunks, 1};
          if (validate(spec)) specs.push_back(spec);
        }
  }
  return specs;
}

Outcome played(const Task& task, const Memory& memory, const Table& table, bool recompute) {
  Stages stages(task, table, recompute);
  for (const auto& [stage, op] : order_of(table))
    if (op.kind != OpKind::update) stages.run(stage, op, memory.weights());
  return stages.outcome();
}

constexpr float kRate = 0.25f;

/// The weights of every version.
class Versions {
 public:
  Versions(const Task& task, int updates) : parameters_(task.model->parameters().size()) {
    for (int version = 0; version <= updates; ++version) {
      memory_.push_back(std::make_unique<Memory>(task.model));
      memory_.back()->initialize(3);
    }
  }
  Memory& at(int version) { return *memory_[static_cast<std::size_t>(version)]; }
  std::vector<Floats> all(int version) {
    std::vector<Floats> weights;
    for (std::size_t p = 0; p < parameters_; ++p) weights.push_back(at(version).weight(p));
    return weights;
  }
  /// A step of gradient descent for one parameter.
  void update(int version, std::size_t parameter, const Floats& gradient) {
    Floats weight = at(version - 1).weight(parameter);
    for (std::size_t i = 0; i < weight.size(); ++i) weight[i] -= kRate * gradient[i];
    at(version).set(parameter, weight);
  }

 private:
  std::size_t parameters_;
  std::vector<std::unique_ptr<Memory>> memory_;
};

bool is_trained(const Task& task, std::size_t parameter, ModelChunk chunk) {
  const Parameter& of = task.model->parameters()[parameter];
  return of.spec.average == 0 && chunk.has(of.layer);
}

/// Plays a table with its updates. Each stage uses its own weights, in the table's versions.
void play_updates(const Task& task, const Table& table, Versions& versions) {
  Stages stages(task, table, false);
  for (const auto& [stage, op] : order_of(table)) {
    if (op.kind != OpKind::update) {
      stages.run(stage, op, versions.at(op.version).weights());
      continue;
    }
    const ModelChunk chunk = stages.pass(stage).chunk();
    const auto gradients = stages.take_gradients(stage);
    for (std::size_t p = 0; p < gradients.size(); ++p)
      if (is_trained(task, p, chunk)) versions.update(op.version, p, gradients[p]);
  }
}

/// The same on one stage, with the weights that each chunk reads for a micro-batch.
void mix_updates(const Task& task, const Table& table, Versions& versions) {
  const auto chunks = split_into(*task.model, table.model_chunks());
  for (int update = 0; update < table.updates; ++update) {
    Memory mixed(task.model);
    mixed.initialize(3);
    std::vector<Floats> sums(task.model->parameters().size());
    for (int m = 0; m < table.micro_batches; ++m) {
      for (int stage = 0; stage < table.stages; ++stage)
        for (const Op& op : table.ops[static_cast<std::size_t>(stage)])
          if (op.kind == OpKind::forward && op.micro_batch == update * table.micro_batches + m)
            for (std::size_t p = 0; p < sums.size(); ++p)
              if (is_trained(task, p, chunks[static_cast<std::size_t>(stage)]))
                mixed.set(p, versions.at(op.version).weight(p));
      add_micro_batch(task, mixed, m, table.micro_batches, sums);
    }
    for (std::size_t p = 0; p < sums.size(); ++p)
      if (is_trained(task, p, ModelChunk::whole(*task.model)))
        versions.update(update + 1, p, sums[p]);
  }
}

/// The largest difference between two gradients, relative to the largest number in one.
double distance(const Floats& a, const Floats& b) {
  double most = 0, largest = 1e-30;
  LW_CHECK(a.size() == b.size(), a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
  }
  return most / largest;
}

/// Compares all flushed schedules with one stage. `loose`: a parameter summed in another order.
void require_one_stage(const Task& task, const std::string& loose = "") {
  kernels::use_one_compute_thread();
  Memory memory(task.model, 400);
  memory.initialize(3);
  std::map<int, Outcome> expected;
  for (const int m : {1, 2, 3, 4, 8}) expected[m] = one_stage(task, memory, m);
  const auto specs = flushed_specs();
  REQUIRE(specs.size() > 60);
  for (const Spec& spec : specs)
    for (const bool recompute : {false, true}) {
      CAPTURE(spec.schedule, spec.stages, spec.micro_batches, spec.chunks, recompute);
      const Outcome& one = expected[spec.micro_batches];
      const Outcome got = played(task, memory, table_of(spec), recompute);
      REQUIRE(std::abs(got.loss - one.loss) < 1e-12);
      REQUIRE(got.correct == one.correct);
      for (std::size_t p = 0; p < one.gradients.size(); ++p) {
        const std::string& name = task.model->parameters()[p].name;
        CAPTURE(name);
        const bool in_chunks = spec.stages * spec.chunks > 1 && spec.micro_batches > 1;
        if (name == loose && in_chunks)
          REQUIRE(distance(got.gradients[p], one.gradients[p]) < 1e-6);
        else
          REQUIRE(got.gradients[p] == one.gradients[p]);
      }
    }
}

/// Layers for vectors, with nested blocks, some of them empty.
Layers random_layers(Rng& rng, std::uint64_t count, int depth) {
  Layers layers;
  const auto width = [&] { return 1 + static_cast<std::uint32_t>(rng.below(6)); };
  for (std::uint64_t i = 0; i < count; ++i)
    switch (rng.below(depth == 0 ? 11 : depth == 1 ? 9 : 8)) {
      case 0:
      case 1:
        if (depth == 0)
          layers.push_back(linear(width()));
        else
          layers.push_back(dropout(0.5));
        break;
      case 2:
        layers.push_back(relu());
        break;
      case 3:
        layers.push_back(gelu());
        break;
      case 4:
        layers.push_back(dropout(0.3));
        break;
      case 5:
        layers.push_back(tanh_layer());
        break;
      case 6:
        layers.push_back(flatten());
        break;
      case 7:
        layers.push_back(layer_norm());
        break;
      case 8:
        layers.push_back(residual(random_layers(rng, rng.below(4), depth + 1),
                                  random_layers(rng, rng.below(3), depth + 1)));
        break;
      default: {
        // Two branches of the same width.
        const std::uint32_t outputs = width();
        Layers body = random_layers(rng, rng.below(3), depth + 1);
        body.push_back(linear(outputs));
        layers.push_back(residual(std::move(body), {linear(outputs)}));
      }
    }
  return layers;
}

/// The output size of these layers.
std::int64_t output_of(const Layers& layers, const Shape& input) {
  std::int64_t width = input.count();
  for (const auto& layer : layers) {
    if (const auto* one = std::get_if<plan::Linear>(&layer)) width = one->outputs;
    if (const auto* block = std::get_if<plan::Residual>(&layer))
      width = output_of(block->body, Shape{width});
  }
  return width;
}

/// A copy of the weights on another device.
class DeviceWeights {
 public:
  DeviceWeights(const Task& task, const Memory& memory, Executor& on) {
    for (std::size_t p = 0; p < task.model->parameters().size(); ++p) {
      const Floats values = memory.weight(p);
      blobs_.push_back(on.floats(static_cast<std::int64_t>(values.size())));
      on.upload(blobs_.back().mutable_data(), values.data(), blobs_.back().size());
      on.synchronize();
      const std::int64_t rows = task.model->parameters()[p].spec.shape.rows();
      slices_.push_back({0, rows, blobs_.back().as_floats()});
    }
    for (const auto& slice : slices_) views_.push_back({&slice, 1});
  }
  DeviceWeights(const DeviceWeights&) = delete;
  DeviceWeights& operator=(const DeviceWeights&) = delete;
  std::span<const ParameterView> views() const { return views_; }

 private:
  std::vector<Blob> blobs_;
  std::vector<RowSlice<const float>> slices_;
  std::vector<ParameterView> views_;
};

}  // namespace

TEST_CASE("every flushed schedule gives the bits of one stage: a multilayer perceptron",
          "[chunks]") {
  require_one_stage(mlp_task());
}

TEST_CASE("every flushed schedule gives the bits of one stage: convolutions and batch norm",
          "[chunks]") {
  require_one_stage(conv_task());
}

TEST_CASE("every flushed schedule gives the bits of one stage: residual blocks", "[chunks]") {
  require_one_stage(residual_task());
}

TEST_CASE("every flushed schedule gives the bits of one stage: gpt with dropout", "[chunks]") {
  require_one_stage(text_task(false));
}

// One stage adds the two tied gradients in each micro-batch. Chunks first sum each of them over the
// micro-batches, which is the same order for one micro-batch.
TEST_CASE("every flushed schedule gives the bits of one stage, except in tied weights",
          "[chunks]") {
  require_one_stage(text_task(true), "0.weight");
}

TEST_CASE("random models in random chunks give the bits of one stage", "[chunks]") {
  kernels::use_one_compute_thread();
  int in_chunks = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const Shape input{1 + static_cast<std::int64_t>(rng.below(5))};
    const Layers layers = random_layers(rng, 2 + rng.below(8), 0);
    const Task task{regressor(layers, input, output_of(layers, input)), 7};
    const auto pieces = pieces_of(*task.model, 1, *make_cpu_executor()).size();
    const int stages = static_cast<int>(1 + rng.below(std::min<std::size_t>(pieces, 5)));
    const Table table = table_of({rng.one_in(2) ? "zb_h1" : "1f1b", stages, 3});
    Memory memory(task.model);
    memory.initialize(seed);
    const Outcome got = played(task, memory, table, rng.one_in(2));
    const Outcome one = one_stage(task, memory, 3);
    REQUIRE(std::abs(got.loss - one.loss) <= 1e-12 * (1 + one.loss));
    REQUIRE(got.gradients == one.gradients);
    in_chunks += stages > 1 ? 1 : 0;
  }
  CHECK(in_chunks > 150);
}

TEST_CASE("every loss gives the bits of one stage", "[chunks]") {
  kernels::use_one_compute_thread();
  for (const auto loss : {plan::Loss::mean_squared_error, plan::Loss::sigmoid_cross_entropy}) {
    const Task task = regression_task(loss);
    Memory memory(task.model, 400);
    memory.initialize(3);
    for (const bool recompute : {false, true}) {
      const Outcome got = played(task, memory, table_of({"zb_h1", 3, 4}), recompute);
      const Outcome one = one_stage(task, memory, 4);
      REQUIRE(std::abs(got.loss - one.loss) < 1e-12);
      REQUIRE(got.gradients == one.gradients);
    }
  }
}

TEST_CASE("numeric labels reach the loss, also with recompute", "[chunks]") {
  kernels::use_one_compute_thread();
  Task task{built({linear(6), relu(), linear(1)}, plan::Loss::sigmoid_cross_entropy, {5}, 2, 0), 9};
  task.samples.batch.targets = nullptr;
  Memory memory(task.model, 400);
  memory.initialize(3);
  for (const bool recompute : {false, true}) {
    const Outcome got = played(task, memory, table_of({"gpipe", 2, 3}), recompute);
    REQUIRE(got.gradients == one_stage(task, memory, 3).gradients);
  }
}

// Without a flush, the table lists the version of the weights for each micro-batch and chunk. So
// one stage can compute the same micro-batches one by one, with weights mixed from these versions.
TEST_CASE("with stashed weights, every update equals that of one stage with the same mixed weights",
          "[chunks]") {
  kernels::use_one_compute_thread();
  const Task task = residual_task();
  for (const char* schedule : {"weight_stashing", "2bw"})
    for (int stages = 1; stages <= 4; ++stages)
      for (const int micro_batches : {1, 2, 3, 4}) {
        const Spec spec{schedule, stages, micro_batches, 1, 5};
        if (!validate(spec)) continue;
        CAPTURE(schedule, stages, micro_batches);
        const Table table = table_of(spec);
        Versions played(task, spec.updates), expected(task, spec.updates);
        play_updates(task, table, played);
        mix_updates(task, table, expected);
        for (int version = 1; version <= spec.updates; ++version) {
          CAPTURE(version);
          REQUIRE(played.all(version) == expected.all(version));
          REQUIRE(played.all(version) != expected.all(version - 1));
        }
      }
}

TEST_CASE("with one micro-batch in flight, stashed weights give plain steps", "[chunks]") {
  kernels::use_one_compute_thread();
  const Task task = mlp_task();
  for (const char* schedule : {"weight_stashing", "1f1b"}) {
    // One stage has one in flight, as does a pipeline that flushes for each update.
    const int stages = schedule == std::string("1f1b") ? 4 : 1;
    const Table table = table_of({schedule, stages, 1, 1, 4});
    Versions got(task, 4);
    play_updates(task, table, got);
    Memory plain(task.model);
    plain.initialize(3);
    Pass pass(task.model, task.size(), true);
    for (int step = 0; step < 4; ++step) descend(pass, plain, task.samples.batch, kRate);
    for (std::size_t p = 0; p < task.model->parameters().size(); ++p)
      REQUIRE(got.at(4).weight(p) == plain.weight(p));
  }
}

Outcome played_on(std::shared_ptr<Executor> device, const Task& task, const Memory& memory,
                  const Table& table, bool recompute) {
  const DeviceWeights weights(task, memory, *device);
  Stages stages(task, table, recompute, device);
  for (const auto& [stage, op] : order_of(table))
    if (op.kind != OpKind::update) stages.run(stage, op, weights.views());
  return stages.outcome();
}

TEST_CASE("chunks on a device that computes late give the same bits", "[chunks]") {
  kernels::use_one_compute_thread();
  for (const Task& task : {conv_task(), text_task(true)}) {
    Memory memory(task.model);  // another layout of weights would change results by rounding
    memory.initialize(3);
    for (const Spec& spec : {Spec{"1f1b", 3, 3}, Spec{"zb_h1", 3, 3}, Spec{"zb_v", 2, 3, 2}}) {
      const Table table = table_of(spec);
      const Outcome expected = played(task, memory, table, false);
      for (const bool recompute : {false, true}) {
        const Outcome got = played_on(make_fake_gpu(0, 7), task, memory, table, recompute);
        REQUIRE(got.loss == expected.loss);
        REQUIRE(got.gradients == expected.gradients);
      }
    }
  }
}

TEST_CASE("chunks on a GPU give the bits of one stage on that GPU", "[cuda]") {
  if (const auto why = cuda_unavailable(); !why.empty()) {
    WARN("skipped: " << why);
    return;
  }
  const auto gpu = [] { return *make_executor({Device::Kind::cuda, 0}); };
  for (const Task& task : {conv_task(), text_task(false)}) {
    Memory memory(task.model);
    memory.initialize(3);
    const Outcome one = played_on(gpu(), task, memory, table_of({"gpipe", 1, 3}), false);
    const Outcome host = one_stage(task, memory, 3);
    REQUIRE(std::abs(one.loss - host.loss) < 1e-4 * host.loss);
    for (const char* schedule : {"1f1b", "zb_h1"})
      for (const bool recompute : {false, true}) {
        const Outcome got = played_on(gpu(), task, memory, table_of({schedule, 3, 3}), recompute);
        REQUIRE(got.loss == one.loss);
        REQUIRE(got.gradients == one.gradients);
      }
  }
}
