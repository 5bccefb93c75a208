#include "policies/delay/delay_policy.hpp"

#include <rapidcheck/catch.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "plan/settings.hpp"
#include "policies/delay/delay_aware.hpp"
#include "policies/optimizer/shard_optimizer.hpp"
#include "policies/optimizer/weighted.hpp"

using namespace leeway;

namespace {

constexpr double kFullRate = 0.1;

constexpr std::uint32_t kWorkers = 4;

Plan delayed_plan(plan::DelayPolicy policy, plan::OptimizerKind kind) {
  Plan plan;
  plan.workers = kWorkers;
  plan.consistency = plan::Asp{};
  plan.optimizer = {.learning_rate = kFullRate, .kind = kind};
  plan.delay_policy = policy;
  return plan;
}

/// Some weights under an optimizer and a delay policy, pushed to as a shard would.
class Weights {
 public:
  Weights(const Plan& plan, std::size_t count) : w_(count, 0.5f) {
    auto optimizer = make_optimizer(shard_optimizer(plan));
    if (auto policy = make_delay_policy(plan))
      optimizer_ = std::make_unique<DelayAware>(std::move(optimizer), std::move(policy));
    else
      optimizer_ = std::move(optimizer);
    for (int slot = 0; slot < optimizer_->slots(); ++slot)
      state_.emplace_back(count, optimizer_->initial_state(slot));
  }

  /// `pulled`: the weights that g was computed on, `lag` rounds ago.
  void push(const std::vector<float>& g, const std::vector<float>& pulled, double lag,
            double weight = 1, kernels::Clipping clipping = {}) {
    progress_ += weight;
    kernels::UpdateBuffers buffers{.count = static_cast<std::int64_t>(w_.size()),
                                   .w_out = w_.data(),
                                   .w = w_.data(),
                                   .g = g.data(),
                                   .pulled = pulled.data(),
                                   .clipping = clipping};
    for (std::size_t slot = 0; slot < state_.size(); ++slot)
      buffers.state[slot] = buffers.state_out[slot] = state_[slot].data();
    optimizer_->update(*on_, buffers,
                       {.weight = weight,
                        .learning_rate = kFullRate,
                        .progress = progress_,
                        .lag = lag,
                        .largest_rate = kFullRate});
  }
  const std::vector<float>& values() const { return w_; }
  const std::vector<float>& state(std::size_t slot) const { return state_[slot]; }

 private:
  std::unique_ptr<Executor> on_ = make_cpu_executor();
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<float> w_;
  std::vector<std::vector<float>> state_;
  double progress_ = 0;
};

const std::vector<plan::DelayPolicy> kPolicies = {plan::LagScaled{1},
                                                  plan::LagScaled{0.5},
                                                  plan::LagScaled{1, 8},
                                                  plan::DelayAdaptive{0.05},
                                                  plan::GapAware{},
                                                  plan::DelayCompensated{0.5},
                                                  plan::DelayCompensated{2, true, 0.9},
                                                  plan::OrderedMomentum{},
                                                  plan::DelayThreshold{}};
const std::vector<plan::OptimizerKind> kKinds = {
    plan::Sgd{},   plan::Momentum{}, plan::Nesterov{}, plan::Adam{},    plan::Adam{.amsgrad = true},
    plan::AdamW{}, plan::NAdam{},    plan::Lion{},     plan::AdaGrad{}, plan::DelayedNesterov{}};

bool is_allowed(const plan::DelayPolicy& policy, const plan::OptimizerKind& kind) {
  return bool(check_delay_policy(delayed_plan(policy, kind)));
}

std::vector<float> drawn_floats(std::size_t count) {
  const auto drawn = *rc::gen::container<std::vector<int>>(count, rc::gen::inRange(-1000, 1000));
  std::vector<float> floats;
  for (const int one : drawn) floats.push_back(static_cast<float>(one) / 256 + 0.001f);
  return floats;
}

/// One weight in double, by the formulas of the papers.
struct Reference {
  double w = 0.5, m = 0, mean = 0;
  int t = 0;

