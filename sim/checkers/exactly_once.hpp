#pragma once
// ExactlyOnceChecker: property 3, every acknowledged bucket is applied exactly once, across
// repeats, broken links, death and rejoin. It is never applied if its round was closed without it.
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
  ExactlyOnceChecker() : Checker("every acknowledged bucket is applied exactly once (3)") {}
  void on_event(Instant, Address actor, const Event& event) override;
  void on_delivered(Instant, const Letter& letter) override;

 private:
  struct Life {
    Session session;
    std::vector<IterationSet> applied;  // by bucket
  };
  using Lives = std::vector<Life>;
  /// Null if no push of the bucket has been applied.
  static const IterationSet* find(const Lives& lives, Session session, std::uint32_t bucket);
  static IterationSet& at(Lives& lives, Session session, std::uint32_t bucket);

  void check_applied(Address actor, const event::BucketApplied& applied);
  bool is_dropped(Address shard, WorkerId worker, Session session, Iteration iteration) const;

  Books<Lives> workers_;
  std::map<std::tuple<Address, WorkerId, Session>, IterationSet> dropped_;
};

}  // namespace leeway::sim
