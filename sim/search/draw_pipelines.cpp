#include "sim/search/draw_pipelines.hpp"

#include <algorithm>
#include <set>

#include "core/text.hpp"
#include "kernels/executor.hpp"
#include "models/pieces.hpp"
#include "policies/pipeline/schedule.hpp"
#include "sim/search/dice.hpp"

namespace leeway::sim {
namespace {

constexpr std::uint32_t kMostStages = 4, kMostPipelines = 3, kMostMicroBatches = 6;
constexpr std::uint32_t kMostChunks = 3;

/// Lower than the scenario's, because the model is deeper and its weights are older.
double drawn_rate(double of_scenario) {
  return std::min(of_scenario / 20, 0.01);
}

plan::Layer linear(std::uint32_t width) {
  return plan::Linear{.outputs = width, .init = plan::Init::xavier};
}

/// A layer without weights that accepts a flat sample.
plan::Layer drawn_without_weights(Rng& rng) {
  switch (rng.below(4)) {
    case 0:
      return plan::Relu{};
    case 1:
      return plan::Tanh{};
    case 2:
      return plan::Flatten{};
    default:
      return plan::Dropout{0.2};
  }
}

/// A chain of small layers that accept flat samples, followed by a norm and the original last
/// layer. The norm keeps training from diverging at any depth: it bounds the input of the last
/// layer, and growing weights before it get smaller gradients.
std::vector<plan::Layer> drawn_layers(Rng& rng, const plan::Layer& last) {
  std::vector<plan::Layer> layers;
  // Layers without weights at the start permit a first stage without weights.
  for (std::uint32_t more = rng.one_in(3) ? between(rng, 1, 2) : 0; more > 0; --more)
    layers.push_back(drawn_without_weights(rng));
  std::uint32_t width = between(rng, 3, 8);
  layers.push_back(linear(width));
  for (std::uint32_t more = between(rng, 2, 8); more > 0; --more) {
    switch (rng.below(8)) {
      case 0:
      case 1:
        layers.push_back(drawn_without_weights(rng));
        break;
      case 2:
        layers.push_back(plan::LayerNorm{});
        break;
      case 3:
        layers.push_back(plan::Residual{{linear(width), plan::Gelu{}}, {}});
        break;
      default:
        width = between(rng, 3, 8);
        layers.push_back(linear(width));
    }
  }
  layers.push_back(plan::LayerNorm{});
  layers.push_back(last);
  return layers;
}

std::shared_ptr<const Model> drawn_model(const Job& base, Rng& rng, Plan& plan) {
  const bool made = std::holds_alternative<plan::Synthetic>(plan.data);
  if (!made || !std::holds_alternative<plan::Linear>(plan.model.back())) return base.model;
  auto layers = drawn_layers(rng, plan.model.back());
  const Dataset& data = *base.data.train;
  auto model = Model::build(layers, plan.loss, data.sample_shape(), data.classes(),
                            data.target_count(), data.label_count());
  LW_CHECK(bool(model), model ? std::string() : model.error().text);
  plan.model = std::move(layers);
  plan.optimizer.learning_rate = drawn_rate(plan.optimizer.learning_rate);
  return *model;
}

/// `most` is the number of chunks that the model can be split into.
pipeline::Spec drawn_spec(Rng& rng, std::uint32_t most) {
  const auto schedules = pipeline::catalogue();
  for (int trial = 0; trial < 1000; ++trial) {
    pipeline::Spec spec;
    const auto& entry = schedules[rng.below(schedules.size())];
    spec.schedule = entry.name;
    spec.stages = static_cast<int>(between(rng, 2, std::min(kMostStages, most)));
    spec.micro_batches = static_cast<int>(between(rng, 1, kMostMicroBatches));
    const auto chunks = std::min(kMostChunks, most / static_cast<std::uint32_t>(spec.stages));
    const bool is_v = entry.schedule().placement() == pipeline::Placement::Shape::v;
    if (is_v && chunks < 2) continue;
    if (is_v) {
      spec.chunks = entry.chunks;
      // dualpipe_v needs two for each stage.
      spec.micro_batches = static_cast<int>(between(rng, 1, 2 * kMostStages));
    } else if (entry.chunks > 1) {
      spec.chunks = static_cast<int>(between(rng, 1, chunks));
    }
    if (pipeline::validate(spec)) return spec;
  }
  return {.stages = 2};
}

/// Number of pieces before the first one with weights.
std::uint32_t without_weights(const std::vector<ModelPiece>& pieces) {
  const auto first = std::find_if(pieces.begin(), pieces.end(),
                                  [](const ModelPiece& piece) { return piece.weight_bytes > 0; });
  return static_cast<std::uint32_t>(first - pieces.begin());
}

/// Splits at random pieces, because a plan without a split is balanced anyway. The first chunk
/// often has no weights, if that is possible.
std::string drawn_split(Rng& rng, const std::vector<ModelPiece>& pieces, std::uint32_t chunks) {
  std::set<std::uint32_t> ends = {static_cast<std::uint32_t>(pieces.size())};
  const std::uint32_t idle = without_weights(pieces);
  if (idle > 0 && !rng.one_in(4)) ends.insert(between(rng, 1, idle));
  while (ends.size() < chunks)
    ends.insert(between(rng, 1, static_cast<std::uint32_t>(pieces.size()) - 1));
  std::string text;
  std::uint32_t first = 0;
  for (const std::uint32_t end : ends) {
    text += concat(text.empty() ? "" : ",", pieces[first].name);
    if (end - first > 1) text += concat('-', pieces[end - 1].name);
    first = end;
  }
  return text;
}

plan::Consistency drawn_consistency(Rng& rng, std::uint32_t room) {
  switch (rng.below(6)) {
    case 0:
    case 1:
      if (room == 0) return plan::Bsp{};
      return plan::Ssp{room};
    case 2:
      return plan::Asp{};
    case 3: {
      const std::uint32_t low = std::max(room, 1u);
      return plan::Adaptive{low, low + between(rng, 1, 6)};
    }
    default:
      return plan::Ssp{room + between(rng, 0, 4)};
  }
}

std::uint32_t version_lag(const pipeline::Spec& spec) {
  const pipeline::Schedule& schedule = **pipeline::find_schedule(spec.schedule);
  int lag = 0;
  for (int stage = 0; stage < spec.stages; ++stage)
    lag = std::max(lag, schedule.version_lag(spec, stage));
  return static_cast<std::uint32_t>(lag);
}

}  // namespace

std::shared_ptr<const Model> draw_pipelines(const Job& base, Rng& rng, Plan& plan) {
  auto model = drawn_model(base, rng, plan);
  const auto pieces = pieces_of(*model, 1, *make_cpu_executor());
  if (pieces.size() < 2) return nullptr;
  const auto spec = drawn_spec(rng, static_cast<std::uint32_t>(pieces.size()));
  const auto stages = static_cast<std::uint32_t>(spec.stages);
  plan.workers = stages * between(rng, 1, kMostPipelines);
  plan.micro_batches = static_cast<std::uint32_t>(spec.micro_batches);
  plan.batch = between(rng, plan.micro_batches, 2 * plan.micro_batches + 4);
  plan.lease_size = rng.one_in(2) ? 0 : plan.batch * between(rng, 1, 6);
  plan.prefetch = false;
  plan.consistency = drawn_consistency(rng, version_lag(spec));
  plan.pipeline = {.stages = stages,
                   .schedule = spec.schedule,
                   .chunks = static_cast<std::uint32_t>(spec.chunks)};
  for (std::uint32_t stage = 0; stage < stages; ++stage)
    if (rng.one_in(4)) plan.pipeline.recompute.push_back(stage);
  if (rng.one_in(without_weights(pieces) > 0 ? 2 : 4))
    plan.pipeline.split = drawn_split(rng, pieces, stages * plan.pipeline.chunks);
  return model;
}

}  // namespace leeway::sim
