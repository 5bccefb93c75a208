#pragma once
// LocalFaults: brings the faults of a plan upon workers on threads of this process, each at its
// time or iteration, from a thread of its own.
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "cluster/local_host.hpp"

namespace leeway {

class LocalFaults {
 public:
  /// How the host gets the role of a worker's life, counted from 1.
  using MakeRole = std::function<std::shared_ptr<Role>(Address, std::uint32_t life)>;

  /// Of the faults, those that a host of threads can cause: crash, joins and freeze. The worker
  /// itself sees to throws and killed.
  LocalFaults(const std::vector<plan::Fault>& faults, MakeRole make_role);
  ~LocalFaults() { stop(); }

  /// Its time begins. The host lives until stop().
  void start(LocalHost& host);
  /// Nothing happens any more.
  void stop();
  /// Told of every event, from many threads at once.
  void on_event(Address actor, const Event& event);

 private:
  using Action = std::function<void()>;
  struct Waiting {
    explicit Waiting(plan::Fault planned) : fault(std::move(planned)) {}
    plan::Fault fault;
    std::atomic<bool> begun{false};
  };
  void at(Instant time, Action action);
  void begin(const plan::Fault& fault);
  void begin_life(Address worker);
  void run();

  MakeRole make_role_;
  std::deque<Waiting> faults_;
  LocalHost* host_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<Instant, Action> due_;
  bool stopping_ = false;
  std::map<Address, std::uint32_t> lives_;  // of the thread alone
  std::thread thread_;
};

}  // namespace leeway
