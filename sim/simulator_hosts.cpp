// A simulator as one host of several: messages, ends and links of actors on other hosts.
#include <utility>

#include "sim/simulator.hpp"

namespace leeway::sim {

void Simulator::deliver(Address from, Address to, Message message) {
  const ActorIndex receiver = find_here(to);
  if (receiver == AddressMap::kNone) {
    // It has moved to yet another host.
    if (options_.events) options_.events->send_out(from, to, std::move(message));
    return;
  }
  if (!actors_[receiver].role) return;
  schedule(now_, {.kind = Pending::Kind::message,
                  .actor = receiver,
                  .launch = actors_[receiver].launch,
                  .letter = Letter(from, to, std::move(message))});
}

void Simulator::report_down(Address watcher, Address ended, const EndReason& reason) {
  const ActorIndex receiver = find_here(watcher);
  if (receiver == AddressMap::kNone || !actors_[receiver].role) return;
  const std::uint64_t number = next_report_++;
  reports_[number] = reason;
  schedule(now_, {.kind = Pending::Kind::report,
                  .actor = receiver,
                  .launch = actors_[receiver].launch,
                  .other = ended,
                  .number = number});
}

void Simulator::forget(Address actor, const EndReason& reason) {
  const ActorIndex found = index_.find(actor);
  if (found == AddressMap::kNone) return;
  end(found, reason);
  actors_[found].elsewhere = true;
}

void Simulator::report_link(Address peer) {
  for (ActorIndex actor = 0; actor < actors_.size(); ++actor)
    if (actors_[actor].role && actors_[actor].address != peer) linked(actor, peer);
}

}  // namespace leeway::sim
