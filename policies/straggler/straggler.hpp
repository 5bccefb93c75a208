#pragma once
// Straggler: by how much a worker is slowed, iteration by iteration.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/expected.hpp"
#include "core/rng.hpp"
#include "core/time.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// What becomes of an iteration's computation: each part takes `factor` times as long, and the
/// first takes `extra` on top.
struct Slowdown {
  double factor = 1;
  Duration extra;
  bool operator==(const Slowdown&) const = default;
};

/// One reason why one worker is slow. What it does depends on its spec, on its chances and, for
/// pauses by the clock alone, on `now`. Decides on integers and on what every processor rounds
/// alike, without libm, so that a seed means the same run everywhere.
class Straggler {
 public:
  virtual ~Straggler() = default;
  /// The slow-down of the next iteration, which begins now. Call once an iteration. Guarantees
  /// 1 <= factor <= plan::kMaxSlowdown and extra >= 0.
  virtual Slowdown next(Instant now) = 0;
};

/// Requires a kind that validate() accepts. `chances` is what this straggler alone draws from.
std::unique_ptr<Straggler> make_straggler(const plan::StragglerKind& kind, Rng chances);

/// All that slows one worker down: factors multiply, up to plan::kMaxSlowdown; pauses add.
class StragglerModel {
 public:
  /// Slows nobody.
  StragglerModel() = default;
  /// Picks those of `worker` from a plan's stragglers. Each draws from a stream of its own, by the
  /// seed, the worker and its place among the stragglers of that worker.
  StragglerModel(const std::vector<plan::Straggler>& stragglers, std::uint32_t worker,
                 std::uint64_t seed);
  /// As Straggler::next().
  Slowdown next(Instant now);
  /// For more work of the iteration that was begun last: as slow, without the extra.
  Slowdown same() const { return {factor_, {}}; }

 private:
  double factor_ = 1;
  std::vector<std::unique_ptr<Straggler>> stragglers_;
};

/// Whether the files that stragglers read are there and good. To be asked before a run begins:
/// a model throws on a file that is not.
Status check_files(const std::vector<plan::Straggler>& stragglers);

}  // namespace leeway
