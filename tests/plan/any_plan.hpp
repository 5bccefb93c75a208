#pragma once
// Random plans for property tests, and their text as TOML.
#include <rapidcheck.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "plan/plan.hpp"

namespace leeway::test {

template <class T>
T any() {
  return *rc::gen::arbitrary<T>();
}

/// Printable ASCII, quotes, control characters and a letter outside ASCII.
inline std::string any_text() {
  const auto letter = rc::gen::oneOf(
      rc::gen::map(rc::gen::inRange(1, 127),
                   [](int c) { return std::string(1, static_cast<char>(c)); }),
      rc::gen::element<std::string>("\"", "\\", "\n", std::string(1, '\0'), "\xc3\xa9", "="));
  std::string text;
  for (const auto& piece : *rc::gen::container<std::vector<std::string>>(letter)) text += piece;
  return text;
}

inline plan::DataSource any_data() {
  switch (*rc::gen::inRange(0, 7)) {
    case 0:
      return plan::FashionMnist{any_text()};
    case 1:
      return plan::Idx{any_text(), any_text(), any_text(), any_text()};
    case 2:
      return plan::Csv{any_text(), any_text(), any_text(), any<bool>(), any<double>(), any<bool>()};
    case 3:
      return plan::Synthetic{any<std::uint32_t>(), any<std::uint32_t>(),
                             plan::Line{any<double>(), any<double>(), any<double>()}};
    case 4:
      return plan::Synthetic{
          any<std::uint32_t>(), any<std::uint32_t>(),
          plan::Clusters{any<std::uint32_t>(), any<std::uint32_t>(), any<double>()}};
    case 5:
      return plan::TextCorpus{any_text(), any<std::uint32_t>(), any<double>()};
    default:
      return plan::CustomData{any_text()};
  }
}

inline plan::Init any_init() {
  return static_cast<plan::Init>(*rc::gen::inRange(0, 5));
}

template <class Pool>
Pool any_pool() {
  return {any<std::uint32_t>(), any<std::uint32_t>(), any<std::uint32_t>()};
}

inline std::vector<plan::Layer> any_layers(int depth);

/// A layer with up to `depth` residual layers inside one another.
inline plan::Layer any_layer(int depth) {
  switch (*rc::gen::inRange(0, depth > 0 ? 18 : 17)) {
    case 0:
      return plan::Linear{any<std::uint32_t>(), any_init(), any<bool>(), any<double>()};
    case 1:
      return plan::Relu{};
    case 2:
      return plan::Flatten{};
    case 3:
      return plan::CustomLayer{any_text(), any_text()};
    case 4:
      return plan::Conv2d{any<std::uint32_t>(),
                          any<std::uint32_t>(),
                          any<std::uint32_t>(),
                          any<std::uint32_t>(),
                          any<std::uint32_t>(),
                          any<bool>(),
                          any_init()};
    case 5:
      return any_pool<plan::MaxPool2d>();
    case 6:
      return any_pool<plan::AvgPool2d>();
    case 7:
      return plan::BatchNorm{any<double>(), any<double>()};
    case 8:
      return plan::LayerNorm{any<double>()};
    case 9:
      return plan::Gelu{};
    case 10:
      return plan::Tanh{};
    case 11:
      return plan::Sigmoid{};
    case 12:
      return plan::Dropout{any<double>()};
    case 13:
      return plan::Embedding{any<std::uint32_t>(), any<std::uint32_t>(), any_init(), any<double>()};
    case 14:
      return plan::Positions{any_init(), any<double>()};
    case 15:
      return plan::Attention{any<std::uint32_t>()};
    case 16:
      return plan::Unembedding{};
    default:
      return plan::Residual{any_layers(depth - 1), any_layers(depth - 1)};
  }
}

inline std::vector<plan::Layer> any_layers(int depth) {
  std::vector<plan::Layer> layers;
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) layers.push_back(any_layer(depth));
  return layers;
}

inline plan::Optimizer any_optimizer() {
  plan::Optimizer out{any<double>(), any<double>(), {}};
  switch (*rc::gen::inRange(0, 6)) {
    case 0:
      out.kind = plan::Sgd{};
      break;
    case 1:
      out.kind = plan::Momentum{any<double>()};
      break;
    case 2:
      out.kind = plan::Nesterov{any<double>()};
      break;
    case 3:
      out.kind = plan::Adam{any<double>(), any<double>(), any<double>()};
      break;
    case 4:
      out.kind = plan::AdamW{any<double>(), any<double>(), any<double>()};
      break;
    default:
      out.kind = plan::AdaGrad{any<double>()};
  }
  return out;
}

inline plan::LrSchedule any_lr_schedule() {
  plan::LrSchedule out{any<double>(), {}};
  switch (*rc::gen::inRange(0, 3)) {
    case 0:
      out.kind = plan::Constant{};
      break;
    case 1:
      out.kind = plan::Step{any<double>(), any<double>()};
      break;
    default:
      out.kind = plan::Cosine{any<double>()};
  }
  return out;
}

inline plan::Consistency any_consistency() {
  switch (*rc::gen::inRange(0, 5)) {
    case 0:
      return plan::Bsp{};
    case 1:
      return plan::Ssp{any<std::uint32_t>()};
    case 2:
      return plan::Backup{any<std::uint32_t>()};
    case 3:
      return plan::Adaptive{any<std::uint32_t>(), any<std::uint32_t>()};
    default:
      return plan::Asp{};
  }
}

