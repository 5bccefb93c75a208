#pragma once
// ExactlyOnceChecker: property 3, every acknowledged part is applied exactly once, or never if its
// round was closed without its worker, across repeats, broken links, death and return.
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "sim/checkers/books.hpp"
#include "sim/checkers/checker.hpp"
#include "sim/checkers/iteration_set.hpp"

namespace leeway::sim {

class ExactlyOnceChecker final : public Checker {
 public:
  ExactlyOnceChecker() : Checker("every acknowledged part is applied exactly once (3)") {}
  void on_event(Instant, Address actor, const Event& event) override;
  void on_delivered(Instant, const Letter& letter) override;

 private:
  struct Life {
    Incarnation incarnation;
    std::vector<IterationSet> applied;  // by part
  };
  using Lives = std::vector<Life>;
  /// Null when nothing was applied of it yet.
  static const IterationSet* find(const Lives& lives, Incarnation incarnation, std::uint32_t part);
  static IterationSet& at(Lives& lives, Incarnation incarnation, std::uint32_t part);

  bool is_late(Address shard, WorkerId worker, Incarnation incarnation, Iteration iteration) const;

  Books<Lives> workers_;
  std::map<std::tuple<Address, WorkerId, Incarnation>, IterationSet> late_;
};

}  // namespace leeway::sim
