#pragma once
// MeteredRole: counts the messages of another role and measures its computations, in any host.
#include <memory>
#include <utility>
#include <vector>

#include "actors/outbox.hpp"

namespace leeway {

/// CPU time of the calling thread.
double thread_seconds();
/// CPU time of all threads of this process.
double process_seconds();

/// The work of a role so far.
struct Ledger {
  struct Part {
    int part = 0;
    Cost cost;
    double seconds = 0;  // CPU time
  };
  std::vector<Part> parts;     // in the order of execution
  std::uint64_t messages = 0;  // including timers, and parts reported by message
};

class MeteredRole final : public Role, private Outbox {
 public:
  /// `ledger` must outlive the role; it may be read after the host has ended.
  MeteredRole(std::shared_ptr<Role> role, Ledger& ledger, bool own_thread)
      : role_(std::move(role)), ledger_(ledger), own_thread_(own_thread) {}

 private:
  /// Measures a work of the role.
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
