#include "sim/cluster/process_network.hpp"

#include <algorithm>

#include "core/check.hpp"
#include "core/text.hpp"
#include "sim/chance.hpp"

namespace leeway::sim {
namespace {

constexpr std::uint64_t kLaneStream = 0x6c616e65;
/// Of the silence limit, between two attempts to call a process that does not answer.
constexpr double kCallAgain = 0.05;
/// Of the silence limits until a broken connection is given up.
constexpr double kGiveUp = 5;
/// Of the silence limit: the other processes notice the end of a killed one up to this much later.
constexpr double kNoticeEnd = 0.9;

}  // namespace

ProcessNetwork::ProcessNetwork(Timeline& timeline, const World& world, std::uint64_t seed,
                               Duration silence)
    : timeline_(timeline),
      network_(world, seed),
      rng_(Rng::stream(seed, kLaneStream)),
      world_(world),
      silence_(silence) {}

ProcessId ProcessNetwork::add(std::string name, Process& process) {
  const auto same = std::ranges::find(processes_, name, &Listening::name);
  const auto machine = static_cast<ProcessId>(same - processes_.begin());
  processes_.push_back({.name = std::move(name), .machine = machine, .process = &process});
  network_.add_node();
  return static_cast<ProcessId>(processes_.size() - 1);
}

void ProcessNetwork::end(ProcessId process, bool killed) {
  processes_[process].ended = true;
  processes_[process].freezes = 0;
  for (const auto& link : links_)
    for (std::size_t side = 0; side < 2; ++side) {
      End& end = link->ends[side];
      if (end.process != process || !end.open) continue;
      end.open = false;
      if (killed && rng_.one_in(2)) {
        const Duration flight = std::max(Duration{}, end.latest - timeline_.now());
        end.lost_from = timeline_.now() + scaled(flight, rng_.uniform());
        end.waiting.resize(rng_.below(end.waiting.size() + 1));
      }
      const auto notice = [this, end = Place{link.get(), side}] {
        put(end, {.end = "its process has ended"});
      };
      const bool is_late = killed && rng_.one_in(2);
      timeline_.after(is_late ? scaled(silence_, kNoticeEnd * rng_.uniform()) : Duration{}, notice);
    }
  // A frozen process can be killed, too.
  for (ProcessId other = 0; other < processes_.size(); ++other) update(process, other);
}

// ---- connections ----

bool ProcessNetwork::is_blocked(ProcessId from, ProcessId to) const {
  const auto found = faults_.find(machines(from, to));
  return (found != faults_.end() && found->second.blocks > 0) || is_cut(from, to);
}

bool ProcessNetwork::is_cut(ProcessId a, ProcessId b) const {
  const auto found = faults_.find(unordered(a, b));
  return found != faults_.end() && found->second.cuts > 0;
}

bool ProcessNetwork::can_call(ProcessId from, ProcessId to) const {
  return !is_blocked(from, to) && !is_blocked(to, from) && processes_[to].freezes == 0;
}

void ProcessNetwork::connect(ProcessId from, const std::string& name, Duration limit,
                             std::function<void(const Expected<PeerId>&)> then) {
  const Instant until = timeline_.now() + limit;
  timeline_.after(world_.latency + world_.latency,
                  [=, this] { try_to_connect(from, name, until, then); });
}

void ProcessNetwork::try_to_connect(ProcessId from, const std::string& name, Instant until,
                                    std::function<void(const Expected<PeerId>&)> then) {
  if (processes_[from].ended) return;
  const Listening* called = nullptr;
  for (const Listening& one : processes_)
    if (one.name == name && !one.ended) called = &one;
  if (!called) return then(Error{concat(name, ": no process listens there")});
  const auto to = static_cast<ProcessId>(called - processes_.data());
  LW_CHECK(to != from, name, "calls itself");
  if (can_call(from, to)) return then(link_of(from, to));
  if (timeline_.now() >= until) return then(Error{concat(name, ": no answer in time")});
  timeline_.after(scaled(silence_, kCallAgain),
                  [=, this] { try_to_connect(from, name, until, then); });
}

PeerId ProcessNetwork::link_of(ProcessId from, ProcessId to) {
  for (const auto& link : links_)
    for (std::size_t side = 0; side < 2; ++side) {
      const Place place{link.get(), side};
      if (place.end().process == from && place.other().process == to && place.end().open &&
          place.other().open)
        return place.end().peer;
    }
  links_.push_back(std::make_unique<Link>());
  Link* const link = links_.back().get();
  for (std::size_t side = 0; side < 2; ++side) {
    link->ends[side].process = side == 0 ? from : to;
    link->ends[side].peer = PeerId(static_cast<std::uint32_t>(places_.size()));
    places_.push_back({link, side});
  }
  for (std::size_t side = 0; side < 2; ++side) update({link, side});
  return link->ends[0].peer;
}

bool ProcessNetwork::is_connected(PeerId peer) const {
  const Place place = place_of(peer);
  return place.end().open && !is_cut(place.end().process, place.other().process);
}

void ProcessNetwork::leave(PeerId peer) {
  const Place place = place_of(peer);
  if (!std::exchange(place.end().open, false)) return;
  put(place, {.end = "it has left"});
}

void ProcessNetwork::close(Place place, const std::string& reason) {
  End& end = place.end();
  if (!std::exchange(end.open, false)) return;
  processes_[end.process].process->on_gone(end.peer, reason);
}

// ---- messages ----

void ProcessNetwork::send(PeerId peer, Address from, Address to, Message message) {
  const Place place = place_of(peer);
  if (place.end().open) put(place, {from, to, std::move(message), {}});
}

void ProcessNetwork::put(Place from, Item item) {
  if (is_blocked(from.end().process, from.other().process))
    from.end().waiting.push_back(std::move(item));
  else
    transmit(from, std::move(item));
}

void ProcessNetwork::transmit(Place from, Item item) {
  End& end = from.end();
  const ProcessId sender = end.process, receiver = from.other().process;
  // A lane for tensors, whose messages take longer.
  const std::uint32_t lane = item.message.blobs().empty() ? 0 : 1;
  const Duration extra =
      lane == 0 ? Duration{} : scaled(world_.latency, world_.jitter * rng_.uniform());
  Instant at = network_.arrival(2 * sender + lane, sender, 2 * receiver + lane, receiver,
                                bytes_of(item.message), timeline_.now(), extra);
  if (!item.end.empty()) {
    at = std::max(at, end.latest + nanoseconds(1));
  } else {
    Instant& last = end.last[{item.from, item.to}];
    last = at = std::max(at, last + nanoseconds(1));
  }
  end.latest = std::max(end.latest, at);
  timeline_.at(at, [this, from, item = std::move(item)] { arrive(from, item); });
}

void ProcessNetwork::arrive(Place from, const Item& item) {
  const End& to = from.other();
  if (!to.open || processes_[to.process].ended) return;
  if (!item.end.empty()) return close(from.opposite(), item.end);
  const auto& lost_from = from.end().lost_from;
  if (lost_from && timeline_.now() > *lost_from) return;
  processes_[to.process].process->on_message(to.peer, item.from, item.to, item.message);
}

// ---- signs of life ----

void ProcessNetwork::update(ProcessId from, ProcessId to) {
  for (const auto& link : links_)
    for (std::size_t side = 0; side < 2; ++side)
      if (machines(link->ends[side].process, link->ends[1 - side].process) == machines(from, to))
        update({link.get(), side});
}

void ProcessNetwork::update(Place from) {
  End& end = from.end();
  const End& other = from.other();
  const bool blocked = is_blocked(end.process, other.process);
  if (blocked || processes_[end.process].freezes > 0) {
    if (end.quiet > 0) return;
    end.quiet = ++last_number_;
    return expect_sign(from);
  }
  end.quiet = 0;
  if (std::exchange(end.silent, false) && other.open)
    timeline_.after(world_.latency, [this, from, quiet = last_number_] {
      const End& there = from.other();
      if (from.end().quiet == 0 && there.open && !processes_[there.process].ended)
        processes_[there.process].process->on_heard(there.peer);
      else if (from.end().quiet != 0)
        from.end().silent = true;  // silent once more, before it was heard
    });
  for (Item& item : std::exchange(end.waiting, {})) transmit(from, std::move(item));
}

void ProcessNetwork::expect_sign(Place from) {
  timeline_.after(silence_, [this, from, quiet = from.end().quiet] {
    End& end = from.end();
    const End& other = from.other();
    if (quiet == 0 || end.quiet != quiet || end.silent || !other.open) return;
    // A frozen process notices nothing. The pause does not count when it continues.
    const Listening& listening = processes_[other.process];
    if (listening.ended || listening.freezes > 0) return;
    end.silent = true;
    listening.process->on_silent(other.peer);
  });
}

void ProcessNetwork::freeze(ProcessId process) {
  ++processes_[process].freezes;
  for (ProcessId other = 0; other < processes_.size(); ++other) update(process, other);
}

void ProcessNetwork::thaw(ProcessId process) {
  LW_CHECK(processes_[process].freezes > 0, process);
  --processes_[process].freezes;
  for (ProcessId other = 0; other < processes_.size(); ++other) update(process, other);
  for (const auto& link : links_)
    for (std::size_t side = 0; side < 2; ++side)
      if (link->ends[1 - side].process == process && link->ends[side].quiet > 0)
        expect_sign({link.get(), side});
}

void ProcessNetwork::block(ProcessId from, ProcessId to) {
  ++faults_[machines(from, to)].blocks;
  update(from, to);
}

void ProcessNetwork::unblock(ProcessId from, ProcessId to) {
  auto& blocks = faults_[machines(from, to)].blocks;
  LW_CHECK(blocks > 0, from, to);
  --blocks;
  update(from, to);
}

void ProcessNetwork::cut(ProcessId a, ProcessId b) {
  Faults& faults = faults_[unordered(a, b)];
  if (faults.cuts++ == 0) {
    faults.cut = ++last_number_;
    for (const auto& link : links_)
      for (std::size_t side = 0; side < 2; ++side) {
        const Place end{link.get(), side};
        if (unordered(end.end().process, end.other().process) != unordered(a, b)) continue;
        const Duration limit = scaled(silence_, kGiveUp + rng_.uniform());
        timeline_.after(limit, [this, end, cut = faults.cut] { give_up(end, cut); });
      }
  }
  update(a, b);
  update(b, a);
}

void ProcessNetwork::mend(ProcessId a, ProcessId b) {
  Faults& faults = faults_[unordered(a, b)];
  LW_CHECK(faults.cuts > 0, a, b);
  if (--faults.cuts == 0) faults.cut = 0;
  update(a, b);
  update(b, a);
}

void ProcessNetwork::give_up(Place place, std::uint64_t cut) {
  const End& end = place.end();
  const auto found = faults_.find(unordered(end.process, place.other().process));
  const Listening& here = processes_[end.process];
  if (found->second.cut != cut || here.ended || !end.open) return;
  if (here.freezes > 0) {
    timeline_.after(silence_, [this, place, cut] { give_up(place, cut); });
    return;
  }
  close(place, concat("it could not be reached for ", kGiveUp * silence_.seconds(), " s"));
  put(place, {.end = "it has given up the connection"});
}

}  // namespace leeway::sim
