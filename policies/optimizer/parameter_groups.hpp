#pragma once
// Parameter groups: learning rate and weight decay of single parameters.
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace leeway {

/// Factors of the optimizer's learning rate and weight decay.
struct ParameterFactors {
  double rate = 1;
  double decay = 1;
  bool operator==(const ParameterFactors&) const = default;
};

/// Whether one of the group's patterns matches the whole name: * any letters, ? one letter, [ab]
/// one of these letters.
bool matches(const plan::ParameterGroup& group, const std::string& name);

/// The factors of the first group that matches the parameter. `is_vector`: a bias, or the scale or
/// shift of a norm.
ParameterFactors factors_of(const plan::Optimizer& optimizer, const std::string& name,
                            bool is_vector);

/// The patterns of a group.
std::vector<std::string> patterns_of(const plan::ParameterGroup& group);

}  // namespace leeway
