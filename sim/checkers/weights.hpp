#pragma once
// WeightsChecker: property 8, a gradient is of the weights that were pulled for it, and nobody
// writes to what is on its way.
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/job.hpp"
#include "sim/checkers/books.hpp"
#include "sim/checkers/checker.hpp"

namespace leeway::sim {

/// Where a pipeline is never emptied a pull is for several iterations, and named by the last of
/// them: a gradient may be of any that is not named by an earlier one.
class WeightsChecker final : public Checker {
 public:
  explicit WeightsChecker(const std::shared_ptr<const Job>& job)
      : Checker("backward uses the weights that forward used (8)"),
        asynchronous_(job->stages->asynchronous()) {}
  void on_sent(Instant, const Letter& letter) override;
  void on_delivered(Instant, const Letter& letter) override;

 private:
  using Versions = std::vector<std::pair<BlockId, Version>>;
  struct Pulled {
    std::map<Iteration, Versions> versions;  // of `from` and later ones
    Iteration from;                          // the largest that was pushed
    bool has(Iteration iteration, bool or_later, std::pair<BlockId, Version> of) const;
  };
  struct Underway {
    std::uint64_t contents = 0;
    std::uint32_t times = 0;
  };
  void check_contents(const Letter& letter);
  void check_push(const Letter& letter, const msg::Push& push);

  bool asynchronous_;
  Books<std::map<Incarnation, Pulled>> pulled_;
  /// By the memory of their headers, which those that are on their way do not share; never walked
  /// through.
  std::unordered_map<const std::uint64_t*, Underway> underway_;
};

}  // namespace leeway::sim
