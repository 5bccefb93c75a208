#include "runtime/flags/delay_text.hpp"

#include <optional>
#include <string_view>
#include <variant>

#include "core/text.hpp"
#include "plan/settings.hpp"
#include "runtime/flags/arguments.hpp"
#include "runtime/words.hpp"

namespace leeway {
namespace {

std::optional<plan::DelayPolicy> without_arguments(std::string_view name) {
  if (name == "plain" || name == "none") return plan::DelayPolicy(plan::PlainPush{});
  if (name == "lag_scaled") return lag_scaled();
  if (name == "delay_adaptive") return plan::DelayPolicy(plan::DelayAdaptive{});
  if (name == "gap_aware") return gap_aware();
  if (name == "delay_compensated") return delay_compensated();
  if (name == "ordered_momentum") return ordered_momentum();
  if (name == "fed_async") return fed_async();
  if (name == "delay_threshold") return delay_threshold();
  if (name == "fed_buff") return fed_buff();
  return std::nullopt;
}

std::optional<plan::DelayPolicy> with_arguments(std::string_view text) {
  const auto scaled = arguments_of(text, "lag_scaled");
  if (scaled.size() == 1) return lag_scaled(scaled[0]);
  if (scaled.size() == 2) return lag_scaled(scaled[0], scaled[1]);
  if (const auto one = arguments_of(text, "delay_adaptive"); one.size() == 1)
    return delay_adaptive(one[0]);
  if (const auto one = arguments_of(text, "gap_aware"); one.size() == 1) return gap_aware(one[0]);
  if (const auto one = arguments_of(text, "delay_threshold"); one.size() == 1)
    return delay_threshold(one[0]);
  const auto buffered = arguments_of(text, "fed_buff");
  const auto count = buffered.empty() ? std::nullopt : as_count(buffered[0]);
  if (count && buffered.size() == 1) return fed_buff(*count);
  if (count && buffered.size() == 2) return fed_buff(*count, buffered[1]);
  const auto mixed = arguments_of(text, "fed_async");
  if (mixed.size() == 1) return fed_async(mixed[0]);
  if (mixed.size() == 2) return fed_async(mixed[0], mixed[1]);
  if (mixed.size() == 3 && mixed[1] > 0) return hinged_fed_async(mixed[0], mixed[1], mixed[2]);
  const auto some = arguments_of(text, "delay_compensated");
  if (some.size() == 1) return delay_compensated(some[0]);
  if (some.size() == 2) return adaptive_delay_compensated(some[0], some[1]);
  return std::nullopt;
}

}  // namespace

Expected<plan::DelayPolicy> parse_delay_policy(const std::string& text) {
  auto policy = without_arguments(text);
  if (!policy) policy = with_arguments(text);
  if (policy) return *policy;
  return Error{concat(
      "--delay-policy: \"", text,
      "\" is not known; give plain, lag_scaled(1), lag_scaled(1,500), "
      "delay_adaptive(0.1), gap_aware, "
      "delay_compensated(0.04), delay_compensated(2,0.95), ordered_momentum, "
      "delay_threshold(4), fed_buff(4), fed_async(0.6,0.5) or fed_async(0.6,10,4) (with a hinge)")};
}

std::string text_of(const plan::DelayPolicy& policy) {
  struct Text {
    std::string operator()(const plan::PlainPush&) const { return ""; }
    std::string operator()(const plan::LagScaled& spec) const {
      return concat('(', spec.power, spec.rounds > 0 ? concat(',', spec.rounds) : "", ')');
    }
    std::string operator()(const plan::DelayAdaptive& spec) const {
      return concat('(', spec.most, ')');
    }
    std::string operator()(const plan::GapAware& spec) const {
      return concat('(', spec.decay, ')');
    }
    std::string operator()(const plan::DelayCompensated& spec) const {
      return concat('(', spec.lambda, spec.adaptive ? concat(',', spec.decay) : "", ')');
    }
    std::string operator()(const plan::FedAsync& spec) const {
      return spec.hinge > 0 ? concat('(', spec.mixing, ',', spec.hinge, ',', spec.within, ')')
                            : concat('(', spec.mixing, ',', spec.power, ')');
    }
    std::string operator()(const plan::OrderedMomentum&) const { return ""; }
    std::string operator()(const plan::DelayThreshold& spec) const {
      return concat('(', spec.limit, ')');
    }
    std::string operator()(const plan::FedBuff& spec) const {
      return concat('(', spec.count, ',', spec.power, ')');
    }
  };
  return plan::choices("delay_policy")[policy.index()] + std::visit(Text{}, policy);
}

}  // namespace leeway
