#pragma once
// ExactlyOnceChecker: property 3, every acknowledged part is applied exactly once, across repeats,
// broken links, death and return.
#include <cstdint>
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

  Books<Lives> workers_;
};

}  // namespace leeway::sim
