#pragma once
// RoleActor: the one CAF actor that hosts any role.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <vector>

#include "cluster/compat.hpp"
#include "cluster/local_host.hpp"
#include "policies/straggler/straggler.hpp"

namespace leeway::cluster {

/// The state that all actors of a host share.
struct HostState {
  LocalHost::Options options;
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();

  /// Guards the next three. A worker that comes back is a new CAF actor, and a standby that takes
  /// over changes its address.
  mutable std::shared_mutex mutex;
  std::map<Address, caf::actor> actors;  // in their present launches
  std::map<caf::actor_addr, Address> addresses;
  std::map<Address, EndReason> end_reasons;  // of actors whose last launch is over

  /// The host ends: neither events nor messages leave its actors, as if the process were lost.
  /// Otherwise a standby elsewhere would assume that dropped events were reported.
  std::atomic<bool> is_quiet{false};
  std::mutex closing_mutex;
  std::condition_variable closing_changed;
  bool closing = false;  // ends all freezes

  /// False if `to` has never been here; then `message` is unchanged.
  template <class T>
  bool mail_to(Address to, T&& message) const {
    std::shared_lock lock(mutex);
    const auto found = actors.find(to);
    if (found == actors.end()) return false;
    mail(found->second, std::forward<T>(message));
    return true;
  }
  void send(Address from, Address to, Message message) const {
    if (is_quiet) return;
    Delivery delivery{from, std::move(message)};
    if (!mail_to(to, std::move(delivery)) && options.events)
      options.events->send_out(from, to, std::move(delivery.message));
  }
  /// Requires the lock of `mutex`.
  void note_end(Address address, const EndReason& reason) {
    end_reasons[address] = reason;
    if (options.events) options.events->on_end(address, reason);
  }

  Instant now() const {
    return {std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() -
                                                                 began)
                .count()};
  }
};

class RoleActor final : public WatchingActor, private Outbox {
 public:
  RoleActor(caf::actor_config& config, std::shared_ptr<HostState> host, Address address,
            std::shared_ptr<Role> role, bool own_thread);

 private:
  caf::behavior make_behavior() override;
  void on_exit() override { handing_over(host_.get()); }
  void on_end_of(const caf::actor_addr& actor) override;

  // Outbox.
  Instant now() const override { return host_->now(); }
  Rng& random() override { return random_; }
  void send(Address to, Message message) override;
  void after(Duration delay, TimerToken token) override;
  void compute(std::shared_ptr<Work> work) override;
  void watch(Address actor) override;
  void take_over(Address address) override;
  void emit(const Event& event) override;
  void emit_numbered(std::uint64_t number, const Event& event) override;

  /// Runs a handler of the role, then the small work that it asked for. An exception ends the
  /// actor.
  template <class Handler>
  void guarded(Handler handler);
  void run_part(const RunPart& job);
  /// Runs a part on another thread: of the pool, or of its own if it `blocks`.
  void run_beside(std::shared_ptr<Work> work, int part, bool blocks);
  void part_done(const PartDone& finished);
  void linked(Address peer);
  void end(const std::string& reason);
  void freeze(Duration time);

  std::shared_ptr<HostState> host_;
  Address address_;
  std::shared_ptr<Role> role_;
  bool own_thread_;
  Rng random_;
  StragglerModel straggler_;
  Slowdown slow_down_;  // of the work under way
  std::vector<std::shared_ptr<Work>> small_work_;
  std::set<Address> watching_;
  std::set<caf::actor_addr> watched_;  // the launches of actors here
};

}  // namespace leeway::cluster