  void push(const plan::DelayPolicy& policy, double momentum, double g, double pulled, double lag) {
    ++t;
    const double rate = kFullRate;
    // The factor of a step is one of the gradient, so that the velocity of others is untouched.
    if (const auto* scaled = std::get_if<plan::LagScaled>(&policy))
      g /= std::pow(
          std::max(lag, 1.0),
          scaled->power * (scaled->rounds > 0 ? std::max(0.0, 1 - (t - 1) / scaled->rounds) : 1));
    if (const auto* adaptive = std::get_if<plan::DelayAdaptive>(&policy))
      g *= lag > 0 ? std::min(1.0, adaptive->most / lag / rate) : 1;
    if (const auto* gap = std::get_if<plan::GapAware>(&policy)) {
      const double v = momentum > 0 ? m : g;
      mean = gap->decay * mean + (1 - gap->decay) * v * v;
      const double usual = kFullRate * (std::sqrt(mean / (1 - std::pow(gap->decay, t))) + 1e-8);
      g /= std::abs(w - pulled) / usual + 1;
    }
    if (const auto* compensated = std::get_if<plan::DelayCompensated>(&policy)) {
      double lambda = compensated->lambda;
      if (compensated->adaptive) {
        mean = compensated->decay * mean + (1 - compensated->decay) * g * g;
        lambda /= std::sqrt(mean + 1e-7);
      }
      g += lambda * g * g * (w - pulled);
    }
    if (std::holds_alternative<plan::OrderedMomentum>(policy)) {
      m *= momentum;
      w -= rate * m + rate * g * (1 - std::pow(momentum, lag + 1)) / (1 - momentum);
      m += std::pow(momentum, lag) * g;
      return;
    }
    m = momentum * m + g;
    w -= rate * m;
  }
};

}  // namespace

TEST_CASE("without a lag a policy changes no bit of its optimizer", "[delay]") {
  rc::prop("lag 0", [] {
    const auto policy = *rc::gen::elementOf(kPolicies);
    const auto kind = *rc::gen::elementOf(kKinds);
    RC_PRE(is_allowed(policy, kind));
    const auto count = *rc::gen::inRange<std::size_t>(1, 20);
    const double weight = *rc::gen::element(1.0, 0.25);
    Weights delayed(delayed_plan(policy, kind), count),
        plain(delayed_plan(plan::PlainPush{}, kind), count);
    for (int push = 0; push < 6; ++push) {
      const auto g = drawn_floats(count);
      delayed.push(g, delayed.values(), 0, weight);
      plain.push(g, plain.values(), 0, weight);
      RC_ASSERT(
          std::memcmp(delayed.values().data(), plain.values().data(), count * sizeof(float)) == 0);
    }
  });
}

TEST_CASE("each policy follows the formula of its source", "[delay]") {
  rc::prop("formulas", [] {
    const auto policy = *rc::gen::elementOf(kPolicies);
    const auto kind = *rc::gen::element<plan::OptimizerKind>(plan::Sgd{}, plan::Momentum{});
    RC_PRE(is_allowed(policy, kind));
    const auto* momentum = std::get_if<plan::Momentum>(&kind);
    // More than the floats that are corrected at once.
    const std::size_t count = *rc::gen::element<std::size_t>(1, 7, 5000);
    Weights weights(delayed_plan(policy, kind), count);
    std::vector<Reference> reference(3);
    const std::size_t places[] = {0, count / 2, count - 1};
    for (int push = 0; push < 8; ++push) {
      const double lag = *rc::gen::element(0.0, 0.75, 1.0, 3.5, 12.0);
      std::vector<float> g(count), pulled(count);
      const float slope = static_cast<float>(*rc::gen::inRange(-300, 300)) / 256 + 0.01f;
      const float apart = lag == 0 ? 0.0f : static_cast<float>(*rc::gen::inRange(-50, 50)) / 256;
      for (std::size_t i = 0; i < count; ++i) {
        g[i] = slope * (1 + static_cast<float>(i % 5));
        pulled[i] = weights.values()[i] - apart * (1 + static_cast<float>(i % 3));
      }
      for (std::size_t i = 0; i < 3; ++i) {
        const std::size_t at = places[i];
        // The reference continues from the present floats, so that errors do not add up.
        reference[i].w = static_cast<double>(weights.values()[at]);
        reference[i].push(policy, momentum ? momentum->factor : 0, static_cast<double>(g[at]),
                          static_cast<double>(pulled[at]), lag);
      }
      weights.push(g, pulled, lag);
      for (std::size_t i = 0; i < 3; ++i)
        RC_ASSERT(std::abs(static_cast<double>(weights.values()[places[i]]) - reference[i].w) <
                  2e-4 * (1 + std::abs(reference[i].w)));
    }
  });
}

