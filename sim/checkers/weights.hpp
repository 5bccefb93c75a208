#pragma once
// WeightsChecker: property 8, a gradient is of the weights that were pulled for it, and nobody
// writes to what is on its way.
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/checkers/books.hpp"
#include "sim/checkers/checker.hpp"

namespace leeway::sim {

class WeightsChecker final : public Checker {
 public:
  WeightsChecker() : Checker("backward uses the weights that forward used (8)") {}
  void on_sent(Instant, const Letter& letter) override;
  void on_delivered(Instant, const Letter& letter) override;

 private:
  using Versions = std::vector<std::pair<BlockId, Version>>;
  struct Pulled {
    std::map<Iteration, Versions> versions;  // of `from` and later ones
    Iteration from;                          // the largest that was pushed
  };
  struct Underway {
    std::uint64_t contents = 0;
    std::uint32_t times = 0;
  };
  void check_contents(const Letter& letter);
  void check_push(const Letter& letter, const msg::Push& push);

  Books<std::map<Incarnation, Pulled>> pulled_;
  /// By the memory of their headers, which those that are on their way do not share; never walked
  /// through.
  std::unordered_map<const std::uint64_t*, Underway> underway_;
};

}  // namespace leeway::sim
