#pragma once
// ExactlyOnceChecker: property 3, every acknowledged part is applied exactly once, across repeats,
// broken links, death and return.
#include <cstdint>
#include <map>
#include <tuple>

#include "sim/checkers/checker.hpp"
#include "sim/checkers/iteration_set.hpp"

namespace leeway::sim {

class ExactlyOnceChecker final : public Checker {
 public:
  ExactlyOnceChecker() : Checker("every acknowledged part is applied exactly once (3)") {}
  void on_event(Instant, Address actor, const Event& event) override;
  void on_delivered(Instant, const Letter& letter) override;

 private:
  using Name = std::tuple<Address, WorkerId, std::uint32_t, Incarnation>;  // shard; part
  std::map<Name, IterationSet> applied_;
};

}  // namespace leeway::sim
