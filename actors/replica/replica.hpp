#pragma once
// Replica: one of the two replicas of a role, so that the loss of one process loses nothing that
// the role has acknowledged.
//
//   primary   numbers the inputs of its role, relays each to the standby, and runs the role
//   standby   runs the same role on the same inputs, in the same order, and sends nothing
//
// An input is a message, a timer, a finished part of a work, the end of an actor or a mended link,
// each with its time. Inputs determine a role, so both replicas have the same state after the same
// inputs. An output of the primary leaves when the standby has the inputs up to the one that
// caused it; so no other actor ever sees a state that is lost with the primary. (Lampson, "How to
// build a highly available system using consensus", 1996, calls this state machine replication.)
//
// Only the scheduler decides which replica is the primary: it orders a standby to take over, or a
// primary to continue without a standby. When a new standby is ready, it orders the primary to seed
// it. The primary sends its whole state when the role has no work under way, and relays later
// inputs. Until the standby has them, the scheduler does not count on it, and the primary's outputs
// leave at once, until too many relays are in transit.
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "actors/outbox.hpp"
#include "actors/replica/replica_gauge.hpp"
#include "actors/replica/replicated_role.hpp"
#include "actors/replica/role_outbox.hpp"
#include "messages/envelope.hpp"

namespace leeway {

/// The replicas of a role: two actors.
struct ReplicaPair {
  Address primary, standby;
};

class Replica final : public Role {
 public:
  enum class Standing : std::uint8_t {
    primary,  // its outputs wait for the standby
    seeding,  // a primary whose standby does not have the state yet
    alone,    // a primary without a standby
    standby,
    empty,  // a standby without a state
  };

  /// Both replicas begin with the same `role`, before any input. `launch`: of an empty standby.
  /// `gauge` may be null.
  Replica(std::shared_ptr<ReplicatedRole> role, ReplicaPair pair, Standing standing,
          std::uint32_t launch = 1, std::shared_ptr<ReplicaGauge> gauge = {});

  bool is_replicated() const override { return true; }
  void on_start(Outbox& out) override;
  void on_message(Address from, const Message& message, Outbox& out) override;
  void on_decoded(Address from, const Message& message, Envelope& envelope, Outbox& out) override;
  void on_timer(TimerToken token, Outbox& out) override;
  void on_part(Work& work, int part, Outbox& out) override;
  void on_down(Address actor, const EndReason& reason, Outbox& out) override;
  void on_link(Address peer, Outbox& out) override;

  const Role& role() const { return *role_; }
  /// Standing and position, for messages about a run that hangs.
  std::string describe() const;

 private:
  bool is_primary() const { return standing_ < Standing::standby; }

  // As primary.
  /// Relays an input, which `fill` writes, and lets the role handle it by `call`.
  template <class Fill, class Call>
  void handle(Fill fill, Call call, Outbox& out);
  template <class Call>
  void handle_message(Address from, const Message& message, Call call, Outbox& out);
  void computed(RoleOutbox::Running& running, Outbox& out);
  void acknowledged(const msg::Relayed& relayed, Outbox& out);
  /// Repeats all that the standby has not acknowledged.
  void send_kept(Outbox& out);
  /// Sends the state to a new standby if the role has no work under way.
  void seed_if_quiet(Outbox& out);
  /// Adds a relay to the tensors since the seed. True if they are more than may be on their way.
  bool is_far_ahead(const Message& relay);
  /// Lets the standby check whether it has the seed, which may still be in transit, or be lost.
  void announce_seed(Outbox& out) const;
  void send_seed_again(const msg::SeedMissing& missing, Outbox& out);
  /// From now on, outputs wait until the standby has their inputs.
  void wait_for_standby();
  /// The role may not become quiet by itself: holds its messages for some time.
  void on_seed_timer(Outbox& out);
  void stop_holding(Outbox& out);

  // As standby.
  void relayed(msg::Relay& relay, Outbox& out);
  /// The primary has sent a message at this time of the role.
  void compare_clocks(Instant of_primary, Outbox& out);
  void acknowledge(bool again, Outbox& out);
  /// Lets the role handle the inputs whose works have been computed here.
  void follow(Outbox& out);
  /// False if the input is a part that has not been computed here.
  bool follow(msg::Relay& relay, Outbox& out);
  void take_over(Outbox& out);
  void plant(const msg::Seed& seed, Outbox& out);
  void answer(const msg::SeedSent& sent, Outbox& out);

  void obey(const msg::Replicate& order, Outbox& out);
  Instant role_time(const Outbox& out) const { return out.now() + ahead_.value_or(Duration{}); }
  void set_gauge();
  void confirm(Outbox& out);

  std::shared_ptr<ReplicatedRole> role_;
  const ReplicaPair pair_;
  const std::uint32_t launch_;
  const std::shared_ptr<ReplicaGauge> gauge_;
  Standing standing_;
  RoleOutbox outbox_;
  std::uint64_t configuration_;  // number of the scheduler's last order
  std::uint64_t position_ = 0;
  std::deque<std::pair<std::uint64_t, Message>> kept_;  // relays without an acknowledgement
  std::deque<msg::Relay> inputs_;                       // of a standby
  std::uint64_t received_ = 0;                          // position of the last of them
  /// The role's time minus that of this host. After a takeover the role's time goes on, although
  /// the clocks of two hosts begin at different moments.
  std::optional<Duration> ahead_;
  std::uint64_t acknowledged_ = 0;
  bool seeded_ = false;                             // the seed has been sent
  std::uint32_t seed_launch_ = 0;                   // of the standby that gets the seed
  std::uint64_t sendings_ = 0;                      // of the seed
  std::size_t seed_bytes_ = 0, ahead_of_seed_ = 0;  // of tensors
  std::uint64_t in_sync_at_ = 0;  // the standby is in sync when it has this input; 0: not known
  Duration ready_after_ = milliseconds(200);  // of an empty standby, between its messages
  bool holding_ = false;
  std::deque<std::pair<Address, Message>> held_;  // messages that wait until the seed is sent
  std::optional<std::uint64_t> promotion_;        // ordered; begins when all inputs are handled
};

}  // namespace leeway
