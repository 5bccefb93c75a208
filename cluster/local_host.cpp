#include "cluster/local_host.hpp"

#include <thread>

#include "cluster/role_actor.hpp"
#include "core/check.hpp"

namespace leeway {
namespace {

struct Configuration : cluster::CafConfig {
  explicit Configuration(unsigned threads) {
    // Work stealing polls with sleeps of tens of microseconds; a shared queue hands over at once.
    set_option("scheduler.policy", cluster::caf_word("sharing"));
    set_option("scheduler.max-threads", static_cast<std::size_t>(threads));
  }
};

unsigned threads_of(const LocalHost::Options& options) {
  return options.pool_threads > 0 ? options.pool_threads
                                  : std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

struct LocalHost::State {
  explicit State(Options options)
      : configuration(threads_of(options)),
        system(configuration),
        hood(std::make_shared<cluster::Neighbourhood>()) {
    hood->options = std::move(options);
  }
  /// Puts an actor under the address, in place of one that has ended.
  caf::actor spawn(Address address, std::shared_ptr<Role> role);

  Configuration configuration;
  caf::actor_system system;
  std::shared_ptr<cluster::Neighbourhood> hood;
};

LocalHost::LocalHost(Options options) : state_(std::make_unique<State>(std::move(options))) {}

LocalHost::~LocalHost() {
  auto& hood = *state_->hood;
  {
    std::lock_guard lock(hood.closing_mutex);
    hood.closing = true;
  }
  hood.closing_changed.notify_all();
  {
    std::shared_lock lock(hood.mutex);
    for (const auto& [address, actor] : hood.actors)
      caf::anon_send_exit(actor, caf::exit_reason::kill);
  }
  state_->system.await_all_actors_done();
  cluster::taking_over(state_->hood.get());
  // Nobody is there to look them up any more; the lock says so to the thread sanitizer. What they
  // held ends outside of it.
  decltype(hood.actors) actors;
  std::lock_guard lock(hood.mutex);
  actors.swap(hood.actors);
  hood.addresses.clear();
}

caf::actor LocalHost::State::spawn(Address address, std::shared_ptr<Role> role) {
  const caf::actor actor =
      address.kind == RoleKind::worker
          ? system.spawn<cluster::RoleActor, caf::detached>(hood, address, std::move(role), true)
          : system.spawn<cluster::RoleActor>(hood, address, std::move(role), false);
  std::lock_guard lock(hood->mutex);
  hood->actors[address] = actor;
  hood->addresses[actor->address()] = address;
  hood->end_reasons.erase(address);
  return actor;
}

void LocalHost::add(Address address, std::shared_ptr<Role> role) {
  LW_CHECK(!state_->hood->actors.contains(address), address);
  if (role) state_->spawn(address, std::move(role));
}

void LocalHost::start() {
  state_->hood->began = std::chrono::steady_clock::now();
  for (const auto& [address, actor] : state_->hood->actors) cluster::mail(actor, cluster::Begin{});
}

void LocalHost::send(Address to, Message message) {
  deliver(kHost, to, std::move(message));
}

void LocalHost::deliver(Address from, Address to, Message message) {
  state_->hood->send(from, to, std::move(message));
}

void LocalHost::tell_down(Address watcher, Address ended, const std::string& reason) {
  state_->hood->mail_to(watcher, cluster::Down{ended, reason});
}

void LocalHost::tell_link(Address actor, Address peer) {
  state_->hood->mail_to(actor, cluster::Linked{peer});
}

void LocalHost::kill(Address worker, const std::string& reason) {
  auto& hood = *state_->hood;
  std::lock_guard lock(hood.mutex);
  const auto found = hood.actors.find(worker);
  if (found == hood.actors.end() || hood.end_reasons.contains(worker)) return;
  hood.note_end(worker, reason);
  caf::anon_send_exit(found->second, caf::exit_reason::kill);
}

void LocalHost::restart(Address worker, std::shared_ptr<Role> role) {
  LW_CHECK(worker.kind == RoleKind::worker && !lives(worker), worker);
  cluster::mail(state_->spawn(worker, std::move(role)), cluster::Begin{});
}

void LocalHost::forget(Address worker, const std::string& reason) {
  LW_CHECK(worker.kind == RoleKind::worker, worker);
  kill(worker, reason);
  std::lock_guard lock(state_->hood->mutex);
  state_->hood->actors.erase(worker);
  state_->hood->end_reasons.erase(worker);
}

void LocalHost::freeze(Address worker, Duration time) {
  LW_CHECK(worker.kind == RoleKind::worker, worker);  // others share their threads
  state_->hood->mail_to(worker, cluster::Freeze{time});
}

bool LocalHost::lives(Address actor) const {
  std::shared_lock lock(state_->hood->mutex);
  return state_->hood->actors.contains(actor) && !state_->hood->end_reasons.contains(actor);
}

Instant LocalHost::now() const {
  return state_->hood->now();
}

std::string LocalHost::end_reason(Address address) const {
  std::shared_lock lock(state_->hood->mutex);
  const auto found = state_->hood->end_reasons.find(address);
  return found == state_->hood->end_reasons.end() ? std::string() : found->second;
}

}  // namespace leeway
