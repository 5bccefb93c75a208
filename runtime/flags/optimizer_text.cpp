#include "runtime/flags/optimizer_text.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "core/text.hpp"
#include "plan/settings.hpp"
#include "policies/optimizer/optimizer.hpp"
#include "runtime/flags/arguments.hpp"
#include "runtime/words.hpp"

namespace leeway {
namespace {

/// A setting that a number in the brackets of a name gives.
using Argument = std::variant<double*, std::uint32_t*>;

struct ArgumentsOfKind {
  std::vector<Argument> operator()(plan::Momentum& spec) const { return {&spec.factor}; }
  std::vector<Argument> operator()(plan::Nesterov& spec) const { return {&spec.factor}; }
  std::vector<Argument> operator()(plan::DelayedNesterov& spec) const {
    return {&spec.factor, &spec.rounds};
  }
  std::vector<Argument> operator()(plan::Muon& spec) const { return {&spec.factor}; }
  template <class Kind>
  std::vector<Argument> operator()(Kind& spec) const {
    if constexpr (requires { spec.beta2; })
      return {&spec.beta1, &spec.beta2};
    else
      return {};
  }
};

double value_of(const Argument& argument) {
  return std::visit([](const auto* number) { return static_cast<double>(*number); }, argument);
}

/// False if the setting is a count, and the number is not a whole one above 0.
bool set(const Argument& argument, double number) {
  if (auto* const real = std::get_if<double*>(&argument)) {
    **real = number;
    return true;
  }
  const auto count = as_count(number);
  if (count) *std::get<std::uint32_t*>(argument) = *count;
  return count.has_value();
}

std::string in_brackets(const std::vector<Argument>& arguments) {
  std::vector<std::string> texts;
  for (const Argument& one : arguments) texts.push_back(concat(value_of(one)));
  return texts.empty() ? "" : concat('(', join(texts, ","), ')');
}

/// Sets the first settings of the kind to the numbers of the text. `flag`: for the error.
template <class Kinds>
Status set_arguments(Kinds& kind, const std::string& text, const std::string& name,
                     std::string_view flag) {
  if (text == name) return {};
  const auto arguments = std::visit(ArgumentsOfKind{}, kind);
  const auto numbers = arguments_of(text, name);
  const std::string example = name + in_brackets(arguments);
  bool fits = !numbers.empty() && numbers.size() <= arguments.size();
  for (std::size_t i = 0; fits && i < numbers.size(); ++i) fits = set(arguments[i], numbers[i]);
  if (fits) return {};
  if (arguments.empty()) return Error{concat(flag, ": ", name, " takes no numbers; give ", name)};
  return Error{
      concat(flag, ": \"", text, "\" does not have the numbers of ", name, "; give ", example)};
}

std::string name_in(const std::string& text) {
  return text.substr(0, text.find('('));
}

/// The name of an updater: "updater(NAME)".
Expected<plan::Optimizer> parse_updater(const std::string& text, std::string_view flag) {
  constexpr std::string_view kUpdater = "updater(";
  if (text.starts_with(kUpdater) && text.ends_with(')') && text.size() > kUpdater.size() + 1)
    return updater(text.substr(kUpdater.size(), text.size() - kUpdater.size() - 1));
  return Error{concat(
      flag, ": give the name of the updater that the program has registered, as in updater(NAME)")};
}

/// The usual outer optimizer of each name.
const plan::OuterOptimizer kOuterOptimizers[] = {{1, plan::AverageChanges{}},
                                                 {0.3, plan::Momentum{}},
                                                 {0.7, plan::Nesterov{}},
                                                 {0.1, plan::DelayedNesterov{}},
                                                 {0.01, plan::Adam{}}};
static_assert(std::size(kOuterOptimizers) ==
              std::variant_size_v<plan::OuterOptimizerKind::variant>);

std::string outer_name(const plan::OuterOptimizer& outer) {
  return plan::choices("local_steps.outer")[outer.kind.index()];
}

}  // namespace

Expected<plan::Optimizer> parse_optimizer(const std::string& text, std::string_view flag) {
  const std::string name = name_in(text);
  if (name == "updater") return parse_updater(text, flag);
  const auto* const found = std::ranges::find(kOptimizers, name, &NamedOptimizer::name);
  if (found == std::end(kOptimizers))
    return Error{
        concat(flag, ": unknown \"", text, '"', suggest(name, plan::choices("optimizer")))};
  plan::Optimizer optimizer = found->optimizer;
  if (const Status read = set_arguments(optimizer.kind, text, name, flag); !read)
    return read.error();
  return optimizer;
}

std::string text_of(const plan::Optimizer& optimizer) {
  if (const auto* named = std::get_if<plan::Updater>(&optimizer.kind))
    return concat("updater(", named->name, ')');
  const std::string name(make_optimizer(optimizer)->name());
  auto given = optimizer.kind, usual = parse_optimizer(name)->kind;
  const std::string numbers = in_brackets(std::visit(ArgumentsOfKind{}, given));
  return numbers == in_brackets(std::visit(ArgumentsOfKind{}, usual)) ? name : name + numbers;
}

Expected<plan::OuterOptimizer> parse_outer_optimizer(const std::string& text) {
  const std::string name = name_in(text);
  const auto* const found = std::ranges::find(kOuterOptimizers, name, outer_name);
  if (found == std::end(kOuterOptimizers))
    return Error{concat("--outer-optimizer: unknown \"", text, '"',
                        suggest(name, plan::choices("local_steps.outer")))};
  plan::OuterOptimizer outer = *found;
  if (const Status read = set_arguments(outer.kind, text, name, "--outer-optimizer"); !read)
    return read.error();
  return outer;
}

std::string text_of(const plan::OuterOptimizer& outer) {
  auto kind = outer.kind;
  return outer_name(outer) + in_brackets(std::visit(ArgumentsOfKind{}, kind));
}

}  // namespace leeway
