#pragma once
// Poller: one thread that waits for many sockets, with a clock.
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/time.hpp"
#include "transport/socket.hpp"

namespace leeway::transport {

class Poller {
 public:
  /// Handles one socket, on the poller's thread.
  class Watcher {
   public:
    virtual ~Watcher() = default;
    /// `events`: EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP.
    virtual void on_ready(std::uint32_t events) = 0;
  };
  using Id = std::uint64_t;
  static constexpr Id kNone = 0;

  /// Calls `tick` about every `period`, on its thread.
  Poller(Duration period, std::function<void()> tick);
  /// Stops: no handler runs any more.
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;
  void stop();

  // From any thread:
  /// Watches a socket until remove(). Keeps the watcher alive. kNone: the kernel has no memory for
  /// another one, or its limit for this user is reached (fs.epoll.max_user_watches).
  Id add(int socket, std::uint32_t events, std::shared_ptr<Watcher> watcher);
  void change(Id id, int socket, std::uint32_t events);
  /// The socket must be open. A handler that runs on the poller's thread may still end.
  void remove(Id id, int socket);
  /// Calls `work` on the poller's thread.
  void post(std::function<void()> work);

 private:
  void run();
  void wake();
  std::shared_ptr<Watcher> find(Id id);

  const Duration period_;
  const std::function<void()> tick_;
  const Socket epoll_, wakes_;
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  Id last_ = 0;
  std::map<Id, std::shared_ptr<Watcher>> watchers_;
  std::vector<std::function<void()>> posted_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace leeway::transport
