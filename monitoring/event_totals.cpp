#include "monitoring/event_totals.hpp"

#include <algorithm>

namespace leeway {

EventTotals::EventTotals(std::uint32_t workers, bool piped)
    : piped_(piped), started_(workers), work_(workers <= kMaxSingleWorkers ? workers : 1) {}

void EventTotals::add(Instant at, const Event& event) {
  if (const auto* answered = event.as<event::PullAnswered>()) {
    leads_.add(answered->iteration.value() - answered->min_clock.value());
  } else if (const auto* started = event.as<event::StepStarted>()) {
    if (has(started->worker)) begin(at, *started);
  } else if (const auto* finished = event.as<event::StepFinished>()) {
    if (has(finished->worker)) finish(at, *finished);
  } else if (const auto* gathered = event.as<event::GroupGathered>()) {
    if (has(gathered->worker))
      work_of(gathered->worker).wait_ns.fetch_add(gathered->waited.ns, std::memory_order_relaxed);
  } else if (const auto* computed = event.as<event::StageComputed>()) {
    if (!has(computed->worker)) return;
    Work& work = work_of(computed->worker);
    work.wait_ns.fetch_add(computed->waited.ns, std::memory_order_relaxed);
    work.compute_ns.fetch_add(computed->computed.ns, std::memory_order_relaxed);
  }
}

void EventTotals::begin(Instant at, const event::StepStarted& step) {
  Started& started = started_[step.worker.value()];
  started.iteration.store(step.iteration.value(), std::memory_order_relaxed);
  started.ready_ns.store(at.ns - step.waited.ns, std::memory_order_relaxed);
  started.begun_ns.store(at.ns, std::memory_order_relaxed);
  if (!piped_) work_of(step.worker).wait_ns.fetch_add(step.waited.ns, std::memory_order_relaxed);
}

void EventTotals::finish(Instant at, const event::StepFinished& step) {
  Started& started = started_[step.worker.value()];
  const bool is_newest =
      started.iteration.load(std::memory_order_relaxed) == step.iteration.value();
  if (!is_newest && !piped_) return;
  const std::int64_t last = started.finished_ns.exchange(at.ns, std::memory_order_relaxed);
  Work& work = work_of(step.worker);
  if (!piped_)
    work.compute_ns.fetch_add(at.ns - started.begun_ns.load(std::memory_order_relaxed),
                              std::memory_order_relaxed);
  // The iterations of a stage may overlap: one that is not the newest counts from the end of the
  // one before.
  const std::int64_t ready = started.ready_ns.load(std::memory_order_relaxed);
  const std::int64_t since = is_newest ? std::max(ready, last) : last;
  if (step.samples > 0 && (is_newest || last >= 0)) work.iterations.add(at.ns - since);
  if (is_newest) started.iteration.store(-1, std::memory_order_relaxed);  // it ends once
}

}  // namespace leeway