TEST_CASE("fed_async mixes the model of a worker into the shard's", "[delay]") {
  Plan plan = delayed_plan(plan::FedAsync{0.6, 0.5}, plan::Momentum{});
  plan.local_steps.count = 4;
  REQUIRE(check_delay_policy(plan));
  Plan hinged = plan;
  hinged.delay_policy = plan::FedAsync{.mixing = 0.6, .hinge = 10, .within = 2};
  const auto check = [](const Plan& mixed, double weight, double lag, double factor) {
    Weights weights(mixed, 2);
    const std::vector<float> pulled{0.25f, -1}, change{0.125f, 0.5f};
    weights.push(change, pulled, lag, weight);
    const double share = kFullRate * weight * 0.6 * factor;
    for (std::size_t i = 0; i < 2; ++i) {
      const double model = static_cast<double>(pulled[i] - change[i]);
      CHECK(std::abs(static_cast<double>(weights.values()[i]) -
                     ((1 - share) * 0.5 + share * model)) < 1e-6);
    }
  };
  for (const double weight : {1.0, 0.25})
    for (const double lag : {0.0, 1.0, 2.0, 3.5}) {
      check(plan, weight, lag, 1 / std::sqrt(1 + lag));
      check(hinged, weight, lag, lag <= 2 ? 1 : 1 / (10 * (lag - 2) + 1));
    }
  plan.local_steps.count = 0;
  CHECK(check_delay_policy(plan).error().text.find("give --local-steps") != std::string::npos);
  plan.local_steps = {4, {.kind = plan::Nesterov{}}};
  CHECK(check_delay_policy(plan).error().text.find("give average") != std::string::npos);
}

TEST_CASE("fed_buff updates once in K pushes, by their sum", "[delay]") {
  rc::prop("fed_buff", [] {
    const auto count = *rc::gen::inRange<std::uint32_t>(1, 9);
    const double power = *rc::gen::element(0.0, 0.5, 2.0);
    const bool whole = *rc::gen::arbitrary<bool>();
    const double beta = *rc::gen::element(0.0, 0.9);
    Plan plan = delayed_plan(
        plan::FedBuff{count, power},
        beta > 0 ? plan::OptimizerKind(plan::Momentum{beta}) : plan::OptimizerKind(plan::Sgd{}));
    plan.optimizer.whole_steps = whole;
    plan.optimizer.weight_decay = *rc::gen::element(0.0, 0.01);
    RC_ASSERT(bool(check_delay_policy(plan)));
    const double weight = whole ? 1 : 1.0 / kWorkers;
    const double step = whole ? 1 : count * weight;  // weight of an update
    Weights weights(plan, 1);
    double w = 0.5, m = 0, buffer = 0;
    for (std::uint32_t push = 0; push < 30; ++push) {
      const auto pushes_since_pull = *rc::gen::inRange<std::uint32_t>(0, push + 1);
      const std::uint32_t updates = push / count - (push - pushes_since_pull) / count;
      const float g = drawn_floats(1)[0];
      weights.push({g}, {0}, pushes_since_pull * weight, weight);
      buffer += std::pow(1 + updates, -power) *
                (static_cast<double>(g) + plan.optimizer.weight_decay * w);
      if ((push + 1) % count == 0) {
        const double gain = beta > 0 ? (1 - std::pow(beta, step)) / (1 - beta) : 1;
        m = std::pow(beta, step) * m + gain * buffer / count;
        w -= kFullRate * step * m;
        buffer = 0;
      }
      RC_ASSERT(std::abs(static_cast<double>(weights.values()[0]) - w) < 1e-4 * (1 + std::abs(w)));
    }
  });
}

TEST_CASE("fed_buff counts the pushes of pipelines", "[delay]") {
  Plan plan = delayed_plan(plan::FedBuff{3, 0.5}, plan::Sgd{});
  plan.workers = 8;
  plan.pipeline.stages = 2;
  Weights weights(plan, 1);
  for (int push = 1; push <= 3; ++push) {
    weights.push({1}, {0}, 0, 0.25);
    CHECK((weights.values()[0] == 0.5f) == (push < 3));
  }
}

