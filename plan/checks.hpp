#pragma once
// Checks: collects what validate() requires of a plan. Included by messages/*.cpp alone.
#include <cmath>
#include <cstdint>
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
  void range(const std::string& name, std::uint64_t value, std::uint64_t least, std::uint64_t most,
             const char* flag) {
    require(value >= least && value <= most, name, ": ", value, " is not allowed; give ", flag,
            least, " to ", most);
  }
  /// `wanted` says what `satisfied` tests: "above 0".
  void number(const std::string& name, double value, bool satisfied, const char* wanted) {
    require(std::isfinite(value) && satisfied, name, ": ", value, " is not allowed; give ", wanted);
  }
  void fraction_below_one(const std::string& name, double value) {
    number(name, value, value >= 0 && value < 1, "0 or more, below 1");
  }
  Status result() const { return status_; }

 private:
  Status status_;
};

/// The model's layers, those inside others included. Errors name the place:
/// `model[3].residual.body[1].conv2d.outputs`.
void check_model(Checks& checks, const Plan& plan);
/// Stragglers, faults and the world of a simulation.
void check_trouble(Checks& checks, const Plan& plan);
/// `where` stands before each key, as in "host.simulated.".
void check_world(Checks& checks, const std::string& where, const plan::World& in);

}  // namespace leeway
