#pragma once
// LocalFaults: brings the faults of a plan upon workers on threads of this process, each at its
// time or iteration.
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "cluster/agenda.hpp"
#include "cluster/local_host.hpp"

namespace leeway {

class LocalFaults {
 public:
  /// How the host gets the role of a worker's life, counted from 1; null: none begins here.
  using MakeRole = std::function<std::shared_ptr<Role>(Address, std::uint32_t life)>;

  /// Of the faults, those that a host of threads can cause: crash, joins, leaves and freeze. The
  /// worker itself sees to throws and killed. They happen on the agenda's thread.
  LocalFaults(const std::vector<plan::Fault>& faults, Agenda& agenda, MakeRole make_role);

  /// Its time begins. The host lives until the agenda is stopped.
  void start(LocalHost& host);
  /// Told of every event, from many threads at once.
  void on_event(Address actor, const Event& event);

 private:
  struct Waiting {
    explicit Waiting(plan::Fault planned) : fault(std::move(planned)) {}
    plan::Fault fault;
    std::atomic<bool> begun{false};
  };
  void begin(const plan::Fault& fault);
  void begin_life(Address worker);

  Agenda& agenda_;
  MakeRole make_role_;
  std::deque<Waiting> faults_;
  LocalHost* host_ = nullptr;
  std::map<Address, std::uint32_t> lives_;  // of the agenda's thread alone
};

}  // namespace leeway
