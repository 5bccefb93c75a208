#include "policies/optimizer/parameter_groups.hpp"

#include <fnmatch.h>

#include <algorithm>

#include "core/text.hpp"

namespace leeway {

std::vector<std::string> patterns_of(const plan::ParameterGroup& group) {
  std::vector<std::string> patterns = comma_separated(group.names);
  for (std::string& pattern : patterns) pattern = std::string(trimmed(pattern));
  return patterns;
}

bool matches(const plan::ParameterGroup& group, const std::string& name) {
  return std::ranges::any_of(patterns_of(group), [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  });
}

ParameterFactors factors_of(const plan::Optimizer& optimizer, const std::string& name,
                            bool is_vector) {
  ParameterFactors factors;
  if (optimizer.no_decay_on_biases && is_vector) factors.decay = 0;
  const auto group = std::ranges::find_if(
      optimizer.groups, [&](const plan::ParameterGroup& one) { return matches(one, name); });
  if (group == optimizer.groups.end()) return factors;
  factors.rate = group->rate;
  factors.decay *= group->decay;
  return factors;
}

}  // namespace leeway
