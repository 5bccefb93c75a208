#include "cluster/pending_orders.hpp"

namespace leeway {

void PendingOrders::begin() {
  std::lock_guard lock(mutex_);
  if (!thread_.joinable() && !stopping_) thread_ = std::thread([this] { run(); });
}

void PendingOrders::after(Duration delay, Order order) {
  std::lock_guard lock(mutex_);
  due_.emplace(std::chrono::steady_clock::now() + std::chrono::nanoseconds(delay.ns),
               std::move(order));
  changed_.notify_all();
}

void PendingOrders::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void PendingOrders::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (due_.empty()) {
      changed_.wait(lock);
    } else if (const Time next = due_.begin()->first; next > std::chrono::steady_clock::now()) {
      changed_.wait_until(lock, next);
    } else {
      const Order order = std::move(due_.begin()->second);
      due_.erase(due_.begin());
      lock.unlock();
      order();
      lock.lock();
    }
  }
}

}  // namespace leeway
