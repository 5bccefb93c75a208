#include "policies/optimizer/optimizer.hpp"

#include <rapidcheck/catch.h>

#include <cmath>

#include "core/check.hpp"
#include "plan/settings.hpp"

using namespace leeway;

namespace {

constexpr double kRate = 0.1;

/// One weight under an optimizer, pushed to as a shard would.
class Scalar {
 public:
  explicit Scalar(const plan::Optimizer& spec, float start = 1)
      : optimizer_(make_optimizer(spec)), w_(start) {
    for (int slot = 0; slot < optimizer_->slots(); ++slot)
      state_[slot] = optimizer_->initial_state(slot);
  }

  float push(float g, double weight = 1) {
    progress_ += weight;
    kernels::UpdateBuffers buffers{.count = 1, .w_out = &w_, .w = &w_, .g = &g};
    for (int slot = 0; slot < optimizer_->slots(); ++slot)
      buffers.state[slot] = buffers.state_out[slot] = &state_[slot];
    optimizer_->update(*on_, buffers,
                       {.weight = weight, .learning_rate = kRate, .progress = progress_});
    return w_;
  }
  float value() const { return w_; }
  float state(std::size_t slot) const { return state_[slot]; }

 private:
  std::unique_ptr<Executor> on_ = make_cpu_executor();
  std::unique_ptr<Optimizer> optimizer_;
  float w_;
  float state_[3] = {0, 0, 0};
  double progress_ = 0;
};

template <class Kind>
plan::Optimizer spec(Kind kind, double weight_decay = 0) {
  return {.learning_rate = kRate, .weight_decay = weight_decay, .kind = kind};
}

/// All that take steps.
const std::vector<plan::Optimizer> kAll = {
    spec(plan::Sgd{}),   spec(plan::Momentum{}), spec(plan::Nesterov{}),
    spec(plan::Adam{}),  spec(plan::AdamW{}),    spec(plan::AdaGrad{}),
    spec(plan::NAdam{}), spec(plan::Lion{}),     spec(plan::DelayedNesterov{}),
    spec(plan::Muon{})};

/// The settings that change formulas or add state.
const std::vector<plan::Optimizer> kVariants = {
    spec(plan::Momentum{.dampening = 0.4}),
    spec(plan::Adam{.amsgrad = true}),
    spec(plan::AdamW{.amsgrad = true}),
    spec(plan::AdaGrad{.initial = 0.5}),
    spec(plan::NAdam{.beta1 = 0.99, .decoupled = false}),
    spec(plan::DelayedNesterov{.rounds = 3})};

/// The distance that the weight moves in `rounds` rounds of `pushes` equal pushes, under a constant
/// gradient.
double moved(const plan::Optimizer& optimizer, int rounds, int pushes, float g) {
  Scalar scalar(optimizer, 0);
  for (int i = 0; i < rounds * pushes; ++i) scalar.push(g, 1.0 / pushes);
  return -static_cast<double>(scalar.value());
}

/// The textbook formulas of PyTorch's documentation, in double, for pushes of weight 1.
struct Textbook {
  double p = 1, m = 0, v = 0, most = 0, product = 1;
  int t = 0;
  bool unclear = false;  // a sign depends on rounding
  void push(const plan::Optimizer& optimizer, double g) {
    ++t;
    const double lambda = optimizer.weight_decay;
    const auto* nadam = std::get_if<plan::NAdam>(&optimizer.kind);
    if (std::holds_alternative<plan::AdamW>(optimizer.kind) ||
        std::holds_alternative<plan::Lion>(optimizer.kind) ||
        std::holds_alternative<plan::Muon>(optimizer.kind) || (nadam && nadam->decoupled))
      p -= kRate * lambda * p;
    else
      g += lambda * p;
    std::visit([&](const auto& kind) { step(kind, g); }, optimizer.kind);
  }

