#pragma once
// Replicas: which actors are the replicas of each shard, and which of them is the primary.
//
// With two replicas, the loss of one loses nothing: a standby takes over, or a primary goes on
// alone, until the primary has seeded a new standby. The scheduler decides, so that there are never
// two primaries: a standby that has been ordered to take over accepts nothing more from the earlier
// primary, whose outputs wait for that.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/job.hpp"
#include "actors/outbox.hpp"
#include "messages/envelope.hpp"

namespace leeway {

class Replicas {
 public:
  explicit Replicas(const Job& job);

  /// Watches all replicas.
  void start(Outbox& out) const;
  /// A replica has ended, or is unreachable. False if its shard has no other.
  bool ended(Address actor, const EndReason& reason, Outbox& out);
  /// A new standby has no state yet.
  void ready(Address standby, const msg::StandbyReady& report, Outbox& out);
  /// A replica has carried out an order.
  void confirmed(Address from, const msg::Replicating& answer, Outbox& out);
  /// The link to the actor works again: repeats an order without an answer.
  void send_again(Address peer, Outbox& out) const;

 private:
  struct Pair {
    std::uint64_t configuration = 1;      // counts the orders
    bool standby = false;                 // it lives, and has all that the primary relays
    std::uint32_t launch = 1;             // of the latest standby
    std::optional<msg::Replicate> order;  // without an answer
  };
  /// The receiver of the pair's order.
  static Address receiver_of(const Pair& pair, std::uint32_t shard);
  static bool has_order(const Pair& pair, msg::Replicate::Standing standing) {
    return pair.order && pair.order->standing == standing;
  }
  static bool takes_over(const Pair& pair) {
    return has_order(pair, msg::Replicate::Standing::promoted);
  }
  /// Takes the scheduler's decision down in an event, and reports it to the monitor.
  static void report(const Event& decision, ShardId shard, msg::ReplicasChanged::Change change,
                     const std::string& reason, Outbox& out);
  void give(Pair& pair, std::uint32_t shard, msg::Replicate::Standing standing, Outbox& out);

  std::vector<Pair> pairs_;  // by shard
};

}  // namespace leeway