TEST_CASE("a full buffer of pushes without a lag is a round of bsp", "[delay]") {
  for (const plan::OptimizerKind& kind :
       {plan::OptimizerKind(plan::Sgd{}), plan::OptimizerKind(plan::Momentum{})}) {
    Weights buffered(delayed_plan(plan::FedBuff{kWorkers, 0.5}, kind), 1),
        rounds(delayed_plan(plan::PlainPush{}, kind), 1);
    for (int round = 0; round < 5; ++round) {
      for (std::uint32_t push = 0; push < kWorkers; ++push)
        buffered.push({static_cast<float>(round + push)}, {0}, push * 0.25, 0.25);
      rounds.push({static_cast<float>(round) + 1.5f}, {0}, 0);
      CHECK(std::abs(buffered.values()[0] - rounds.values()[0]) < 1e-5f);
    }
  }
}

TEST_CASE("a larger lag never makes a push count more", "[delay]") {
  for (const plan::DelayPolicy& policy :
       {plan::DelayPolicy(plan::LagScaled{1}), plan::DelayPolicy(plan::DelayAdaptive{0.05}),
        plan::DelayPolicy(plan::GapAware{})}) {
    float before = INFINITY;
    for (const double lag : {0.0, 0.5, 1.0, 2.0, 4.0, 16.0, 1000.0}) {
      Weights weights(delayed_plan(policy, plan::Sgd{}), 1);
      weights.push({1}, {0.5f - static_cast<float>(lag) * 0.01f}, lag);
      const float moved = 0.5f - weights.values()[0];
      CHECK(moved > 0);
      CHECK(moved <= before);
      before = moved;
    }
  }
}

TEST_CASE("a power that falls to 0 leaves all pushes whole after its rounds", "[delay]") {
  const auto moved = [](const plan::DelayPolicy& policy) {
    Weights weights(delayed_plan(policy, plan::Sgd{}), 1);
    std::vector<float> steps;
    for (int round = 0; round < 6; ++round) {
      const float before = weights.values()[0];
      weights.push({1}, {0}, 3);
      steps.push_back(before - weights.values()[0]);
    }
    return steps;
  };
  const auto whole = moved(plan::PlainPush{}), falling = moved(plan::LagScaled{1, 4});
  CHECK(falling[0] == Approx(whole[0] / 3).epsilon(1e-4));
  for (std::size_t round = 1; round < falling.size(); ++round)
    CHECK(falling[round] >= falling[round - 1] * 0.999f);
  CHECK(falling[1] == Approx(whole[1] / std::pow(3.0, 0.75)).epsilon(1e-4));
  CHECK(falling[4] == Approx(whole[4]).epsilon(1e-4));
}

TEST_CASE("under ordered momentum the velocity keeps less of a push with a larger lag", "[delay]") {
  float kept = INFINITY, moved = 0;
  for (const double lag : {0.0, 0.5, 1.0, 2.0, 4.0, 16.0}) {
    Weights weights(delayed_plan(plan::OrderedMomentum{}, plan::Momentum{}), 1);
    weights.push({1}, {0.5f}, lag);
    CHECK(weights.state(0)[0] < kept);
    CHECK(0.5f - weights.values()[0] > moved);  // it has been carried on for longer
    kept = weights.state(0)[0];
    moved = 0.5f - weights.values()[0];
  }
}

TEST_CASE("ordered momentum ends where momentum in the order of the pulls ends", "[delay]") {
  // Pushes 0, 1, 2 of weight 1; push 0 comes last, with lag 2.
  Weights late(delayed_plan(plan::OrderedMomentum{}, plan::Momentum{}), 1),
      ordered(delayed_plan(plan::PlainPush{}, plan::Momentum{}), 1);
  const std::vector<float> any{0};
  late.push({2}, any, 0);
  late.push({3}, any, 0);
  late.push({1}, any, 2);
  ordered.push({1}, any, 0);
  ordered.push({2}, any, 0);
  ordered.push({3}, any, 0);
  // Without gradients the velocity of both fades away.
  for (Weights* one : {&late, &ordered})
    for (int quiet = 0; quiet < 200; ++quiet) one->push({0}, any, 0);
  CHECK(std::abs(late.values()[0] - ordered.values()[0]) < 1e-5f);
}

