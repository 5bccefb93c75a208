#include "blame/activities.hpp"

#include <algorithm>
#include <iterator>

namespace leeway::blame {
namespace {

using Activity = CriticalPath::Activity;
using StageOperation = event::StageComputed::Operation;

Activity activity_of(Cause::Kind cause) {
  switch (cause) {
    case Cause::Kind::request:
      return Activity::request;
    case Cause::Kind::samples:
      return Activity::samples;
    case Cause::Kind::weights:
      return Activity::weights;
    case Cause::Kind::worker:
    case Cause::Kind::stage_before:
    case Cause::Kind::stage_after:
      return Activity::message;
    case Cause::Kind::other:
      return Activity::undivided;
  }
  return Activity::unknown;
}

/// The computation that gives the input of an operation; none if it is no computation. No
/// computation has the name for the backward of the last chunk.
std::optional<Activities::Name> input_of(Activities::Name operation) {
  if (operation.is_backward) {
    ++operation.chunk;
  } else {
    if (operation.chunk == 0) return std::nullopt;
    --operation.chunk;
  }
  return operation;
}

}  // namespace

void Activities::handle(const EventRecord& record) {
  const auto& [actor, now, event] = record;
  if (!begin_ || now < *begin_) begin_ = now;
  if (stages_ > 1) {
    if (const auto* operation = event.as<event::StageComputed>()) add(*operation, now);
    return;
  }
  waits_.handle(actor, now, event);
  if (const auto* start = event.as<event::StepStarted>())
    started_[start->worker] = {start->iteration, now};
  else if (const auto* step = event.as<event::StepFinished>())
    finished(*step, now);
  else if (const auto* evicted = event.as<event::Evicted>())
    started_.erase(evicted->worker);
}

void Activities::finish() {
  std::ranges::stable_sort(computed_, {}, &Computation::name);
}

const Activities::Segment* Activities::last_before(std::size_t worker, Instant time) const {
  const auto found = of_.find(worker);
  if (found == of_.end()) return nullptr;
  const auto end = std::ranges::lower_bound(found->second, time, {}, &Segment::begin);
  return end == found->second.begin() ? nullptr : &*std::prev(end);
}

const Activities::Computation* Activities::find(const Name& name, Instant time) const {
  const Computation* found = nullptr;
  for (const Computation& one : std::ranges::equal_range(computed_, name, {}, &Computation::name))
    if (one.begin <= time) found = &one;
  return found;
}

/// After the segments of the worker so far: a wait and the computation before it are measured by
/// different readings of the clock.
void Activities::add(std::size_t worker, Segment segment) {
  auto& all = of_[worker];
  if (!all.empty()) segment.begin = std::max(segment.begin, all.back().end);
  if (segment.end > segment.begin) all.push_back(segment);
}

void Activities::add(std::size_t worker, Segment segment, const Awaited& awaited) {
  segment.awaited = static_cast<std::uint32_t>(awaited_.size());
  awaited_.push_back(awaited);
  add(worker, segment);
}

void Activities::add(const Computation& computation, bool has_samples) {
  computed_.push_back(computation);
  if (has_samples && (!last_ || computation.end > last_->end)) last_ = computation;
  add(computation.worker, {computation.begin, computation.end, Activity::computing, has_samples});
}

void Activities::add(const Wait& wait) {
  const Segment segment{wait.begin, wait.end, activity_of(wait.cause.kind)};
  if (wait.cause.kind != Cause::Kind::worker) return add(wait.worker, segment);
  Awaited awaited{.worker = wait.cause.worker};
  if (wait.iteration)
    awaited.computation = {*wait.iteration, static_cast<std::uint32_t>(wait.cause.worker)};
  add(wait.worker, segment, awaited);
}

void Activities::finished(const event::StepFinished& step, Instant now) {
  const auto started = started_.find(step.worker);
  if (started == started_.end() || started->second.first != step.iteration) return;
  const auto worker = static_cast<std::uint32_t>(step.worker.value());
  add({{step.iteration, worker}, worker, started->second.second, now}, step.samples > 0);
  started_.erase(started);
}

void Activities::add(const event::StageComputed& operation, Instant now) {
  const auto stage = static_cast<std::uint32_t>(operation.worker.value());
  const Name name{operation.iteration, stage / static_cast<std::uint32_t>(stages_),
                  operation.micro_batch, operation.chunk,
                  operation.operation != StageOperation::forward};
  const Instant begin{now.ns - operation.computed.ns};
  const Segment wait{{begin.ns - operation.waited.ns}, begin, Activity::message};
  const Duration other = operation.waited - operation.waited_before - operation.waited_after;
  if (other < operation.waited)
    // A stage with a chunk that runs back gets inputs from either side.
    add(stage, wait, {input_of(name), std::nullopt, other});
  else
    add(stage, {wait.begin, wait.end, Activity::undivided});
  if (operation.operation == StageOperation::backward_weights)
    add(stage, {begin, now, Activity::computing, true});
  else
    add({name, stage, begin, now}, true);
}

}  // namespace leeway::blame
