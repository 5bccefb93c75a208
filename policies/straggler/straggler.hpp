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
#include "policies/straggler/disturbances.hpp"

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
  /// Selects the stragglers of `worker` from a plan's, whose starts are iterations: see
  /// with_starts(). Each has a separate random stream, from the seed, the worker and its index
  /// among the stragglers of that worker; one for workers `together` has the same stream for all of
  /// them. The model begins at iteration `first`, so that the slow-downs of a resumed run continue.
  /// Counts into `disturbances` unless it is null.
  StragglerModel(const std::vector<plan::Straggler>& stragglers, std::uint32_t worker,
                 std::uint64_t seed, Iteration first = {},
                 std::shared_ptr<Disturbances> disturbances = nullptr);
  /// As Straggler::next().
  Slowdown next(Instant now);
  /// For more work of the latest iteration: the same factor, no extra.
  Slowdown same() const { return {factor_, {}}; }
  /// Counts a part of the latest work: its factor has made it `longer`, and `first` says whether
  /// the pauses were added to it.
  void count(Duration longer, bool first) const;

 private:
  struct One {
    std::size_t number = 0;  // in the plan
    std::unique_ptr<Straggler> straggler;
    Slowdown latest;
  };

  double factor_ = 1;
  std::vector<One> stragglers_;
  std::shared_ptr<Disturbances> disturbances_;
};

/// Checks the files and functions that factors come from. Call it before a run: the constructor of
/// a model throws if one is missing or invalid.
Status check_sources(const std::vector<plan::Straggler>& stragglers);

/// The plan's stragglers with each start as an iteration. `iterations`: of one worker in the whole
/// run, if all train equally many samples.
std::vector<plan::Straggler> with_starts(std::vector<plan::Straggler> stragglers,
                                         double iterations);

}  // namespace leeway
