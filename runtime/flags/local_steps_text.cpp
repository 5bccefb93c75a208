#include "runtime/flags/local_steps_text.hpp"

#include <cmath>
#include <variant>

#include "core/text.hpp"
#include "plan/settings.hpp"
#include "runtime/flags/arguments.hpp"

namespace leeway {
namespace {

constexpr double kMostRounds = 1 << 20;

}  // namespace

Expected<plan::OuterOptimizer> parse_outer_optimizer(const std::string& text) {
  const auto momentum = arguments_of(text, "momentum"), nesterov = arguments_of(text, "nesterov"),
             delayed = arguments_of(text, "delayed_nesterov");
  if (text == "average") return plan::OuterOptimizer{1, plan::AverageChanges{}};
  if (text == "momentum") return plan::OuterOptimizer{0.3, plan::Momentum{}};
  if (momentum.size() == 1) return plan::OuterOptimizer{0.3, plan::Momentum{.factor = momentum[0]}};
  if (text == "nesterov") return plan::OuterOptimizer{0.7, plan::Nesterov{}};
  if (nesterov.size() == 1) return plan::OuterOptimizer{0.7, plan::Nesterov{.factor = nesterov[0]}};
  if (text == "delayed_nesterov") return plan::OuterOptimizer{0.1, plan::DelayedNesterov{}};
  if (delayed.size() == 1)
    return plan::OuterOptimizer{0.1, plan::DelayedNesterov{.factor = delayed[0]}};
  if (delayed.size() == 2 && delayed[1] >= 1 && delayed[1] <= kMostRounds &&
      delayed[1] == std::floor(delayed[1]))
    return plan::OuterOptimizer{
        0.1, plan::DelayedNesterov{delayed[0], static_cast<std::uint32_t>(delayed[1])}};
  if (text == "adam") return plan::OuterOptimizer{0.01, plan::Adam{}};
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
