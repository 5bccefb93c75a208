#pragma once
// Agenda: does things later, each at its time, one after the other on a thread of its own.
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "core/time.hpp"

namespace leeway {

class Agenda {
 public:
  using Action = std::function<void()>;

  ~Agenda() { stop(); }
  /// Starts the thread, if it does not run yet. What was asked for before has waited.
  void begin();
  /// From any thread, actions themselves included. Those of equal times keep their order.
  void after(Duration delay, Action action);
  /// Nothing happens any more, once this has returned.
  void stop();

 private:
  using Time = std::chrono::steady_clock::time_point;
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<Time, Action> due_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace leeway