 private:
  void step(const plan::Sgd&, double g) { p -= kRate * g; }
  void step(const plan::Sum&, double g) { p += g; }
  void step(const plan::Assign&, double g) { p = g; }
  void step(const plan::Updater&, double) {}  // a function of the program
  void step(const plan::Momentum& k, double g) {
    m = t == 1 ? g : k.factor * m + (1 - k.dampening) * g;
    p -= kRate * m;
  }
  void step(const plan::Nesterov& k, double g) {
    m = k.factor * m + g;
    p -= kRate * (g + k.factor * m);
  }
  void step(const plan::DelayedNesterov& k, double g) {
    v += g;
    p -= kRate * g / k.rounds;
    if (t % static_cast<int>(k.rounds) != 0) return;
    m = k.factor * m + v / k.rounds;
    p -= kRate * k.factor * m;
    v = 0;
  }
  void step(const plan::AdaGrad& k, double g) {
    v += g * g + (t == 1 ? k.initial : 0);
    p -= kRate * g / (std::sqrt(v) + k.epsilon);
  }
  void step(const plan::NAdam& k, double g) {
    const auto factor = [&](int at) {
      return k.beta1 * (1 - 0.5 * std::pow(0.96, at * k.momentum_decay));
    };
    product *= factor(t);
    m = k.beta1 * m + (1 - k.beta1) * g;
    v = k.beta2 * v + (1 - k.beta2) * g * g;
    p -= kRate *
         ((1 - factor(t)) / (1 - product) * g + factor(t + 1) / (1 - product * factor(t + 1)) * m) /
         (std::sqrt(v / (1 - std::pow(k.beta2, t))) + k.epsilon);
  }
  void step(const plan::Lion& k, double g) {
    const double sum = k.beta1 * m + (1 - k.beta1) * g;
    unclear |= std::abs(sum) < 1e-5;
    p -= kRate * (sum > 0 ? 1 : -1);
    m = k.beta2 * m + (1 - k.beta2) * g;
  }
  void step(const plan::Adam& k, double g) { adam(k, g); }
  void step(const plan::AdamW& k, double g) { adam(k, g); }
  void step(const plan::Muon& k, double g) {  // of no matrix
    adam(plan::AdamW{.beta1 = k.beta1, .beta2 = k.beta2, .epsilon = k.epsilon}, g);
  }
  template <class Kind>
  void adam(const Kind& k, double g) {
    m = k.beta1 * m + (1 - k.beta1) * g;
    v = k.beta2 * v + (1 - k.beta2) * g * g;
    most = std::max(most, v);
    p -= kRate * (m / (1 - std::pow(k.beta1, t))) /
         (std::sqrt((k.amsgrad ? most : v) / (1 - std::pow(k.beta2, t))) + k.epsilon);
  }
};

}  // namespace

TEST_CASE("under pushes of weight 1 each optimizer follows its textbook formula", "[optimizer]") {
  rc::prop("textbook", [] {
    plan::Optimizer optimizer = *rc::gen::elementOf(*rc::gen::element(kAll, kVariants));
    optimizer.weight_decay = *rc::gen::element(0.0, 0.01, 0.3);
    const auto gradients = *rc::gen::container<std::vector<int>>(rc::gen::inRange(-1000, 1000));
    Scalar scalar(optimizer);
    Textbook textbook;
    for (const int g : gradients) {
      const float gradient = static_cast<float>(g) / 256 + 0.001f;
      scalar.push(gradient);
      textbook.push(optimizer, static_cast<double>(gradient));
    }
    RC_PRE(!textbook.unclear);
    RC_ASSERT(std::abs(static_cast<double>(scalar.value()) - textbook.p) <
              2e-4 * (1 + std::abs(textbook.p)));
  });
}

TEST_CASE("the state of a variant after a round does not depend on the number of pushes",
          "[optimizer]") {
  for (const auto& optimizer : kVariants) {
    Scalar whole(optimizer), parts(optimizer);
    for (int round = 0; round < 4; ++round) {
      whole.push(2);
      for (int push = 0; push < 5; ++push) parts.push(2, 0.2);
    }
    for (int slot = 0; slot < make_optimizer(optimizer)->slots(); ++slot)
      REQUIRE(std::abs(whole.state(std::size_t(slot)) - parts.state(std::size_t(slot))) < 1e-5f);
  }
}