inline plan::StragglerKind any_straggler_kind() {
  switch (*rc::gen::inRange(0, 8)) {
    case 0:
      return plan::ConstantFactor{any<double>()};
    case 1:
      return plan::Bursts{any<double>(), any<double>(), any<std::uint32_t>()};
    case 2:
      return plan::Pareto{any<double>(), any<double>()};
    case 3:
      return plan::Pauses{any<double>(), any<std::uint32_t>()};
    case 4:
      return plan::Pauses{any<double>(), any<double>()};
    case 5:
      return plan::Decay{any<double>(), any<std::uint32_t>()};
    case 6:
      return plan::Sharing{any<double>(), any<std::uint32_t>(), any<std::uint32_t>()};
    default:
      return plan::Trace{any_text()};
  }
}

inline Address any_actor() {
  const auto index = any<std::uint32_t>();
  return *rc::gen::element(kScheduler, address_of(WorkerId(index)), address_of(ShardId(index)));
}

inline plan::FaultTime any_fault_time() {
  if (any<bool>()) return any<std::int64_t>();
  return any<double>();
}

inline plan::FaultKind any_fault_kind() {
  switch (*rc::gen::inRange(0, 13)) {
    case 0:
      return plan::Throws{};
    case 1:
      return plan::Killed{};
    case 2:
      return plan::Crash{any<double>()};
    case 3:
      return plan::Joins{};
    case 4:
      return plan::Freeze{any<double>()};
    case 5:
      return plan::Slow{any<double>(), any<double>()};
    case 6:
      return plan::Breaks{any_actor(), any<double>()};
    case 7:
      return plan::Delay{any_actor(), any<double>(), any<double>()};
    case 8:
      return plan::Silence{any_actor(), any<double>()};
    case 9:
      return plan::Partition{{any_actor(), any_actor()}, any<double>()};
    case 10:
      return plan::SlowLink{any<double>(), any<double>()};
    case 11:
      return plan::Leaves{};
    default:
      return plan::ClockStops{any<double>()};
  }
}

inline plan::Pipeline any_pipeline() {
  return {any<std::uint32_t>(), any_text(), any<std::uint32_t>(), any_text(),
          any<std::vector<std::uint32_t>>()};
}

inline std::optional<plan::World> any_host() {
  if (any<bool>()) return std::nullopt;
  plan::World world;
  world.nodes = any<bool>() ? plan::World::Nodes::one : plan::World::Nodes::each;
  world.cores = any<std::uint32_t>();
  for (double* field :
       {&world.speed, &world.memory, &world.noise, &world.latency_us, &world.local_latency_us,
        &world.jitter, &world.link, &world.detection_ms, &world.message_us, &world.timer_us,
        &world.slice_us, &world.contention, &world.cold})
    *field = any<double>();
  world.cost_only = any<bool>();
  return world;
}

/// A plan whose fields hold anything that their types hold. `most_seed` bounds the 64-bit fields.
inline Plan any_plan(std::uint64_t most_seed = std::numeric_limits<std::uint64_t>::max()) {
  Plan out;
  out.name = any_text();
  out.seed = any<std::uint64_t>() % most_seed;
  out.data = any_data();
  out.model = any_layers(3);
  out.loss = static_cast<plan::Loss>(*rc::gen::inRange(0, 3));
  out.optimizer = any_optimizer();
  out.lr_schedule = any_lr_schedule();
  out.consistency = any_consistency();
  out.workers = any<std::uint32_t>();
  out.shards = any<std::uint32_t>();
  out.batch = any<std::uint32_t>();
  out.micro_batches = any<std::uint32_t>();
  out.prefetch = any<bool>();
  out.lease_size = any<std::uint32_t>();
  for (int i = *rc::gen::inRange(0, 3); i > 0; --i)
    out.stragglers.push_back({any<std::uint32_t>(), any<bool>(), any_straggler_kind()});
  for (int i = *rc::gen::inRange(0, 3); i > 0; --i)
    out.faults.push_back({any_actor(), any_fault_time(), any<double>(), any_fault_kind()});
  out.stop = {any<double>(), any<std::uint64_t>() % most_seed, any<double>(), any<double>()};
  out.evaluate_every = any<double>();
  out.augment = {any<bool>(), any<std::uint32_t>()};
  out.device = any_text();
  out.init_from = any_text();
  out.balance = any<bool>() ? plan::Balance::by_speed : plan::Balance::equal;
  out.pipeline = any_pipeline();
  out.simulated = any_host();
  return out;
}

/// A JSON value as TOML writes it inside a line. JSON's texts and numbers are TOML's, too.
inline std::string toml_value(const nlohmann::ordered_json& value) {
  if (!value.is_structured()) return value.dump();
  std::string out;
  for (const auto& [key, item] : value.items()) {
    if (!out.empty()) out += ", ";
    if (value.is_object()) out += key + " = ";
    out += toml_value(item);
  }
  return value.is_object() ? "{ " + out + " }" : "[" + out + "]";
}

inline std::string to_toml(const Plan& plan) {
  const auto tree = nlohmann::ordered_json::parse(to_json(plan));
  std::string out;
  for (const auto& [key, value] : tree.items()) out += key + " = " + toml_value(value) + '\n';
  return out;
}

}  // namespace leeway::test
