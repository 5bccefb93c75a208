#include "tests/support/test_host.hpp"

#include <algorithm>

#include "core/text.hpp"
#include "messages/event_queries.hpp"
#include "sim/words.hpp"

namespace leeway::test {

class TestHost::ActorOutbox final : public Outbox {
 public:
  ActorOutbox(TestHost& host, Address self, std::uint64_t seed)
      : host_(host), self_(self), rng_(seed) {}
  Instant now() const override { return host_.now_; }
  Rng& random() override { return rng_; }
  void send(Address to, Message message) override { host_.enqueue(self_, to, std::move(message)); }
  void after(Duration delay, TimerToken token) override {
    host_.timers_.insert({host_.now_ + delay, host_.next_timer_++, self_, token});
  }
  void compute(std::shared_ptr<Work> work) override {
    host_.actors_.at(self_).work.emplace_back(std::move(work), 0);
  }
  void watch(Address actor) override { host_.watchers_[actor].insert(self_); }
  void emit(const Event& event) override {
    host_.hash_ = mix64(host_.hash_ ^ hash_of(event));
    host_.observers_.event(host_.now_, self_, event);
  }

 private:
  TestHost& host_;
  Address self_;
  Rng rng_;
};

TestHost::TestHost(std::shared_ptr<const Job> job, std::uint64_t seed, FaultRates faults)
    : job_(std::move(job)), rng_(seed), faults_(faults) {
  add(kMonitor, std::make_unique<Monitor>(job_, std::vector<Audience*>{this}));
  add(kScheduler, std::make_unique<Scheduler>(job_));
  for (std::uint32_t i = 0; i < job_->plan.shards; ++i)
    add(address_of(ShardId(i)), std::make_unique<Shard>(job_, ShardId(i)));
  for (std::uint32_t i = 0; i < job_->plan.workers; ++i) {
    auto participant = make_participant(job_, WorkerId(i));
    participant->warm_up();
    add(address_of(WorkerId(i)), std::move(participant));
  }
}

TestHost::~TestHost() = default;

void TestHost::add(Address address, std::unique_ptr<Role> role) {
  auto& actor = actors_[address];
  actor.role = std::move(role);
  actor.outbox = std::make_unique<ActorOutbox>(*this, address, rng_.next());
}

const Shard& TestHost::shard(std::uint32_t index) const {
  return static_cast<const Shard&>(*actors_.at(address_of(ShardId(index))).role);
}

void TestHost::enqueue(Address from, Address to, Message message) {
  sim::Letter letter(from, to, std::move(message));
  observers_.sent(now_, letter);
  if (to != kMonitor && from != kMonitor) ++busy_actions_;
  if (actors_.contains(to)) channels_[{from, to}].push_back({std::move(letter), {}, {}});
}

template <class Handler>
void TestHost::guarded(Address address, Handler handler) {
  const auto found = actors_.find(address);
  if (found == actors_.end()) return;
  try {
    handler(*found->second.role, *found->second.outbox);
  } catch (const CheckFailed&) {
    throw;  // a bug in a role, or a violation found by a checker
  } catch (const std::exception& error) {
    kill(address);
  }
}

void TestHost::kill(Address actor) {
  if (actors_.erase(actor) == 0) return;
  observers_.ended(now_, actor);
  for (auto channel = channels_.begin(); channel != channels_.end();)
    channel = channel->first.second == actor ? channels_.erase(channel) : std::next(channel);
  std::erase_if(timers_, [&](const Timer& timer) { return timer.actor == actor; });
  for (const Address watcher : watchers_[actor])
    if (actors_.contains(watcher))
      channels_[{actor, watcher}].push_back({std::nullopt, actor, "killed"});
}

void TestHost::suspect(WorkerId worker) {
  channels_[{kHost, kScheduler}].push_back({std::nullopt, address_of(worker), "suspected"});
}

void TestHost::break_link(Address worker, Address peer) {
  // Messages sent while the link is restored survive, so either the first messages are lost or all.
  // Reports of an actor's end come from the host and are never lost.
  for (const auto& channel : {std::pair(worker, peer), std::pair(peer, worker)}) {
    const auto found = channels_.find(channel);
    if (found == channels_.end()) continue;
    auto& parcels = found->second;
    const auto reach = rng_.one_in(2) ? parcels.size() : rng_.below(parcels.size() + 1);
    const auto kept = parcels.begin() + static_cast<std::ptrdiff_t>(reach);
    parcels.erase(std::remove_if(parcels.begin(), kept,
                                 [](const Parcel& parcel) { return parcel.letter.has_value(); }),
                  kept);
  }
  guarded(worker, [&](Role& role, Outbox& out) { role.on_link(peer, out); });
  guarded(peer, [&](Role& role, Outbox& out) { role.on_link(worker, out); });
}

std::vector<WorkerId> TestHost::live_workers() const {
  std::vector<WorkerId> live;
  for (const auto& [address, actor] : actors_)
    if (address.kind == RoleKind::worker) live.push_back(WorkerId(address.index));
  return live;
}

Address TestHost::any_peer(WorkerId worker) {
  const auto neighbours = job_->stages->neighbours(worker);
  if (!neighbours.empty() && rng_.one_in(3))
    return address_of(neighbours[rng_.below(neighbours.size())]);
  if (rng_.one_in(4)) return kScheduler;
  return address_of(ShardId(static_cast<std::uint32_t>(rng_.below(job_->plan.shards))));
}

void TestHost::inject_faults() {
  const auto live = live_workers();
  if (live.empty()) return;
  const WorkerId worker = live[rng_.below(live.size())];
  if (faults_.kill_one_in && live.size() > faults_.workers_to_keep &&
      rng_.one_in(faults_.kill_one_in))
    return kill(address_of(worker));
  if (faults_.suspect_one_in && rng_.one_in(faults_.suspect_one_in)) suspect(worker);
  if (faults_.break_link_one_in && rng_.one_in(faults_.break_link_one_in))
    break_link(address_of(worker), any_peer(worker));
  if (faults_.garbage_one_in && rng_.one_in(faults_.garbage_one_in)) {
    std::vector<std::uint64_t> words(rng_.below(12));
    for (auto& word : words) word = rng_.one_in(2) ? rng_.next() : rng_.below(4);
    auto to = actors_.begin();
    std::advance(to, static_cast<std::ptrdiff_t>(rng_.below(actors_.size())));
    if (to->first.kind != RoleKind::worker)
      enqueue(address_of(worker), to->first, Message(std::move(words), {}));
  }
}

bool TestHost::act() {
  inject_faults();
  std::vector<std::pair<Address, Address>> ready;
  for (const auto& [channel, parcels] : channels_)
    if (!parcels.empty()) ready.push_back(channel);
  std::vector<Address> computing;
  for (const auto& [address, actor] : actors_)
    if (!actor.work.empty()) computing.push_back(address);
  const std::size_t choices = ready.size() + computing.size();
  if (choices == 0) return fire_timer();
  ++actions_;
  now_ = now_ + microseconds(1);
  const std::size_t choice = rng_.below(choices);
  if (choice < ready.size()) {
    deliver(ready[choice].first, ready[choice].second);
  } else {
    compute(computing[choice - ready.size()]);
  }
  return true;
}

void TestHost::deliver(Address from, Address to) {
  auto& channel = channels_.at({from, to});
  // Only a pull may overtake earlier messages.
  std::size_t chosen = 0;
  for (std::size_t i = 1; i < channel.size() && i < 4; ++i) {
    if (!channel[i].letter) break;
    if (channel[i].letter->as<msg::Pull>() && rng_.one_in(3)) chosen = i;
  }
  const Parcel parcel = std::move(channel[chosen]);
  channel.erase(channel.begin() + static_cast<std::ptrdiff_t>(chosen));
  hash_ = mix64(hash_ ^ (from.index * 31 + to.index + static_cast<std::uint64_t>(to.kind) * 1009));
  if (!parcel.letter)
    return guarded(to,
                   [&](Role& role, Outbox& out) { role.on_down(parcel.down, parcel.reason, out); });
  observers_.delivered(now_, *parcel.letter);
  guarded(to,
          [&](Role& role, Outbox& out) { role.on_message(from, parcel.letter->message(), out); });
}

void TestHost::compute(Address address) {
  auto& queue = actors_.at(address).work;
  const auto [work, part] = queue.front();
  queue.pop_front();
  // The parts of one work stay in order; other work of the same actor may run between them.
  if (part + 1 < work->parts()) queue.emplace_back(work, part + 1);
  guarded(address, [&, work = work, part = part](Role& role, Outbox& out) {
    work->run(part);
    role.on_part(*work, part, out);
  });
}

bool TestHost::fire_timer() {
  if (timers_.empty()) return false;
  const Timer timer = *timers_.begin();
  timers_.erase(timers_.begin());
  now_ = std::max(now_, timer.at);
  guarded(timer.actor, [&](Role& role, Outbox& out) { role.on_timer(timer.token, out); });
  return true;
}

bool TestHost::run_some(int actions) {
  if (actions_ == 0)
    for (auto& [address, actor] : actors_) actor.role->on_start(*actor.outbox);
  for (int i = 0; i < actions && !totals_; ++i) act();
  return !totals_;
}

RunTotals TestHost::run() {
  constexpr int kMaxIdleActions = 5000;  // actions that only report to the monitor
  std::uint64_t busy = 0;
  int idle = 0;
  while (run_some(1)) {
    idle = busy == busy_actions_ ? idle + 1 : 0;
    busy = busy_actions_;
    LW_CHECK(idle < kMaxIdleActions, "deadlock", describe_waits());
  }
  observers_.run_ended(*totals_);
  return *totals_;
}

std::string TestHost::describe_waits() const {
  std::map<Address, const Role*> roles;
  for (const auto& [address, actor] : actors_) roles[address] = actor.role.get();
  return sim::who_waits(roles);
}

}  // namespace leeway::test