TEST_CASE("a factor of the weight decay scales it, and nothing else", "[optimizer]") {
  const auto on = make_cpu_executor();
  for (const auto& kinds : {kAll, kVariants})
    for (auto kind : kinds) {
      const auto updated = [&](double decay, double factor) {
        kind.weight_decay = decay;
        const auto optimizer = make_optimizer(kind);
        float w = 2, g = 0.5f, state[3] = {0.1f, 0.2f, 0.3f};
        kernels::UpdateBuffers buffers{.count = 1, .w_out = &w, .w = &w, .g = &g};
        for (int slot = 0; slot < optimizer->slots(); ++slot)
          buffers.state[slot] = buffers.state_out[slot] = &state[slot];
        optimizer->update(*on, buffers, {1, kRate, 2, factor});
        return w;
      };
      CHECK(updated(0.3, 0) == updated(0, 1));
      CHECK(updated(0.25, 2) == updated(0.5, 1));
      CHECK(updated(0.3, 1) != updated(0, 1));
    }
}

TEST_CASE("under sgd a push of weight w is w of a step", "[optimizer]") {
  REQUIRE(std::abs(moved(spec(plan::Sgd{}), 1, 1, 2) - kRate * 2) < 1e-6);
  REQUIRE(std::abs(moved(spec(plan::Sgd{}), 1, 8, 2) - kRate * 2) < 1e-6);
}

TEST_CASE("the velocity after a round does not depend on the number of pushes", "[optimizer]") {
  for (const auto& optimizer : {spec(plan::Momentum{}), spec(plan::Nesterov{})}) {
    Scalar whole(optimizer), parts(optimizer);
    for (int round = 0; round < 5; ++round) {
      whole.push(2);
      for (int push = 0; push < 4; ++push) parts.push(2, 0.25);
      REQUIRE(std::abs(whole.state(0) - parts.state(0)) < 1e-5f);
    }
    REQUIRE(std::abs(whole.state(0) - 2 * (1 - std::pow(0.9f, 5.0f)) / 0.1f) < 1e-5f);
  }
}

TEST_CASE("the moments of adam and adamw after a round do not depend on the number of pushes",
          "[optimizer]") {
  for (const auto& optimizer : {spec(plan::Adam{}), spec(plan::AdamW{})}) {
    Scalar whole(optimizer), parts(optimizer);
    whole.push(3);
    for (int push = 0; push < 5; ++push) parts.push(3, 0.2);
    REQUIRE(std::abs(whole.state(0) - parts.state(0)) < 1e-6f);
    REQUIRE(std::abs(whole.state(1) - parts.state(1)) < 1e-6f);
    REQUIRE(std::abs(whole.value() - parts.value()) < 1e-5f);  // each step is lr w g / |g|
  }
}

TEST_CASE("adagrad's sum of squares after a round does not depend on the number of pushes",
          "[optimizer]") {
  Scalar whole(spec(plan::AdaGrad{})), parts(spec(plan::AdaGrad{}));
  whole.push(3);
  for (int push = 0; push < 5; ++push) parts.push(3, 0.2);
  REQUIRE(std::abs(whole.state(0) - parts.state(0)) < 1e-5f);
}

TEST_CASE("in the long run a round of eight pushes moves the weights as far as a single push",
          "[optimizer]") {
  for (const auto& optimizer : kAll) {
    INFO(make_optimizer(optimizer)->name());
    const double whole = moved(optimizer, 400, 1, 0.5f) - moved(optimizer, 300, 1, 0.5f);
    const double divided = moved(optimizer, 400, 8, 0.5f) - moved(optimizer, 300, 8, 0.5f);
    REQUIRE(std::abs(divided / whole - 1) < 5e-3);
  }
}

