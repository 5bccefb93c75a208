#include "runtime/flags/local_steps_text.hpp"

#include <cmath>
#include <optional>
#include <variant>

#include "core/text.hpp"
#include "plan/settings.hpp"
#include "runtime/flags/arguments.hpp"

namespace leeway {
namespace {

constexpr double kMostRounds = 1 << 20;

std::optional<plan::OuterOptimizerKind> kind_of(const std::string& text) {
  using Outer = plan::OuterOptimizerKind;
  if (text == "average") return Outer(plan::AverageChanges{});
  if (text == "momentum") return Outer(plan::Momentum{});
  if (text == "nesterov") return Outer(plan::Nesterov{});
  if (text == "delayed_nesterov") return Outer(plan::DelayedNesterov{});
  if (text == "adam") return Outer(plan::Adam{});
  if (const auto one = arguments_of(text, "momentum"); one.size() == 1)
    return Outer(plan::Momentum{.factor = one[0]});
  if (const auto one = arguments_of(text, "nesterov"); one.size() == 1)
    return Outer(plan::Nesterov{.factor = one[0]});
  const auto some = arguments_of(text, "delayed_nesterov");
  if (some.size() == 1) return Outer(plan::DelayedNesterov{.factor = some[0]});
  if (some.size() == 2 && some[1] >= 1 && some[1] <= kMostRounds && some[1] == std::floor(some[1]))
    return Outer(plan::DelayedNesterov{some[0], static_cast<std::uint32_t>(some[1])});
  return std::nullopt;
}

struct UsualRate {
  double operator()(const plan::AverageChanges&) const { return 1; }
  double operator()(const plan::Momentum&) const { return 0.3; }
  double operator()(const plan::Nesterov&) const { return 0.7; }
  double operator()(const plan::DelayedNesterov&) const { return 0.1; }
  double operator()(const plan::Adam&) const { return 0.01; }
};

}  // namespace

Expected<plan::OuterOptimizer> parse_outer_optimizer(const std::string& text) {
  if (const auto kind = kind_of(text))
    return plan::OuterOptimizer{std::visit(UsualRate{}, *kind), *kind};
  return Error{concat("--outer-optimizer: \"", text,
                      "\" is not known; give average, momentum(0.9), nesterov(0.9), "
                      "delayed_nesterov(0.9,1) or adam")};
}

std::string text_of(const plan::OuterOptimizer& outer) {
  struct Text {
    std::string operator()(const plan::AverageChanges&) const { return ""; }
    std::string operator()(const plan::Momentum& spec) const {
      return concat('(', spec.factor, ')');
    }
    std::string operator()(const plan::Nesterov& spec) const {
      return concat('(', spec.factor, ')');
    }
    std::string operator()(const plan::DelayedNesterov& spec) const {
      return concat('(', spec.factor, ',', spec.rounds, ')');
    }
    std::string operator()(const plan::Adam&) const { return ""; }
  };
  return plan::choices("local_steps.outer")[outer.kind.index()] + std::visit(Text{}, outer.kind);
}

}  // namespace leeway
