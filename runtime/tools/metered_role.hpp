#pragma once
// MeteredRole: counts what another role is told, and times what it computes, in any host.
#include <memory>
#include <utility>
#include <vector>

#include "actors/outbox.hpp"

namespace leeway {

/// Seconds that the calling thread has had of a processor: what others take from it does not count.
double thread_seconds();
/// Of all threads of this process together.
double process_seconds();

/// What a role has done so far.
struct Ledger {
  struct Part {
    int part = 0;
    Cost cost;
    double seconds = 0;  // of a processor
  };
  std::vector<Part> parts;     // in the order in which they were done
  std::uint64_t messages = 0;  // and timers, and parts that the role was told of by message
};

class MeteredRole final : public Role, private Outbox {
 public:
  /// `ledger` outlives the role, and is read when the host has ended.
  MeteredRole(std::shared_ptr<Role> role, Ledger& ledger, bool own_thread)
      : role_(std::move(role)), ledger_(ledger), own_thread_(own_thread) {}

 private:
  /// Times a work of the role.
  class TimedWork;

  void on_start(Outbox& out) override;
  void on_message(Address from, const Message& message, Outbox& out) override;
  void on_timer(TimerToken token, Outbox& out) override;
  void on_part(Work& work, int part, Outbox& out) override;
  void on_down(Address actor, const EndReason& reason, Outbox& out) override;

  Instant now() const override { return out_->now(); }
  Rng& random() override { return out_->random(); }
  void send(Address to, Message message) override { out_->send(to, std::move(message)); }
  void after(Duration delay, TimerToken token) override { out_->after(delay, token); }
  void compute(std::shared_ptr<Work> work) override;
  void watch(Address actor) override { out_->watch(actor); }
  void emit(const Event& event) override { out_->emit(event); }

  std::shared_ptr<Role> role_;
  Ledger& ledger_;
  bool own_thread_;
  Outbox* out_ = nullptr;  // the host's
};

}  // namespace leeway
