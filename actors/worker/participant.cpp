#include "actors/worker/participant.hpp"

#include <utility>

#include "actors/group/group_follower.hpp"
#include "actors/group/group_lead.hpp"
#include "actors/stage/stage.hpp"
#include "actors/worker/user_worker.hpp"
#include "actors/worker/worker.hpp"
#include "core/text.hpp"
#include "policies/balance/balance.hpp"

namespace leeway {
namespace {

constexpr Duration kWorkerReportInterval = milliseconds(50);
constexpr Duration kJoinInterval = milliseconds(500);

}  // namespace

std::unique_ptr<ProtocolRole> make_participant(const std::shared_ptr<const Job>& job, WorkerId id,
                                               std::uint32_t launch) {
  if (job->user_loops) return std::make_unique<UserWorker>(job, id, launch);
  if (job->stages->piped()) return std::make_unique<Stage>(job, id, launch);
  if (job->stages->grouped() && job->stages->lead_of(id) == id)
    return std::make_unique<GroupLead>(job, id, launch);
  if (job->stages->grouped()) return std::make_unique<GroupFollower>(job, id, launch);
  return std::make_unique<Worker>(job, id, launch);
}

Participant::Participant(std::shared_ptr<const Job> job, WorkerId id, std::uint32_t launch)
    : job_(std::move(job)),
      id_(id),
      nonce_(first_nonce(launch)),
      engine_(make_engine()),
      parameters_(job_, id) {}

Participant::~Participant() {
  job_->unreported->add(id_, report_);
}

std::shared_ptr<ComputeEngine> Participant::make_engine() const {
  if (job_->cost_only || job_->user_loops) return nullptr;
  return std::make_shared<ComputeEngine>(job_, id_);
}

void Participant::on_start(Outbox& out) {
  join(out);
}

void Participant::join(Outbox& out) {
  send(kScheduler, msg::Join{nonce_}, out);
  out.after(kJoinInterval, nonce_.value());
}

void Participant::on_timer(TimerToken token, Outbox& out) {
  if (token == nonce_.value() && state_ == State::joining && !stopping_) join(out);
}

void Participant::on_envelope(Address from, Envelope& envelope, Outbox& out) {
  auto& body = envelope.body;
  if (const auto* refused = std::get_if<msg::Refused>(&body))
    return handle(from, envelope.session, *refused, out);
  if (const auto* start = std::get_if<msg::Start>(&body); start && from == kScheduler)
    return handle(envelope.session, *start, out);
  if (const auto* stop = std::get_if<msg::Stop>(&body); stop && from == kScheduler)
    return handle(*stop, out);
  // A stage may receive messages of a session that it has yet to begin.
  if (from.kind != RoleKind::host && from.kind != RoleKind::worker && envelope.session != session_)
    return;
  if (auto* weights = std::get_if<msg::Weights>(&body)) {
    handle(from, *weights, out);
  } else if (auto* pushed = std::get_if<msg::Pushed>(&body)) {
    handle(from, *pushed, out);
  } else if (take(from, envelope, out)) {
    return;
  } else if (from != kScheduler) {
    refuse_malformed(from, {}, concat("a ", name_of(body), " from ", from, " is not for a worker"),
                     out);
  } else if (auto* lease = std::get_if<msg::Lease>(&body)) {
    handle(*lease, out);
  } else if (auto* no_data = std::get_if<msg::NoData>(&body)) {
    handle(*no_data, out);
  } else {
    refuse_malformed(from, {}, concat("a ", name_of(body), " is not for a worker"), out);
  }
}

// ---- membership ----

void Participant::handle(Session session, const msg::Start& start, Outbox& out) {
  if (start.nonce != nonce_ || session <= session_ || state_ == State::stopped) return;
  // The present session was evicted, and the scheduler has mistaken a repeated Join for a new one.
  if (state_ == State::running) end_session();
  session_ = session;
  state_ = State::running;
  barrier_ = 0;
  parameters_.begin(session_);
  leases_.begin(start.iteration);
  started(start, out);
  for (auto& [from, envelope] : std::exchange(early_, {})) take(from, envelope, out);
  advance(out);
}

void Participant::handle(const msg::Stop& stop, Outbox& out) {
  if (stop.nonce != nonce_) return;
  stopping_ = true;
  if (state_ == State::joining) say_stopped(out);
  advance(out);
}

void Participant::say_idle(Outbox& out, std::uint64_t barrier) {
  report(true, out);
  state_ = State::idle;
  barrier_ = barrier;
  send(kScheduler, msg::Idle{acknowledged(), barrier_}, out);
}

void Participant::say_stopped(Outbox& out) {
  if (state_ != State::joining) report(true, out);
  state_ = State::stopped;
  send(kScheduler, msg::Stopped{acknowledged(), nonce_}, out);
}

void Participant::say_diverged(msg::Diverged diverged, Outbox& out) {
  diverged_ = std::move(diverged);
  send(kScheduler, *diverged_, out);
}

void Participant::end_session() {
  parameters_.begin(session_);
  leases_.begin({});
  spent_ = {};
  diverged_.reset();
  forget();
  engine_ = make_engine();  // a work of the session can still use the old one
}

void Participant::rejoin(Outbox& out) {
  nonce_ = JoinNonce(nonce_.value() + 1);
  state_ = State::joining;
  end_session();
  join(out);
}

void Participant::rejoin_after_link(Outbox& out) {
  if (state_ == State::stopped) return;
  stopping_ = false;  // the scheduler repeats a Stop when the worker joins
  rejoin(out);
}

// ---- leases ----

void Participant::handle(const msg::Lease& lease, Outbox& out) {
  if (state_ != State::running || lease.first_iteration != leases_.next()) return;  // a repeat
  if (lease.end > job_->data.train->size() || lease.batch > largest_batch(job_->plan))
    return refuse_malformed(kScheduler, lease.first_iteration,
                            "lease: beyond the data, or a batch above what the plan allows", out);
  leases_.take_in(lease);
  advance(out);
}

void Participant::handle(const msg::NoData& no_data, Outbox& out) {
  if (state_ == State::running && leases_.take_in(no_data)) advance(out);
}

void Participant::lease_beyond(Iteration started, Outbox& out) {
  if (!leases_.wants(started)) return;
  leases_.ask();
  want_lease(out);
}

void Participant::want_lease(Outbox& out) {
  spent_.next = *leases_.asked();
  spent_.clock = trained();
  send(kScheduler, std::exchange(spent_, {}), out);
}

// ---- the data path ----

void Participant::handle(Address from, msg::Weights& weights, Outbox& out) {
  const auto taken = parameters_.take_in(from, weights);
  if (!taken) return refuse_malformed(from, weights.iteration, taken.error().text, out);
  if (*taken) advance(out);
}

void Participant::handle(Address from, const msg::Pushed& pushed, Outbox& out) {
  const auto all = parameters_.take_in(from, pushed);
  if (!all) return refuse_malformed(from, pushed.iteration, all.error().text, out);
  if (*all) advance(out);
}

// ---- refusals and broken links ----

void Participant::handle(Address from, Session session, const msg::Refused& refused, Outbox& out) {
  if (refused.reason == msg::Refused::Reason::unknown_worker) {
    const bool running = state_ == State::running, idle = state_ == State::idle;
    // The scheduler may also refuse a session whose Start was lost.
    const bool is_over = from == kScheduler ? session >= session_ && (running || idle)
                                            : session == session_ && running;
    if (is_over && !stopping_) rejoin(out);
    return;
  }
  if (refused.reason == msg::Refused::Reason::gap &&
      (session != session_ || state_ == State::joining ||
       parameters_.keeps_earlier(from, refused.iteration)))
    return;  // on_link() sends the lost messages again, and this one after them
  // Any other refusal is a defect of this worker, so it ends and is evicted.
  throw std::runtime_error(concat(from, " refused a message of ", address_of(id_), " as ",
                                  name_of(refused.reason), ": ", refused.text));
}

void Participant::on_link(Address peer, Outbox& out) {
  if (peer != kScheduler) return parameters_.on_link(peer, out);
  if (state_ == State::joining) send(kScheduler, msg::Join{nonce_}, out);
  if (leases_.asked() && !planted(Mutant::lease_not_asked_again)) want_lease(out);
  if (state_ == State::idle) send(kScheduler, msg::Idle{acknowledged(), barrier_}, out);
  if (state_ == State::stopped) send(kScheduler, msg::Stopped{acknowledged(), nonce_}, out);
  if (diverged_) send(kScheduler, *diverged_, out);
}

void Participant::count_result(const PassResult& result, std::int64_t samples) {
  report_.samples += static_cast<std::uint64_t>(samples);
  report_.correct += static_cast<std::uint64_t>(result.correct);
  report_.loss_sum += result.loss * static_cast<double>(samples);
}

void Participant::report(bool now, Outbox& out) {
  if (!now && out.now() - reported_at_ < kWorkerReportInterval) return;
  reported_at_ = out.now();
  send(kMonitor, report_, out);
  report_ = msg::WorkerReport{
      .clock = report_.clock, .epoch = report_.epoch, .memory_bytes = report_.memory_bytes};
}

}  // namespace leeway
