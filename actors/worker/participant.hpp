#pragma once
// Participant: the common base of Worker, UserWorker, Stage, GroupLead and GroupFollower. It joins
// and stops, pulls and pushes, and leases samples.
//
//   joining --Start--> running --no samples, all acknowledged--> idle --Start--> running
//      ^                  |                                        |
//      +---- evicted -----+--Stop, all acknowledged--> stopped <--Stop
#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/job.hpp"
#include "actors/protocol_role.hpp"
#include "actors/worker/compute_engine.hpp"
#include "actors/worker/lease_queue.hpp"
#include "actors/worker/parameter_client.hpp"
#include "core/limits.hpp"
#include "core/mutant.hpp"
#include "core/text.hpp"

namespace leeway {

/// Thrown by a fault of the plan.
struct PlannedFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The participant of the job with this id: a UserWorker if the program has its own loops, a Stage
/// if the model is split, a GroupLead or a GroupFollower if there are host groups, otherwise a
/// Worker. `launch` counts its hosts' starts of it, from 1.
std::unique_ptr<ProtocolRole> make_participant(const std::shared_ptr<const Job>& job, WorkerId id,
                                               std::uint32_t launch = 1);

class Participant : public ProtocolRole {
 public:
  ~Participant() override;
  void on_start(Outbox& out) override;
  void on_timer(TimerToken token, Outbox& out) override;
  void on_link(Address peer, Outbox& out) override;

 protected:
  enum class State : std::uint8_t { joining, running, idle, stopped };

  Participant(std::shared_ptr<const Job> job, WorkerId id, std::uint32_t launch);

  virtual void started(const msg::Start& start, Outbox& out) = 0;
  /// Takes all steps that are possible now.
  virtual void advance(Outbox& out) = 0;
  /// Discards the state of the session that is over.
  virtual void forget() = 0;
  /// The clock below which all shards of this participant have acknowledged all iterations.
  virtual Clock acknowledged() const = 0;
  /// The same for its whole pipeline, as far as known.
  virtual Clock trained() const { return acknowledged(); }
  /// Handles a message that only some participants accept; false if this one does not.
  virtual bool take(Address /*from*/, Envelope& /*envelope*/, Outbox&) { return false; }
  /// Calls handle(message) if the message is one of these kinds, of another worker of this member
  /// (`is_known`) and of the present session; false if it is another kind. `what`: of an unknown
  /// sender, for the refusal.
  template <class... Messages, class Handle>
  bool take_any_of(Address from, Envelope& envelope, bool is_known, std::string_view what,
                   Handle handle, Outbox& out);
  /// Whether a message of another worker of this member is of the present session. Keeps a message
  /// of a later session until that session begins, and ignores one of an earlier session.
  template <class T>
  bool is_current(Address from, Session session, T& message, Outbox& out);

  /// Requests samples beyond `started`, the next iteration to start, if they are needed soon.
  void lease_beyond(Iteration started, Outbox& out);
  /// Reports that the participant is idle. `barrier`: the number of the barrier at which it waits;
  /// 0: none.
  void say_idle(Outbox& out, std::uint64_t barrier = 0);
  void say_stopped(Outbox& out);
  /// Reports a loss that is not finite. Its iteration is not pushed.
  void say_diverged(msg::Diverged diverged, Outbox& out);
  /// Ends the session, and joins again.
  void rejoin(Outbox& out);
  /// The link to another worker of this member works again: messages may be lost, so that the
  /// session of the member ends.
  void rejoin_after_link(Outbox& out);
  /// Adds the results of computed samples to the report.
  void count_result(const PassResult& result, std::int64_t samples);
  /// Reports to the monitor if `now`, or if the latest report is old enough.
  void report(bool now, Outbox& out);
  /// Throws if the plan has this fault in this iteration.
  template <class Kind>
  void fail_if_planned(Iteration iteration, std::string_view what) const;
  template <class T>
  void send(Address to, T body, Outbox& out) {
    out.send(to, encode({.session = session_, .body = std::move(body)}));
  }

  std::shared_ptr<const Job> job_;
  WorkerId id_;
  JoinNonce nonce_;
  Session session_{0};  // that of the last Start
  State state_ = State::joining;
  std::uint64_t barrier_ = 0;  // at which it waits while it is idle; 0: none
  bool stopping_ = false;
  std::optional<msg::Diverged> diverged_;  // until the Stop that follows
  std::shared_ptr<ComputeEngine> engine_;  // null if the job counts costs, or its user computes
  ParameterClient parameters_;
  LeaseQueue leases_;
  msg::WorkerReport report_;
  msg::WantLease spent_;  // collects times and counts until it is sent

 private:
  void on_envelope(Address from, Envelope& envelope, Outbox& out) final;
  void handle(Session session, const msg::Start& start, Outbox& out);
  void handle(const msg::Stop& stop, Outbox& out);
  void handle(const msg::Lease& lease, Outbox& out);
  void handle(const msg::NoData& no_data, Outbox& out);
  void handle(Address from, msg::Weights& weights, Outbox& out);
  void handle(Address from, const msg::Pushed& pushed, Outbox& out);
  void handle(Address from, Session session, const msg::Refused& refused, Outbox& out);
  /// Sends Join, and repeats it until a Start comes.
  void join(Outbox& out);
  void end_session();
  /// Sends the pending WantLease, with the times and counts since the last one.
  void want_lease(Outbox& out);

  std::shared_ptr<ComputeEngine> make_engine() const;

  Instant reported_at_;
  std::vector<std::pair<Address, Envelope>> early_;  // of a later session
};

template <class... Messages, class Handle>
bool Participant::take_any_of(Address from, Envelope& envelope, bool is_known,
                              std::string_view what, Handle handle, Outbox& out) {
  const auto take_as = [&]<class T>(T* message) {
    if (!message) return false;
    if (!is_known)
      refuse_malformed(from, message->iteration,
                       concat("a ", name_of(envelope.body), " of ", from, ", which is ", what),
                       out);
    else if (is_current(from, envelope.session, *message, out))
      handle(*message);
    return true;
  };
  return (take_as(std::get_if<Messages>(&envelope.body)) || ...);
}

template <class T>
bool Participant::is_current(Address from, Session session, T& message, Outbox& out) {
  if (session == session_ || (session < session_ && planted(Mutant::stale_session_taken)))
    return state_ == State::running;
  if (session < session_) return false;
  // The Start is on its way here, and another worker can send only a few messages before it
  // arrives.
  if (early_.size() < limits::kMaxEarlyMessages)
    early_.emplace_back(from, Envelope{.session = session, .body = std::move(message)});
  else
    refuse_malformed(from, message.iteration, "too many messages of a session that does not begin",
                     out);
  return false;
}

template <class Kind>
void Participant::fail_if_planned(Iteration iteration, std::string_view what) const {
  if (launch_of(nonce_) > 1) return;  // a fault happens once
  for (std::size_t i = 0; i < job_->faults.size(); ++i) {
    const plan::Fault& fault = job_->faults[i];
    const auto* at = std::get_if<std::int64_t>(&fault.at);
    if (fault.actor != address_of(id_) || !std::holds_alternative<Kind>(fault.kind) || !at ||
        iteration.value() < *at)
      continue;
    job_->disturbances->fired(i);
    throw PlannedFault(
        concat("fault of the plan: ", address_of(id_), ' ', what, " in iteration ", iteration));
  }
}

}  // namespace leeway
