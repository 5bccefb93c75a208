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
        host(std::make_shared<cluster::HostState>()) {
    host->options = std::move(options);
  }
  /// Puts an actor under the address, in place of one that has ended.
  caf::actor spawn(Address address, std::shared_ptr<Role> role);

  Configuration configuration;
  caf::actor_system system;
  std::shared_ptr<cluster::HostState> host;
};

LocalHost::LocalHost(Options options) : state_(std::make_unique<State>(std::move(options))) {}

LocalHost::~LocalHost() {
  auto& host = *state_->host;
  host.is_quiet = true;
  {
    std::lock_guard lock(host.closing_mutex);
    host.closing = true;
  }
  host.closing_changed.notify_all();
  {
    std::shared_lock lock(host.mutex);
    for (const auto& [address, actor] : host.actors)
      caf::anon_send_exit(actor, caf::exit_reason::kill);
  }
  state_->system.await_all_actors_done();
  cluster::taking_over(state_->host.get());
  // No actor is left to look them up; the lock informs the thread sanitizer. The actors end outside
  // of it.
  decltype(host.actors) actors;
  std::lock_guard lock(host.mutex);
  actors.swap(host.actors);
  host.addresses.clear();
}

caf::actor LocalHost::State::spawn(Address address, std::shared_ptr<Role> role) {
  const caf::actor actor =
      address.kind == RoleKind::worker
          ? system.spawn<cluster::RoleActor, caf::detached>(host, address, std::move(role), true)
          : system.spawn<cluster::RoleActor>(host, address, std::move(role), false);
  std::lock_guard lock(host->mutex);
  host->actors[address] = actor;
  host->addresses[actor->address()] = address;
  host->end_reasons.erase(address);
  return actor;
}

void LocalHost::add(Address address, std::shared_ptr<Role> role) {
  LW_CHECK(!state_->host->actors.contains(address), address);
  if (role) state_->spawn(address, std::move(role));
}

void LocalHost::start() {
  state_->host->began = std::chrono::steady_clock::now();
  for (const auto& [address, actor] : state_->host->actors) cluster::mail(actor, cluster::Begin{});
}

void LocalHost::deliver(Address from, Address to, Message message) {
  state_->host->send(from, to, std::move(message));
}

void LocalHost::report_down(Address watcher, Address ended, const EndReason& reason) {
  state_->host->mail_to(watcher, cluster::Down{ended, reason});
}

void LocalHost::kill(Address actor, const EndReason& reason) {
  auto& host = *state_->host;
  std::lock_guard lock(host.mutex);
  const auto found = host.actors.find(actor);
  if (found == host.actors.end() || host.end_reasons.contains(actor)) return;
  host.note_end(actor, reason);
  caf::anon_send_exit(found->second, caf::exit_reason::kill);
}

void LocalHost::restart(Address address, std::shared_ptr<Role> role) {
  LW_CHECK(!lives(address), address);
  cluster::mail(state_->spawn(address, std::move(role)), cluster::Begin{});
}

void LocalHost::forget(Address actor, const EndReason& reason) {
  kill(actor, reason);
  std::lock_guard lock(state_->host->mutex);
  state_->host->actors.erase(actor);
  state_->host->end_reasons.erase(actor);
}

void LocalHost::report_link(Address peer) {
  std::shared_lock lock(state_->host->mutex);
  for (const auto& [address, actor] : state_->host->actors)
    if (address != peer) cluster::mail(actor, cluster::Linked{peer});
}

void LocalHost::freeze(Address worker, Duration time) {
  LW_CHECK(worker.kind == RoleKind::worker, worker);  // others share their threads
  state_->host->mail_to(worker, cluster::Freeze{time});
}

bool LocalHost::lives(Address actor) const {
  std::shared_lock lock(state_->host->mutex);
  return state_->host->actors.contains(actor) && !state_->host->end_reasons.contains(actor);
}

Instant LocalHost::now() const {
  return state_->host->now();
}

std::optional<EndReason> LocalHost::end_reason(Address address) const {
  std::shared_lock lock(state_->host->mutex);
  const auto found = state_->host->end_reasons.find(address);
  if (found == state_->host->end_reasons.end()) return std::nullopt;
  return found->second;
}

}  // namespace leeway
