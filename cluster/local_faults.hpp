#pragma once
// LocalFaults: causes a plan's faults in the workers of this process, each at its time or
// iteration.
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "cluster/local_host.hpp"
#include "cluster/pending_orders.hpp"

namespace leeway {

class LocalFaults {
 public:
  /// Makes the role of a worker's life, counted from 1. Null: the life does not begin here.
  using MakeRole = std::function<std::shared_ptr<Role>(Address, std::uint32_t life)>;

  /// Causes the faults crash, joins, leaves and freeze, on the thread of the orders. The worker
  /// itself causes throws and killed.
  LocalFaults(const std::vector<plan::Fault>& faults, PendingOrders& orders, MakeRole make_role);

  /// Starts the time of the faults. The host outlives the orders' thread.
  void start(LocalHost& host);
  /// Takes every event, from many threads at once.
  void on_event(Address actor, const Event& event);

 private:
  struct Waiting {
    explicit Waiting(plan::Fault planned) : fault(std::move(planned)) {}
    plan::Fault fault;
    std::atomic<bool> begun{false};
  };
  void begin(const plan::Fault& fault);
  void begin_life(Address worker);

  PendingOrders& orders_;
  MakeRole make_role_;
  std::deque<Waiting> faults_;
  LocalHost* host_ = nullptr;
  std::map<Address, std::uint32_t> lives_;  // of only on the thread of the orders
};

}  // namespace leeway
