#include "sim/cluster/worker_lives.hpp"

#include "core/text.hpp"

namespace leeway::sim {

class WorkerLives::Here final : public Presence {
 public:
  Here(WorkerLives& all, ProcessId process) : all_(all), process_(process) {}

  bool is_present(Address actor) const override {
    if (all_.closed_) return false;
    if (actor.kind != RoleKind::worker) return true;
    const auto found = all_.lives_.find(WorkerId(actor.index));
    return found != all_.lives_.end() && found->second.process == process_ && found->second.lives;
  }
  bool end(Address actor) override {
    if (!is_present(actor)) return false;
    if (actor.kind == RoleKind::worker) all_.lives_[WorkerId(actor.index)].lives = false;
    return true;
  }
  bool begin(Address actor) override {
    if (all_.closed_) return false;
    if (actor.kind != RoleKind::worker) return true;
    Life& life = all_.lives_[WorkerId(actor.index)];
    if (life.process == process_) life.lives = true;
    return life.lives;
  }

 private:
  WorkerLives& all_;
  const ProcessId process_;
};

std::shared_ptr<Presence> WorkerLives::at(ProcessId process) {
  return std::make_shared<Here>(*this, process);
}

void WorkerLives::begin(WorkerId worker, std::uint32_t number, ProcessId process, Instant now) {
  Life& life = lives_[worker];
  if (number <= life.number)
    throw Violation("each life of a worker begins once, on one node", {address_of(worker)},
                    concat("life ", number, " begins after life ", life.number));
  life.number = number;
  life.begun = now;
  // The host there ends the earlier life first.
  if (life.lives && life.process == process) return;
  // The earlier life may go on where no order reaches it. From now on it does not count.
  if (life.lives && !closed_) observers_->ended(now, address_of(worker));
  life = {process, number, false, now};
}

}  // namespace leeway::sim
