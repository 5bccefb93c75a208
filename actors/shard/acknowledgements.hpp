#pragma once
// Acknowledgements: the pushes that are accepted and not yet applied, and the answers to their
// workers.
//
// A push is acknowledged when its update has been computed. A repeated push must not be
// acknowledged earlier: its worker would discard a push that a crash could still lose.
#include <map>
#include <utility>
#include <vector>

#include "actors/outbox.hpp"
#include "actors/shard/clock_table.hpp"
#include "actors/shard/contribution.hpp"

namespace leeway {

class Acknowledgements {
 public:
  explicit Acknowledgements(const ClockTable& clocks) : clocks_(clocks) {}

  /// The push has been accepted; applied() or forget() follows.
  void expect(const Contribution& push);
  bool is_expected(const Contribution& push) const;
  void forget(const Contribution& push);
  /// Reports the push as applied and acknowledges it.
  void applied(const Contribution& push, Outbox& out, bool skipped = false);
  /// Acknowledges a push that was applied before.
  void repeated(const Contribution& push, Outbox& out) { acknowledge(push, true, false, out); }
  /// Acknowledges a push that is never applied.
  void dropped(const Contribution& push, Outbox& out) { acknowledge(push, true, true, out); }

  std::vector<msg::ExpectedPush> save() const;
  void restore(const std::vector<msg::ExpectedPush>& pushes);

 private:
  /// Sends no acknowledgement to an evicted session.
  void acknowledge(const Contribution& push, bool repeat, bool dropped, Outbox& out);

  const ClockTable& clocks_;
  std::map<std::pair<WorkerId, Session>, std::vector<std::pair<Iteration, std::uint32_t>>>
      expected_;  // iterations and buckets
};

}  // namespace leeway
