// The scheduler's orders to a shard, and its reports.
#include <algorithm>
#include <utility>

#include "actors/shard/shard.hpp"
#include "core/text.hpp"

namespace leeway {

bool Shard::is_stale(View view, Outbox& out) {
  if (clocks_.enter_view(view)) return false;
  refuse(kScheduler, {}, msg::Refused::Reason::stale_view, {},
         concat("view ", view, " is older than ", clocks_.view()), out);
  return true;
}

void Shard::handle(const msg::Admit& admit, Outbox& out) {
  if (is_stale(admit.view, out)) return;
  if (share_of(admit.worker).buckets.empty())
    return refuse_malformed(kScheduler, admit.iteration,
                            concat("admit: worker ", admit.worker, " has no blocks here"), out);
  snapshots_.admitted(admit.worker, admit.iteration);
  const Clock at = clocks_.admit(admit.worker, admit.session, admit.iteration);
  const Iteration first(at.value());
  out.emit(event::Admitted{admit.worker, first});
  scheduler_.send(msg::Admitted{admit.worker, first, admit.view}, out);
  clocks_changed(admit.worker, out);
}

void Shard::handle(const msg::Raise& raise, Outbox& out) {
  if (is_stale(raise.view, out)) return;
  const auto* participant = clocks_.find(raise.worker);
  if (participant && participant->buckets_accepted > 0)
    return refuse_malformed(kScheduler, raise.iteration,
                            concat("raise: worker ", raise.worker, " has begun to push"), out);
  clocks_.raise(raise.worker, raise.iteration);
  if (participant) out.emit(event::ClockMoved{raise.worker, participant->clock});
  clocks_changed(raise.worker, out);
}

void Shard::handle(const msg::Fence& fence, Outbox& out) {
  if (is_stale(fence.view, out)) return;
  clocks_.fence(fence.worker);
  for (const auto& pull : gate_.withdraw(fence.worker))
    refuse(address_of(fence.worker), clocks_.find(fence.worker)->session,
           msg::Refused::Reason::unknown_worker, pull.pull.iteration, "evicted", out);
  ApplyPolicy::Progress progress;
  if (clocks_.find(fence.worker)) progress = apply_->fence(fence.worker);
  out.emit(event::Fenced{
      .worker = fence.worker, .clock = progress.clock, .partial = !progress.applied.empty()});
  scheduler_.send(msg::Fenced{fence.worker, progress.clock, std::move(progress.applied)}, out);
  if (const auto mover = apply_->release(fence.worker, out)) return clocks_changed(*mover, out);
  apply_->propose(out);
}

void Shard::handle(const msg::Remove& remove, Outbox& out) {
  if (is_stale(remove.view, out)) return;
  if (clocks_.find(remove.worker)) apply_->remove(remove.worker);
  clocks_.remove(remove.worker);
  gate_.withdraw(remove.worker);
  buckets_.forget(remove.worker, out);
  if (open_pulls_) open_pulls_->forget(remove.worker);
  out.emit(event::Removed{remove.worker});
  apply_->release(remove.worker, out);
  clocks_changed(remove.worker, out);
}

void Shard::handle(const msg::Bound& bound, Outbox& out) {
  const std::int64_t least = job_->consistency->bound();
  const std::int64_t largest = job_->consistency->largest_bound();
  if (least == largest || bound.staleness < least || bound.staleness > largest)
    return refuse_malformed(kScheduler, bound.from,
                            concat("bound: ", bound.staleness, " is not in the range of the plan"),
                            out);
  const Iteration from = gate_.announce(bound.from, bound.staleness);
  out.emit(event::BoundChanged{from, bound.staleness});
  release_pulls(std::nullopt, out);
}

void Shard::handle(const msg::CloseRound& order, Outbox& out) {
  if (is_stale(order.view, out)) return;
  if (!apply_->close(order))
    return refuse_malformed(kScheduler, order.round,
                            concat("close round: ", order.round, " is not open here"), out);
  if (const auto mover = apply_->apply_closed(out)) clocks_changed(*mover, out);
}

void Shard::handle(const msg::EndGrace&, Outbox& out) {
  apply_->end_grace(out);
}

// ---- the end, and reports ----

void Shard::handle(const msg::Finish&, Outbox& out) {
  if (finishing_) return;
  finishing_ = true;
  apply_rest(out);
  finish_if_drained(out);
}

void Shard::apply_rest(Outbox& out) {
  apply_->finish(out);
  if (norms_) norms_->end(out);
  run_scaled(out);
}

void Shard::finish_if_drained(Outbox& out) {
  if (!finishing_ || finished_ || !buckets_.is_idle()) return;
  finished_ = true;
  report(out);
  snapshots_.send_final(out);
}

void Shard::report(Outbox& out) {
  const std::uint64_t events = report_.pulls + report_.pushes + report_.refused + malformed();
  if (events == reported_events_ && report_.parked_now == gate_.parked() && !finished_) return;
  reported_events_ = events;
  report_.min_clock = clocks_.min_clock();
  report_.max_clock = clocks_.max_clock();
  report_.max_clock_gap = clocks_.max_clock_gap();
  report_.parked_now = static_cast<std::uint32_t>(gate_.parked());
  report_.malformed = malformed();
  report_.kept_bytes = std::max(report_.kept_bytes, buckets_.most_kept_bytes());
  report_.waits = gate_.waits().all();
  if (loss_scale_) {
    report_.loss_scale = loss_scale_->at(Iteration(clocks_.min_clock().value()));
    report_.skipped_updates = loss_scale_->skipped();
  }
  out.send(kMonitor, encode({.body = report_}));
}

void Shard::refuse(Address to, Session session, msg::Refused::Reason reason, Iteration iteration,
                   std::string text, Outbox& out) {
  ++report_.refused;
  out.emit(event::Refused{WorkerId(to.index), iteration, reason});
  out.send(to,
           encode({.session = session, .body = msg::Refused{reason, std::move(text), iteration}}));
}

}  // namespace leeway
