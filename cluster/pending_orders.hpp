#pragma once
// PendingOrders: functions that one thread calls, each at its time, one after the other.
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "core/time.hpp"

namespace leeway {

class PendingOrders {
 public:
  using Order = std::function<void()>;

  ~PendingOrders() { stop(); }
  /// Starts the thread once. Earlier orders have waited.
  void begin();
  /// From any thread, also from an order. Orders of the same time keep their sequence.
  void after(Duration delay, Order order);
  /// No order runs after this has returned.
  void stop();

 private:
  using Time = std::chrono::steady_clock::time_point;
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<Time, Order> due_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace leeway
