#include "sim/cluster/launches.hpp"

#include "core/text.hpp"

namespace leeway::sim {
namespace {

/// Others live where they began.
bool is_launched(Address actor) {
  return actor.kind == RoleKind::worker || actor.kind == RoleKind::shard ||
         actor.kind == RoleKind::standby;
}

}  // namespace

class Launches::Here final : public Presence {
 public:
  Here(Launches& all, ProcessId process) : all_(all), process_(process) {}

  bool is_present(Address actor) const override {
    if (all_.closed_) return false;
    if (!is_launched(actor)) return true;
    const auto found = all_.launches_.find(actor);
    return found != all_.launches_.end() && found->second.process == process_ &&
           found->second.lives;
  }
  bool end(Address actor) override {
    if (!is_present(actor)) return false;
    if (is_launched(actor)) all_.launches_[actor].lives = false;
    return true;
  }
  bool begin(Address actor) override {
    if (all_.closed_) return false;
    if (!is_launched(actor)) return true;
    Launch& launch = all_.launches_[actor];
    if (launch.process == process_) launch.lives = true;
    return launch.lives;
  }
  bool record(Address actor, std::uint64_t number) override {
    std::uint64_t& last = all_.records_[actor];
    if (number <= last || !is_present(actor)) return false;
    last = number;
    return true;
  }

 private:
  Launches& all_;
  const ProcessId process_;
};

std::shared_ptr<Presence> Launches::at(ProcessId process) {
  return std::make_shared<Here>(*this, process);
}

void Launches::begin(Address actor, std::uint32_t number, ProcessId process, Instant now) {
  Launch& launch = launches_[actor];
  // A frozen process may carry out an order that has been replaced. All others ignore that launch.
  if (number < launch.number) return;
  if (number == launch.number)
    throw Violation("each launch of an actor happens once, on one node", {actor},
                    concat("launch ", number, " follows launch ", launch.number));
  if (launch.lives && launch.process == process) {
    // The host there ends the earlier actor first.
    launch.number = number;
    launch.begun = now;
    return;
  }
  // The earlier actor may go on where no order reaches it. From now on it does not count.
  if (launch.lives && !closed_) observers_->ended(now, actor);
  launch = {process, number, false, now};
}

}  // namespace leeway::sim