TEST_CASE("without a gradient, weight decay shrinks a weight by lr w lambda", "[optimizer]") {
  Scalar sgd(spec(plan::Sgd{}, 0.5)), adamw(spec(plan::AdamW{}, 0.5));
  REQUIRE(std::abs(sgd.push(0, 0.25) - (1 - 0.1f * 0.25f * 0.5f)) < 1e-6f);
  REQUIRE(std::abs(adamw.push(0, 0.25) - (1 - 0.1f * 0.25f * 0.5f)) < 1e-6f);
}

TEST_CASE("a push of weight 0 changes nothing", "[optimizer]") {
  for (const auto& optimizer : kAll) {
    Scalar scalar(optimizer);
    REQUIRE(scalar.push(5, 0) == 1);
    const float before = scalar.push(5, 1);
    const float state = scalar.state(0);
    REQUIRE(scalar.push(7, 0) == before);
    if (make_optimizer(optimizer)->slots() == 1) REQUIRE(scalar.state(0) == state);
  }
}

TEST_CASE("an update that lacks one of its arrays is refused", "[optimizer]") {
  const auto on = make_cpu_executor();
  float w = 0, g = 0, m = 0, v = 0;
  const kernels::UpdateBuffers all{
      .count = 1, .w_out = &w, .w = &w, .state_out = {&m, &v}, .state = {&m, &v}, .g = &g};
  const auto adam = make_optimizer(spec(plan::Adam{}));
  const UpdateSize size{.weight = 1, .learning_rate = kRate, .progress = 1};
  REQUIRE_NOTHROW(adam->update(*on, all, size));
  for (const int slot : {0, 1}) {
    auto without_state = all, without_new_state = all;
    without_state.state[slot] = nullptr;
    without_new_state.state_out[slot] = nullptr;
    REQUIRE_THROWS_AS(adam->update(*on, without_state, size), CheckFailed);
    REQUIRE_THROWS_AS(adam->update(*on, without_new_state, size), CheckFailed);
  }
  auto without_gradient = all;
  without_gradient.g = nullptr;
  REQUIRE_THROWS_AS(adam->update(*on, without_gradient, size), CheckFailed);
  REQUIRE_NOTHROW(adam->update(*on, {}, size));  // no floats, no arrays
}

TEST_CASE("an update out of place gives the results of an update in place", "[optimizer]") {
  const auto on = make_cpu_executor();
  for (const auto& kind : kAll) {
    const auto optimizer = make_optimizer(kind);
    CAPTURE(optimizer->name());
    const float w[2] = {1, -2}, g[2] = {0.5f, 3}, zeros[2] = {0, 0};
    float w_out[2], first[2], second[2];
    optimizer->update(*on,
                      {.count = 2,
                       .w_out = w_out,
                       .w = w,
                       .state_out = {first, second},
                       .state = {zeros, zeros},
                       .g = g},
                      {.weight = 1, .learning_rate = kRate, .progress = 1});
    for (int i = 0; i < 2; ++i) {
      Scalar scalar(kind, w[i]);
      CHECK(std::abs(w_out[i] - scalar.push(g[i])) < 1e-6f);
      if (optimizer->slots() > 0) CHECK(std::abs(first[i] - scalar.state(0)) < 1e-6f);
      if (optimizer->slots() > 1) CHECK(std::abs(second[i] - scalar.state(1)) < 1e-6f);
    }
  }
}

TEST_CASE("each optimizer has its name in the schema and its number of streams", "[optimizer]") {
  std::vector<plan::Optimizer> all = kAll;
  const auto later = all.begin() + 6;  // arms that the schema got after these
  all.insert(later, {spec(plan::Sum{}), spec(plan::Assign{}), spec(plan::Updater{})});
  const auto names = plan::choices("optimizer");
  REQUIRE(names.size() == all.size());
  for (std::size_t i = 0; i < all.size(); ++i) REQUIRE(make_optimizer(all[i])->name() == names[i]);
  REQUIRE(make_optimizer(spec(plan::Sgd{}))->streams() == 3);
  REQUIRE(make_optimizer(spec(plan::Adam{}))->streams() == 7);
}
