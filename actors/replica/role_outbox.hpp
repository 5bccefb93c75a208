#pragma once
// RoleOutbox: the Outbox of a replicated role. It decides which of the role's outputs leave, and
// when.
//
// Outputs are messages, events, and the records of the messages that the role has handled. The
// works, timers and watches of the role pass, as its standing allows: a standby computes, but arms
// no timer and sends nothing.
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "actors/outbox.hpp"
#include "messages/envelope.hpp"

namespace leeway {

class RoleOutbox final : public Outbox {
 public:
  enum class Mode : std::uint8_t {
    direct,  // outputs leave at once
    waits,   // outputs leave by release()
    silent,  // messages are dropped, and records are kept until the primary has reported them
  };

  explicit RoleOutbox(Mode mode) : mode_(mode) {}

  /// The role is about to get its input number `position`, at the time `now`.
  void enter(std::uint64_t position, Instant now, Outbox& host);
  /// The input is this message.
  void handles(Address from, const Message& message);

  // ---- outputs ----

  /// With Mode::direct, all outputs that have waited leave.
  void set_mode(Mode mode);
  /// The standby has the inputs up to this position: outputs of these inputs leave.
  void release(std::uint64_t position);
  /// Number of outputs that wait.
  std::size_t waiting() const { return outputs_.size(); }
  /// A hash of all outputs so far; equal for two replicas after equal inputs.
  std::uint64_t digest() const { return digest_; }
  /// Number of records, which are events and handled messages, that have left.
  std::uint64_t recorded() const { return recorded_; }
  /// While silent: the primary has reported this number of records.
  void were_recorded(std::uint64_t number);
  /// Ends the silence at the time `now`: reports the records that the primary may not have
  /// reported, arms the timers for the rest of their time, and hands out the works that only a
  /// primary runs.
  void take_over(Instant now, Outbox& host);

  // ---- works ----

  struct Running {
    std::uint64_t number = 0;  // of the work, from 1 in a run
    std::shared_ptr<Work> work;
    int computed = 0;     // parts that this process has computed
    int handled = 0;      // parts that the role has handled
    bool handed = false;  // to the host
  };
  /// Null for a work that is not under way.
  Running* find(const Work& work);
  Running* find(std::uint64_t number);
  /// The role is about to handle the next part of the work. Returns the work.
  std::shared_ptr<Work> handle_part(Running& running);
  /// Works of which the role has handled fewer parts than were computed.
  std::vector<std::uint64_t> ahead() const;

  /// The role is about to handle the timer.
  void rang(TimerToken token);

  // ---- seeds ----

  /// Whether no work is under way.
  bool is_idle() const { return running_.empty(); }
  /// Fills in what a seed holds of this outbox at the time `now`. Requires is_idle().
  void save(Instant now, msg::Seed& seed) const;
  /// Continues from there, as a silent outbox.
  void restore(const msg::Seed& seed);

  // ---- Outbox ----

  Instant now() const override { return now_; }
  /// Must not be called.
  Rng& random() override;
  void send(Address to, Message message) override;
  void after(Duration delay, TimerToken token) override;
  void compute(std::shared_ptr<Work> work) override;
  void watch(Address actor) override;
  void emit(const Event& event) override;

 private:
  struct Letter {
    Address to;
    Message message;
  };
  struct Handled {
    Address from;
    Message message;
  };
  struct Output {
    std::uint64_t position = 0;
    std::variant<Letter, Event, Handled> content;
  };

  void put_out(Output output);
  void leave(const Output& output);

  Mode mode_;
  Outbox* host_ = nullptr;
  std::uint64_t position_ = 0;
  Instant now_;
  std::deque<Output> outputs_;  // that wait; while silent, only records
  std::uint64_t digest_ = 0;
  std::uint64_t recorded_ = 0;
  std::uint64_t works_ = 0;
  std::vector<Running> running_;                        // few
  std::vector<std::pair<TimerToken, Instant>> timers_;  // that have not rung, and when they are due
  std::set<Address> watched_;
};

}  // namespace leeway
