#pragma once
// Straggler: slows a worker down, by a factor and a pause per iteration.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/expected.hpp"
#include "core/ids.hpp"
#include "core/rng.hpp"
#include "core/time.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// The slow-down of one iteration: each part of its computation takes `factor` times as long, and
/// the first part takes `extra` more.
struct Slowdown {
  double factor = 1;
  Duration extra;
  bool operator==(const Slowdown&) const = default;
};

/// One reason why a worker is slow. Its decisions depend on its spec, on its random numbers and,
/// for pauses by the clock, on `now`. It uses integers and floating-point operations that all
/// processors round alike, without libm. A seed therefore gives the same run everywhere.
class Straggler {
 public:
  virtual ~Straggler() = default;
  /// The slow-down of the next iteration, which begins now. Call once per iteration. Guarantees
  /// 1 <= factor <= plan::kMaxSlowdown and extra >= 0.
  virtual Slowdown next(Instant now) = 0;
  /// Continues as after `iterations` calls of next(). Pauses by the clock have no such position.
  virtual void skip(std::uint64_t iterations) = 0;
};

/// Requires a kind that validate() accepts. Only this straggler draws from `rng`.
std::unique_ptr<Straggler> make_straggler(const plan::StragglerKind& kind, Rng rng);

/// All stragglers of one worker: factors multiply, up to plan::kMaxSlowdown; pauses add.
class StragglerModel {
 public:
  /// No slow-down.
  StragglerModel() = default;
  /// Selects the stragglers of `worker` from a plan's. Each has a separate random stream, from the
  /// seed, the worker and its index among the stragglers of that worker. The model begins at
  /// iteration `first`, so that the slow-downs of a resumed run continue.
  StragglerModel(const std::vector<plan::Straggler>& stragglers, std::uint32_t worker,
                 std::uint64_t seed, Iteration first = {});
  /// As Straggler::next().
  Slowdown next(Instant now);
  /// For more work of the latest iteration: the same factor, no extra.
  Slowdown same() const { return {factor_, {}}; }

 private:
  double factor_ = 1;
  std::vector<std::unique_ptr<Straggler>> stragglers_;
};

/// Checks the files that stragglers read. Call it before a run: the constructor of a model throws
/// if a file is missing or invalid.
Status check_files(const std::vector<plan::Straggler>& stragglers);

}  // namespace leeway
