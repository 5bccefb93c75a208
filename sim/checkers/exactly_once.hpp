#pragma once
// ExactlyOnceChecker: property 3, every acknowledged bucket is applied exactly once, across
// repeats, broken links, death and rejoin. It is never applied if its round was closed without it.
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "sim/checkers/books.hpp"
#include "sim/checkers/checker.hpp"
#include "sim/checkers/iteration_set.hpp"

namespace leeway::sim {

class ExactlyOnceChecker final : public Checker {
 public:
  ExactlyOnceChecker()
      : Checker("every acknowledged bucket is applied exactly once (3)", Damage::updates) {}
  void on_event(Instant, Address actor, const Event& event) override;
  void on_delivered(Instant, const Letter& letter) override;

 private:
  void check_applied(Address actor, const event::BucketApplied& applied);
  bool is_dropped(Address shard, WorkerId worker, Session session, Iteration iteration) const;

  Books<std::map<std::pair<Session, std::uint32_t>, IterationSet>> applied_;  // by bucket
  std::map<std::tuple<Address, WorkerId, Session>, IterationSet> dropped_;
};

}  // namespace leeway::sim
