#include "sim/search/draw_training.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/text.hpp"
#include "plan/groups.hpp"
#include "plan/local_steps.hpp"
#include "plan/precision.hpp"
#include "policies/codec/codec.hpp"
#include "policies/consistency/consistency.hpp"
#include "policies/delay/delay_policy.hpp"
#include "policies/optimizer/shard_optimizer.hpp"
#include "policies/pipeline/schedule.hpp"
#include "sim/search/dice.hpp"

namespace leeway::sim {

namespace {

// Separate streams, so that one kind of draws does not change the others.
constexpr std::uint64_t kNormStream = 0x6e6f726d;
constexpr std::uint64_t kCodecStream = 0x636f6463;
constexpr std::uint64_t kPrecisionStream = 0x70726563;
constexpr std::uint64_t kOptimizerStream = 0x6f707469;
constexpr std::uint64_t kStateStream = 0x73746174;
constexpr std::uint64_t kDelayStream = 0x64656c61;
constexpr std::uint64_t kLocalStream = 0x6c6f6361;
constexpr std::uint64_t kPredictionStream = 0x70726564;
constexpr std::uint64_t kSplitStream = 0x73706c69;

/// Instead of gradient descent, sometimes a method with a state.
void optimizer(Plan& plan) {
  Rng rng = Rng::stream(plan.seed, kOptimizerStream);
  if (!std::holds_alternative<plan::Sgd>(plan.optimizer.kind) || !rng.one_in(4)) return;
  // With these factors, a gradient moves the weights ten times as far in the long run.
  plan.optimizer.learning_rate /= 10;
  if (rng.one_in(3))
    plan.optimizer.kind = plan::Nesterov{0.9};
  else
    plan.optimizer.kind = plan::Momentum{0.9};
}

void limit_norm(Plan& plan) {
  Rng rng = Rng::stream(plan.seed, kNormStream);
  if (plan.optimizer.clip_norm == 0 && rng.one_in(5))
    plan.optimizer.clip_norm = sim::uniform(rng, 0.01, 1);
}

void codecs(Plan& plan) {
  Rng rng = Rng::stream(plan.seed, kCodecStream);
  const bool clips = plan.optimizer.clip_value > 0;  // which drops a part of a push
  if (clips) plan.compress.push = plan::NoCodec{};
  if (plan.pipeline.stages == 1)
    plan.compress.activations = plan.compress.activation_gradients = plan::NoCodec{};
  if (plan.compress != plan::Compression{} || !rng.one_in(4)) return;
  const plan::Codec push[] = {plan::NoCodec{},    plan::Bf16{},      plan::Fp16{},
                              plan::Int8{},       plan::Int4{},      plan::TwoBit{},
                              plan::OneBit{},     plan::TopK{0.1},   plan::TopK{0.05, 1},
                              plan::RandomK{0.1}, plan::TwoBit{0.05}};
  // fp16 ends at 65,504, which the weights of drawn models exceed.
  const plan::Codec pull[] = {plan::NoCodec{}, plan::Bf16{}, plan::Int8{}};
  if (!clips) plan.compress.push = push[rng.below(std::size(push))];
  // Few bits a value take smaller steps.
  if (id_of(plan.compress.push) > CodecId::int4) plan.optimizer.learning_rate /= 10;
  plan.compress.pull = pull[rng.below(std::size(pull))];
  if (plan.pipeline.stages == 1) return;
  plan.compress.activations = pull[rng.below(std::size(pull))];
  plan.compress.activation_gradients = pull[rng.below(std::size(pull))];
}

/// bf16, but fp32 for the first layer with products.
std::string unequal_precisions(const Plan& plan) {
  const auto first = std::ranges::find_if(plan.model, has_products);
  return concat("bf16,", first - plan.model.begin(), "=fp32");
}

/// Some losses have a factor that overflows.
void precisions(Plan& plan) {
  Rng rng = Rng::stream(plan.seed, kPrecisionStream);
  const bool has_fp16 = plan.precision == "fp16";
  if (rng.one_in(4)) plan.precision = rng.one_in(2) ? "bf16" : unequal_precisions(plan);
  const bool may_skip = plan.pipeline.stages == 1 && !has_local_steps(plan) &&
                        !make_consistency(plan.consistency)->round_size().drops();
  if (has_fp16 && !may_skip) plan.precision = "fp32";
  if (!may_skip || (!has_fp16 && !rng.one_in(6))) return;
  plan.precision = "fp16";
  plan.loss_scale = std::exp2(static_cast<double>(10 + rng.below(15)));
}

void optimizer_state(Plan& plan) {
  Rng rng = Rng::stream(plan.seed, kStateStream);
  const bool keeps_sums = std::holds_alternative<plan::AdaGrad>(plan.optimizer.kind);
  plan.optimizer.eight_bit_state |= rng.one_in(6) && !keeps_sums;
}

/// Keeps the plan's own local steps where the drawn settings allow them, and sometimes draws some.
void local_steps(Plan& plan) {
  Rng rng = Rng::stream(plan.seed, kLocalStream);
  if (!has_local_steps(plan) && rng.one_in(5)) {
    const plan::OuterOptimizer outer[] = {{},
                                          {1, plan::Momentum{0.5}},
                                          {0.7, plan::Nesterov{0.9}},
                                          {0.01, plan::Adam{}},
                                          {0.5, plan::DelayedNesterov{0.5, 2}}};
    plan.local_steps = {1 + static_cast<std::uint32_t>(rng.below(4)),
                        outer[rng.below(std::size(outer))]};
    if (make_consistency(plan.consistency)->by_rounds() && rng.one_in(3))
      plan.local_steps.merge =
          rng.one_in(3) ? plan::Merge::by_samples : plan::Merge::radial_directional;
  }
  if (!check_local_steps(plan) || workers_per_group(plan) > 1 || plan.precision == "fp16")
    plan.local_steps = {};
  // The residuals of deltas grow to many steps when a push has few of their values.
  if (plan.local_steps.count > 1 && is_sparse(plan.compress.push))
    plan.local_steps.outer.learning_rate /= 10;
  if (plan.lease_size > 0)
    plan.lease_size =
        std::max(plan.lease_size, static_cast<std::uint32_t>(iteration_samples(plan)));
}

/// Sometimes workers get samples of their own, and some rounds only some workers.
void split_data(Plan& plan) {
  Rng rng = Rng::stream(plan.seed, kSplitStream);
  if (plan.split_data == plan::SplitData{} && rng.one_in(5)) plan.split_data = plan::IidSplit{};
  // Rounds of a few workers diverge if these make different numbers of local steps.
  const bool differ = has_local_steps(plan) && plan.balance == plan::Balance::by_speed;
  if (!std::holds_alternative<plan::Bsp>(plan.consistency) || differ)
    plan.participation = 1;
  else if (rng.one_in(4))
    plan.participation = uniform(rng, 0.1, 1);
}

/// Keeps the plan's own delay policy where the drawn settings allow it, and sometimes draws one.
void delay_policy(Plan& plan) {
  Rng rng = Rng::stream(plan.seed, kDelayStream);
  const auto with = [&plan](const plan::DelayPolicy& policy, bool whole_steps) {
    plan.delay_policy = policy;
    plan.optimizer.whole_steps = whole_steps;
    return static_cast<bool>(check_delay_policy(plan));
  };
  const plan::DelayPolicy own = plan.delay_policy;
  const bool draws = own == plan::DelayPolicy{} && rng.one_in(3);
  if (!draws) {
    if (!with(own, plan.optimizer.whole_steps)) with(plan::PlainPush{}, false);
    return;
  }
  // Larger corrections diverge when a worker has been frozen.
  const plan::DelayPolicy policies[] = {plan::LagScaled{},
                                        plan::DelayAdaptive{},
                                        plan::GapAware{},
                                        plan::DelayCompensated{},
                                        plan::DelayCompensated{0.5, true},
                                        plan::OrderedMomentum{},
                                        plan::FedAsync{},
                                        plan::FedAsync{.hinge = 10, .within = 1},
                                        plan::DelayThreshold{2},
                                        plan::FedBuff{3}};
  const bool whole_steps = rng.one_in(4);
  plan::DelayPolicy policy = policies[rng.below(std::size(policies))];
  // The models of pipelines are drawn, too. Where their gradients are large, the squares diverge.
  if (plan.pipeline.stages > 1 && std::holds_alternative<plan::DelayCompensated>(policy))
    policy = plan::LagScaled{};
  if (!with(policy, whole_steps) && !with(plan::LagScaled{}, whole_steps))
    with(plan::PlainPush{}, false);  // rounds, sum, assign and updaters
  // Whole steps are larger, and must not diverge.
  if (plan.optimizer.whole_steps) plan.optimizer.learning_rate /= plan.workers;
}

/// Where the weights of stages are old, and the shards know a direction.
void prediction(Plan& plan) {
  const auto schedule = pipeline::find_schedule(plan.pipeline.schedule);
  const bool is_old = plan.pipeline.stages > 1 && schedule && (*schedule)->asynchronous();
  if (!is_old || plan.delay_policy != plan::DelayPolicy{} ||
      !make_optimizer(shard_optimizer(plan))->look_ahead({}, 1))
    return;
  plan.pipeline.predict_weights = Rng::stream(plan.seed, kPredictionStream).one_in(2);
}

}  // namespace

void draw_training(Plan& plan) {
  optimizer(plan);
  limit_norm(plan);
  codecs(plan);
  precisions(plan);
  optimizer_state(plan);
  local_steps(plan);
  delay_policy(plan);
  prediction(plan);
  split_data(plan);
}

}  // namespace leeway::sim