TEST_CASE("a gradient is clipped before it is corrected, and only then", "[delay]") {
  const kernels::Clipping clipping{.scale = 0.5f, .limit = 1.5f};
  for (const auto& policy : kPolicies)
    for (const auto& kind :
         {plan::OptimizerKind(plan::Sgd{}), plan::OptimizerKind(plan::Momentum{})}) {
      if (!is_allowed(policy, kind)) continue;
      Weights clipped(delayed_plan(policy, kind), 2), before(delayed_plan(policy, kind), 2);
      for (int push = 0; push < 3; ++push) {
        clipped.push({10, -2}, {0.4f, 0.7f}, 2, 1, clipping);
        before.push({1.5f, -1}, {0.4f, 0.7f}, 2);
      }
      for (std::size_t i = 0; i < 2; ++i)
        CHECK(std::abs(clipped.values()[i] - before.values()[i]) < 1e-6f);
    }
}

TEST_CASE("a push of weight w is w of a corrected step", "[delay]") {
  for (const auto& policy : kPolicies) {
    const auto* compensated = std::get_if<plan::DelayCompensated>(&policy);
    // The first mean of the adaptive factor depends on the weight of the push.
    if (!is_allowed(policy, plan::Sgd{}) || (compensated && compensated->adaptive)) continue;
    Weights whole(delayed_plan(policy, plan::Sgd{}), 1),
        quarter(delayed_plan(policy, plan::Sgd{}), 1);
    whole.push({2}, {0.3f}, 3, 1);
    quarter.push({2}, {0.3f}, 3, 0.25);
    CHECK(std::abs((0.5f - quarter.values()[0]) * 4 - (0.5f - whole.values()[0])) < 1e-5f);
  }
}

TEST_CASE("combinations without sense are refused with the reason", "[delay]") {
  const auto refusal = [](const Plan& plan) {
    const Status status = check_delay_policy(plan);
    return status ? std::string() : status.error().text;
  };
  Plan rounds = delayed_plan(plan::LagScaled{}, plan::Sgd{});
  rounds.consistency = plan::Bsp{};
  CHECK(refusal(rounds).find("no push is computed on older weights") != std::string::npos);
  rounds.consistency = plan::Backup{1};
  CHECK(refusal(rounds).find("no push is computed on older weights") != std::string::npos);
  CHECK(refusal(delayed_plan(plan::LagScaled{}, plan::Sum{})).find("take no steps") !=
        std::string::npos);
  CHECK(refusal(delayed_plan(plan::GapAware{}, plan::Adam{})).find("sgd, momentum and nesterov") !=
        std::string::npos);
  CHECK(refusal(delayed_plan(plan::OrderedMomentum{}, plan::Sgd{})).find("--optimizer momentum") !=
        std::string::npos);
  CHECK(refusal(delayed_plan(plan::OrderedMomentum{}, plan::Momentum{.dampening = 0.5}))
            .find("without dampening") != std::string::npos);
  Plan sparse = delayed_plan(plan::OrderedMomentum{}, plan::Momentum{});
  sparse.compress.push = plan::TopK{0.1};
  CHECK(refusal(sparse).find("workers keep the velocity") != std::string::npos);
  sparse.delay_policy = plan::FedBuff{};
  CHECK(refusal(sparse).find("workers keep the velocity") != std::string::npos);
  Plan packed = delayed_plan(plan::GapAware{}, plan::Sgd{});
  packed.optimizer.eight_bit_state = true;
  CHECK(refusal(packed).find("its own state needs 32 bits") != std::string::npos);
  CHECK(refusal(delayed_plan(plan::FedBuff{}, plan::Adam{})).find("sgd or momentum") !=
        std::string::npos);
  CHECK(refusal(delayed_plan(plan::FedBuff{}, plan::Momentum{.dampening = 0.5}))
            .find("without dampening") != std::string::npos);
  packed.delay_policy = plan::LagScaled{};
  CHECK(refusal(packed).empty());
  Plan limited = delayed_plan(plan::DelayThreshold{1}, plan::Muon{});
  CHECK(refusal(limited).empty());
  limited.prefetch = true;
  CHECK(refusal(limited).empty());
  limited.optimizer.whole_steps = true;
  CHECK(refusal(limited).find("own push makes its prefetched weights as old as 1; give more") !=
        std::string::npos);
  limited.pipeline.stages = 2;
  CHECK(refusal(limited).find("give --stages 1") != std::string::npos);
  Plan whole = delayed_plan(plan::PlainPush{}, plan::Sgd{});
  whole.optimizer.whole_steps = true;
  CHECK(refusal(whole).empty());
  whole.consistency = plan::Bsp{};
  CHECK(refusal(whole).find("whole step already") != std::string::npos);
}
