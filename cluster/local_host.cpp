#include "cluster/local_host.hpp"

#include <thread>

#include "cluster/role_actor.hpp"
#include "core/check.hpp"

namespace leeway {
namespace {

struct Configuration : caf::actor_system_config {
  explicit Configuration(unsigned threads) {
    // Work stealing polls with sleeps of tens of microseconds; a shared queue hands over at once.
    set("scheduler.policy", caf::atom("sharing"));
    set("scheduler.max-threads", static_cast<std::size_t>(threads));
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
  Configuration configuration;
  caf::actor_system system;
  std::shared_ptr<cluster::Neighbourhood> hood;
};

LocalHost::LocalHost(Options options) : state_(std::make_unique<State>(std::move(options))) {}

LocalHost::~LocalHost() {
  for (const auto& [address, actor] : state_->hood->actors)
    caf::anon_send_exit(actor, caf::exit_reason::kill);
  state_->system.await_all_actors_done();
  cluster::taking_over(state_->hood.get());
  state_->hood->actors.clear();
  state_->hood->addresses.clear();
}

void LocalHost::add(Address address, std::shared_ptr<Role> role) {
  auto& hood = *state_->hood;
  LW_CHECK(!hood.actors.contains(address), address);
  const caf::actor actor =
      address.kind == RoleKind::worker
          ? state_->system.spawn<cluster::RoleActor, caf::detached>(state_->hood, address,
                                                                    std::move(role), true)
          : state_->system.spawn<cluster::RoleActor>(state_->hood, address, std::move(role), false);
  hood.actors[address] = actor;
  hood.addresses[actor->address()] = address;
}

void LocalHost::start() {
  state_->hood->began = std::chrono::steady_clock::now();
  for (const auto& [address, actor] : state_->hood->actors) cluster::mail(actor, cluster::Begin{});
}

void LocalHost::send(Address to, Message message) {
  const auto found = state_->hood->actors.find(to);
  if (found != state_->hood->actors.end())
    cluster::mail(found->second, cluster::Delivery{kHost, std::move(message)});
}

Instant LocalHost::now() const {
  return state_->hood->now();
}

std::string LocalHost::end_reason(Address address) const {
  std::lock_guard lock(state_->hood->mutex);
  const auto found = state_->hood->end_reasons.find(address);
  return found == state_->hood->end_reasons.end() ? std::string() : found->second;
}

}  // namespace leeway
