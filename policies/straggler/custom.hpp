#pragma once
// CustomStraggler: factors from a function of the program, which the plan knows by its name.
#include <functional>
#include <string>

#include "policies/straggler/straggler.hpp"

namespace leeway {

/// As in runtime/scenario.hpp.
using SlowdownFunction = std::function<double(std::int64_t iteration, double seconds, Rng& random)>;
void register_straggler(const std::string& name, SlowdownFunction function);

/// The function of this name. Error: none is registered.
Expected<SlowdownFunction> find_slowdown(const std::string& name);

/// Each iteration has its own random stream, so that the draws of one do not depend on how many
/// numbers earlier ones drew. Throws if the function returns a factor below 1 or above
/// plan::kMaxSlowdown.
class CustomStraggler final : public Straggler {
 public:
  /// Throws if the function is missing; check_sources() reports that before a run.
  CustomStraggler(const plan::CustomStraggler& spec, Rng rng);
  Slowdown next(Instant now) override;
  void skip(std::uint64_t iterations) override { iteration_ += iterations; }

 private:
  std::string name_;
  SlowdownFunction function_;
  std::uint64_t seed_;
  std::uint64_t iteration_ = 0;
};

}  // namespace leeway
