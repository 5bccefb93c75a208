#pragma once
// Worker: leases samples, pulls weights, computes gradients, and pushes them part by part while
// backward goes on.
//
//   joining --Start--> running --NoData, all pushed and acknowledged--> idle --Start--> running
//      ^                  |                                              |
//      +-- evicted -------+--Stop, all pushed and acknowledged--> stopped <--Stop--+
//
// While running it computes when it has a lease and weights, waits for weights when it has a lease
// alone, and waits for the scheduler when it has neither.
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "actors/job.hpp"
#include "actors/protocol_role.hpp"
#include "actors/step.hpp"
#include "core/fifo.hpp"

namespace leeway {

class Worker final : public ProtocolRole {
 public:
  /// `life` counts, from 1, how often the worker has been started. Each life has incarnations of
  /// its own, as a worker that was evicted while it lives comes back under the next.
  Worker(std::shared_ptr<const Job> job, WorkerId id, std::uint32_t life = 1);

  void on_start(Outbox& out) override;
  void on_timer(TimerToken token, Outbox& out) override;
  void on_part(Work& work, int part, Outbox& out) override;
  void on_link(Address peer, Outbox& out) override;

 private:
  enum class State : std::uint8_t { joining, running, idle, stopped };

  /// Weights of one iteration, while they come in.
  struct Incoming {
    Iteration iteration;
    msg::Pull pull;
    std::vector<bool> arrived;  // by shard
    std::size_t missing = 0;
    std::vector<Blob> blobs;        // by block
    std::vector<Version> versions;  // by block
  };
  /// A part that its shard has not acknowledged yet.
  struct Unacknowledged {
    Iteration iteration;
    std::uint32_t part = 0;
    Message message;
  };

  void on_envelope(Address from, Envelope& envelope, Outbox& out) override;
  void handle(const msg::Start& start, Outbox& out);
  void handle(const msg::Lease& lease, Outbox& out);
  void handle(const msg::NoData& no_data, Outbox& out);
  void handle(Address from, const msg::Late& late, Outbox& out);
  void handle(Address from, msg::Weights& weights, Outbox& out);
  void handle(Address from, const msg::Pushed& pushed, Outbox& out);
  void handle(Address from, Incarnation incarnation, const msg::Refused& refused, Outbox& out);

  /// True while a part of an earlier iteration has to be sent to the shard again.
  bool keeps_earlier(Address shard, Iteration iteration) const;
  /// Does whatever can be done next: ask for a lease, pull, start a step, say that it is idle or
  /// stopped.
  void advance(Outbox& out);
  void ask_for_lease(Outbox& out);
  /// Sends the WantLease that is open, with what was spent since the last.
  void want_lease(Outbox& out);
  void pull(Iteration iteration, Outbox& out);
  void start_step(Outbox& out);
  void push_layer(Step& step, int layer, Outbox& out);
  void push_empty(Outbox& out);
  void push(std::uint32_t shard, msg::Push push, Outbox& out);
  void finish_iteration(Iteration iteration, std::int64_t samples, Outbox& out);
  /// Asks to take part, and again until it is heard.
  void join(Outbox& out);
  /// Forgets this life and joins again under the next incarnation.
  void rejoin(Outbox& out);

  bool leased(Iteration iteration) const { return iteration < next_unleased_; }
  /// Takes the samples of the iteration that starts now from the front lease.
  StepSamples take_samples();
  double push_weight(std::int64_t samples) const;
  Clock acknowledged() const;
  /// True when the plan wants this fault in this iteration.
  template <class Kind>
  bool planned(Iteration iteration) const;
  void report(bool now, Outbox& out);
  template <class T>
  void send(Address to, T body, Outbox& out);

  std::shared_ptr<const Job> job_;
  WorkerId id_;
  Incarnation incarnation_{1};
  std::shared_ptr<StepBuffers> make_buffers() const;

  std::shared_ptr<StepBuffers> buffers_;
  State state_ = State::joining;
  bool stopping_ = false;
  bool no_data_ = false;                   // the scheduler has nothing to lease now
  bool late_ = false;                      // nobody wants what is being computed any more
  std::optional<msg::Diverged> diverged_;  // waits for the Stop that must come

  Iteration next_;                  // to start
  Iteration next_unleased_;         // first iteration without a lease
  std::optional<Iteration> asked_;  // the WantLease that is not answered yet
  Fifo<msg::Lease> leases_;
  std::int64_t leased_position_ = 0;        // in the front lease
  std::uint64_t start_ = 0;                 // number of the last Start
  std::uint32_t round_samples_ = 1;         // of the lease of the current iteration
  std::map<Iteration, Incoming> incoming_;  // at most the next iteration's and one prefetch
  std::shared_ptr<Step> step_;
  std::vector<Version> step_versions_;
  std::vector<std::vector<Unacknowledged>> unacknowledged_;  // by shard, in order

  msg::WorkerReport report_;
  msg::WantLease spent_;  // its times and counts grow until it is sent
  Instant waiting_since_;
  Instant step_since_;
  Instant reported_at_;
};

}  // namespace leeway
