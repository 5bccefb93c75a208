#include "sim/cluster/worker_launches.hpp"

#include "core/text.hpp"

namespace leeway::sim {

class WorkerLaunches::Here final : public Presence {
 public:
  Here(WorkerLaunches& all, ProcessId process) : all_(all), process_(process) {}

  bool is_present(Address actor) const override {
    if (all_.closed_) return false;
    if (actor.kind != RoleKind::worker) return true;
    const auto found = all_.launches_.find(WorkerId(actor.index));
    return found != all_.launches_.end() && found->second.process == process_ &&
           found->second.lives;
  }
  bool end(Address actor) override {
    if (!is_present(actor)) return false;
    if (actor.kind == RoleKind::worker) all_.launches_[WorkerId(actor.index)].lives = false;
    return true;
  }
  bool begin(Address actor) override {
    if (all_.closed_) return false;
    if (actor.kind != RoleKind::worker) return true;
    Launch& launch = all_.launches_[WorkerId(actor.index)];
    if (launch.process == process_) launch.lives = true;
    return launch.lives;
  }

 private:
  WorkerLaunches& all_;
  const ProcessId process_;
};

std::shared_ptr<Presence> WorkerLaunches::at(ProcessId process) {
  return std::make_shared<Here>(*this, process);
}

void WorkerLaunches::begin(WorkerId worker, std::uint32_t number, ProcessId process, Instant now) {
  Launch& launch = launches_[worker];
  if (number <= launch.number)
    throw Violation("each launch of a worker happens once, on one node", {address_of(worker)},
                    concat("launch ", number, " follows launch ", launch.number));
  launch.number = number;
  launch.begun = now;
  // The host there ends the earlier actor first.
  if (launch.lives && launch.process == process) return;
  // The earlier actor may go on where no order reaches it. From now on it does not count.
  if (launch.lives && !closed_) observers_->ended(now, address_of(worker));
  launch = {process, number, false, now};
}

}  // namespace leeway::sim
