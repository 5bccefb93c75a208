#pragma once
// LocalHost: runs roles as actors on threads of this process.
//
// Each worker has a thread, on which it also computes. All other roles, and the long work that they
// hand out, share a pool with one thread for each core. A role that throws ends, and its watchers
// receive the exception's text.
#include <functional>
#include <memory>
#include <optional>

#include "actors/cluster/actor_host.hpp"
#include "messages/message_log.hpp"
#include "plan/plan.hpp"
#include "policies/straggler/disturbances.hpp"

namespace leeway {

/// `record`: number among the records of a replicated role, which a standby that takes over may
/// repeat; 0 for other events. See RecordFilter.
using OnActorEvent = std::function<void(Address, Instant, const Event&, std::uint64_t record)>;

class LocalHost final : public ActorHost {
 public:
  struct Options {
    std::uint64_t seed = 1;
    unsigned pool_threads = 0;  // 0: one a core
    std::vector<plan::Straggler>
        stragglers;  // slow down the work of these workers by making its results arrive later
    std::vector<Iteration> first_iterations;     // of each worker; empty: 0
    std::shared_ptr<Disturbances> disturbances;  // counts what the stragglers do; may be null
    /// Called for every event, from many threads at once; may be empty.
    OnActorEvent on_event;

    /// Called for every message that reaches an actor, likewise.
    OnMessage on_message;

    ActorHostEvents* events = nullptr;  // for one host of several
  };

  explicit LocalHost(Options options);
  /// Ends all actors and waits for them.
  ~LocalHost() override;
  LocalHost(const LocalHost&) = delete;
  LocalHost& operator=(const LocalHost&) = delete;

  /// With null, restart() launches it.
  void add(Address address, std::shared_ptr<Role> role) override;
  void start() override;
  /// Sends as the host itself.
  void send(Address to, Message message) { deliver(kHost, to, std::move(message)); }
  void deliver(Address from, Address to, Message message) override;
  void report_down(Address watcher, Address ended, const EndReason& reason) override;
  void kill(Address actor, const EndReason& reason) override;
  void restart(Address address, std::shared_ptr<Role> role) override;
  void forget(Address actor, const EndReason& reason) override;
  void report_link(Address peer) override;
  /// Stops a worker for `time`, as if its process had been stopped.
  void freeze(Address worker, Duration time);
  bool lives(Address actor) const override;
  Instant now() const;
  /// Why an actor has ended; none while it runs.
  std::optional<EndReason> end_reason(Address address) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leeway
