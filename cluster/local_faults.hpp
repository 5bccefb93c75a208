#pragma once
// LocalFaults: causes a plan's faults in the actors of this process, each at its time or
// iteration.
#include <atomic>
#include <deque>
#include <functional>
#include <vector>

#include "cluster/local_host.hpp"
#include "cluster/pending_orders.hpp"

namespace leeway {

class LocalFaults {
 public:
  /// A worker or a standby is to be launched again.
  using OnReturn = std::function<void(Address)>;

  struct Planned {
    std::size_t number = 0;  // in the plan
    plan::Fault fault;
  };

  /// Causes the faults crash, joins, leaves and freeze, on the thread of the orders. The worker
  /// itself causes throws and killed. `disturbances` counts those that have begun.
  LocalFaults(const std::vector<Planned>& faults, std::shared_ptr<Disturbances> disturbances,
              PendingOrders& orders, OnReturn on_return);

  /// Starts the time of the faults. The host outlives the orders' thread.
  void start(LocalHost& host);
  /// Takes every event, from many threads at once.
  void on_event(Address actor, const Event& event);

 private:
  struct Waiting {
    explicit Waiting(Planned planned) : number(planned.number), fault(std::move(planned.fault)) {}
    std::size_t number;
    plan::Fault fault;
    std::atomic<bool> begun{false};
  };
  void begin(const Waiting& waiting);
  void return_actor(Address actor);

  std::shared_ptr<Disturbances> disturbances_;
  PendingOrders& orders_;
  OnReturn on_return_;
  std::deque<Waiting> faults_;
  LocalHost* host_ = nullptr;
};

}  // namespace leeway
