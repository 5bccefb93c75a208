#include "cluster/local_faults.hpp"

#include "messages/envelope.hpp"
#include "plan/fault_queries.hpp"

namespace leeway {
namespace {

/// A replica returns as a standby when the earlier standby has taken over; looks again after this.
constexpr Duration kLookAgain = milliseconds(10);

Duration of_seconds(double seconds) {
  return nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

bool is_ours(const plan::Fault& fault) {
  return std::holds_alternative<plan::Crash>(fault.kind) ||
         std::holds_alternative<plan::Joins>(fault.kind) ||
         std::holds_alternative<plan::Leaves>(fault.kind) ||
         std::holds_alternative<plan::Freeze>(fault.kind);
}

}  // namespace

LocalFaults::LocalFaults(const std::vector<Planned>& faults,
                         std::shared_ptr<Disturbances> disturbances, PendingOrders& orders,
                         OnReturn on_return)
    : disturbances_(std::move(disturbances)), orders_(orders), on_return_(std::move(on_return)) {
  for (const auto& planned : faults)
    if (is_ours(planned.fault)) faults_.emplace_back(planned);
}

void LocalFaults::start(LocalHost& host) {
  if (faults_.empty()) return;
  host_ = &host;
  for (const auto& waiting : faults_)
    if (const auto* seconds = std::get_if<double>(&waiting.fault.at))
      orders_.after(of_seconds(*seconds), [this, &waiting] { begin(waiting); });
  orders_.begin();
}

void LocalFaults::on_event(Address actor, const Event& event) {
  if (faults_.empty()) return;
  const auto* started = event.as<event::StepStarted>();
  if (!started) return;
  for (auto& waiting : faults_) {
    const auto* iteration = std::get_if<std::int64_t>(&waiting.fault.at);
    if (!iteration || waiting.fault.actor != actor || started->iteration.value() < *iteration ||
        waiting.begun.exchange(true))
      continue;
    orders_.after({}, [this, &waiting] { begin(waiting); });
  }
}

void LocalFaults::begin(const Waiting& waiting) {
  const plan::Fault& fault = waiting.fault;
  const Address actor = fault.actor;
  // A fault of an actor that has ended, or that has joined before, changes nothing.
  if (host_->lives(actor) != std::holds_alternative<plan::Joins>(fault.kind))
    disturbances_->fired(waiting.number);
  if (const auto* crash = std::get_if<plan::Crash>(&fault.kind)) {
    const bool lived = host_->lives(actor);
    host_->kill(actor, plan::reason_of(*crash));
    if (lived && crash->back > 0)
      orders_.after(of_seconds(crash->back), [this, actor] { return_actor(actor); });
  } else if (const auto* freeze = std::get_if<plan::Freeze>(&fault.kind)) {
    host_->freeze(actor, of_seconds(freeze->seconds));
  } else if (std::holds_alternative<plan::Leaves>(fault.kind)) {
    host_->send(kScheduler, encode({.body = msg::Leave{WorkerId(actor.index)}}));
  } else {
    return_actor(actor);
  }
}

void LocalFaults::return_actor(Address actor) {
  if (actor.kind == RoleKind::worker) {
    if (!host_->lives(actor)) on_return_(actor);
    return;
  }
  const Address standby = standby_of(ShardId(actor.index));
  if (!host_->lives(standby)) return on_return_(standby);
  orders_.after(kLookAgain, [this, actor] { return_actor(actor); });
}

}  // namespace leeway
