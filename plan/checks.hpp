#pragma once
// Checks: the requirements of validate() beyond the ranges of single values. Only plan/*.cpp
// includes it.
#include <string>

#include "core/expected.hpp"
#include "core/text.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// Remembers the first requirement that failed.
class Checks {
 public:
  template <class... Values>
  void require(bool satisfied, const Values&... values) {
    if (!satisfied && status_) status_ = Error{concat(values...)};
  }
  Status result() const { return status_; }

 private:
  Status status_;
};

/// Checks all layers of the model, nested ones included. Errors name the place:
/// `model[3].residual.body[1].conv2d.outputs`.
void check_model(Checks& checks, const Plan& plan);
void check_stragglers(Checks& checks, const Plan& plan);
void check_faults(Checks& checks, const Plan& plan);

}  // namespace leeway
