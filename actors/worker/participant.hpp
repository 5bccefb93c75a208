#pragma once
// Participant: what workers that train a whole model and stages of pipelines have in common. It
// joins and stops, pulls and pushes, and leases samples.
//
//   joining --Start--> running --nothing to do, all acknowledged--> idle --Start--> running
//      ^                  |                                           |
//      +-- evicted -------+--Stop, all pushed and acknowledged--> stopped <--Stop--+
#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>

#include "actors/job.hpp"
#include "actors/protocol_role.hpp"
#include "actors/worker/lease_queue.hpp"
#include "actors/worker/parameter_client.hpp"
#include "core/text.hpp"

namespace leeway {

/// Thrown where the plan asks a participant to fail.
struct PlannedFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The participant that the job has in `id`'s place: a Worker, or a Stage. `life` counts, from 1,
/// how often it has been started. Each life has incarnations of its own, as a participant that was
/// evicted while it lives comes back under the next.
std::unique_ptr<ProtocolRole> make_participant(const std::shared_ptr<const Job>& job, WorkerId id,
                                               std::uint32_t life = 1);

class Participant : public ProtocolRole {
 public:
  void on_start(Outbox& out) override;
  void on_timer(TimerToken token, Outbox& out) override;
  void on_link(Address peer, Outbox& out) override;

 protected:
  enum class State : std::uint8_t { joining, running, idle, stopped };

  Participant(std::shared_ptr<const Job> job, WorkerId id, std::uint32_t life);

  /// It takes part, from `iteration` on.
  virtual void started(Iteration iteration, Outbox& out) = 0;
  /// Does whatever can be done next.
  virtual void advance(Outbox& out) = 0;
  /// Forgets the life that is over.
  virtual void forget() = 0;
  /// Iterations below it are acknowledged by all shards of this participant.
  virtual Clock acknowledged() const = 0;
  /// The same, as far as is known, of its whole pipeline.
  virtual Clock trained() const { return acknowledged(); }
  /// A message that only some participants take: false when this one does not.
  virtual bool take(Address /*from*/, Envelope& /*envelope*/, Outbox&) { return false; }

  /// Asks for samples beyond `started`, the next iteration to start, when it is time to.
  void lease_beyond(Iteration started, Outbox& out);
  void say_idle(Outbox& out);
  void say_stopped(Outbox& out);
  /// The loss of an iteration that is not pushed is not finite.
  void say_diverged(msg::Diverged diverged, Outbox& out);
  /// Forgets this life and joins again under the next incarnation.
  void rejoin(Outbox& out);
  /// Tells the monitor, now or once in a while.
  void report(bool now, Outbox& out);
  /// Throws where the plan wants this fault in this iteration.
  template <class Kind>
  void fail_if_planned(Iteration iteration, std::string_view what) const;
  template <class T>
  void send(Address to, T body, Outbox& out) {
    out.send(to, encode({.incarnation = incarnation_, .body = std::move(body)}));
  }

  std::shared_ptr<const Job> job_;
  WorkerId id_;
  Incarnation incarnation_{1};
  State state_ = State::joining;
  bool stopping_ = false;
  std::uint64_t start_ = 0;                // number of the last Start
  std::optional<msg::Diverged> diverged_;  // waits for the Stop that must come
  ParameterClient parameters_;
  LeaseQueue leases_;
  msg::WorkerReport report_;
  msg::WantLease spent_;  // its times and counts grow until it is sent

 private:
  void on_envelope(Address from, Envelope& envelope, Outbox& out) final;
  void handle(const msg::Start& start, Outbox& out);
  void handle(const msg::Lease& lease, Outbox& out);
  void handle(const msg::NoData& no_data, Outbox& out);
  void handle(Address from, msg::Weights& weights, Outbox& out);
  void handle(Address from, const msg::Pushed& pushed, Outbox& out);
  void handle(Address from, Incarnation incarnation, const msg::Refused& refused, Outbox& out);
  /// Asks to take part, and again until it is heard.
  void join(Outbox& out);
  /// Sends the WantLease that is open, with what was spent since the last.
  void want_lease(Outbox& out);

  Instant reported_at_;
};

template <class Kind>
void Participant::fail_if_planned(Iteration iteration, std::string_view what) const {
  if (life_of(incarnation_) > 1) return;  // once is enough
  const bool planned =
      std::any_of(job_->faults.begin(), job_->faults.end(), [&](const plan::Fault& fault) {
        const auto* at = std::get_if<std::int64_t>(&fault.at);
        return fault.actor == address_of(id_) && std::holds_alternative<Kind>(fault.kind) && at &&
               iteration.value() >= *at;
      });
  if (planned)
    throw PlannedFault(
        concat("fault of the plan: ", address_of(id_), ' ', what, " in iteration ", iteration));
}

}  // namespace leeway
