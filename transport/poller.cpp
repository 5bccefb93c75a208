#include "transport/poller.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "core/check.hpp"
#include "core/this_host.hpp"

namespace leeway::transport {
namespace {

constexpr Poller::Id kWakes = Poller::kNone;  // in events

epoll_event event_of(Poller::Id id, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  return event;
}

}  // namespace

Poller::Poller(Duration period, std::function<void()> tick)
    : period_(period),
      tick_(std::move(tick)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wakes_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  LW_CHECK(epoll_ && wakes_, "no descriptor is left");
  epoll_event event = event_of(kWakes, EPOLLIN);
  LW_CHECK(epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, wakes_.number(), &event) == 0);
  thread_ = std::thread([this] { run(); });
}

Poller::~Poller() {
  stop();
}

void Poller::stop() {
  stopped_ = true;
  wake();
  if (thread_.joinable()) thread_.join();
  std::map<Id, std::shared_ptr<Watcher>> watchers;
  std::vector<std::function<void()>> posted;
  std::lock_guard lock(mutex_);
  watchers.swap(watchers_);
  posted.swap(posted_);
}

void Poller::wake() {
  const std::uint64_t one = 1;
  LW_CHECK(write(wakes_.number(), &one, sizeof one) == sizeof one);
}

Poller::Id Poller::add(int socket, std::uint32_t events, std::shared_ptr<Watcher> watcher) {
  std::lock_guard lock(mutex_);
  const Id id = ++last_;
  watchers_.emplace(id, std::move(watcher));
  epoll_event event = event_of(id, events);
  if (epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, socket, &event) == 0) return id;
  watchers_.erase(id);
  return kNone;
}

void Poller::change(Id id, int socket, std::uint32_t events) {
  epoll_event event = event_of(id, events);
  epoll_ctl(epoll_.number(), EPOLL_CTL_MOD, socket, &event);
}

void Poller::remove(Id id, int socket) {
  std::shared_ptr<Watcher> removed;  // ends without the lock
  std::lock_guard lock(mutex_);
  const auto found = watchers_.find(id);
  if (found == watchers_.end()) return;
  epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, socket, nullptr);
  removed = std::move(found->second);
  watchers_.erase(found);
}

void Poller::post(std::function<void()> work) {
  {
    std::lock_guard lock(mutex_);
    posted_.push_back(std::move(work));
  }
  wake();
}

std::shared_ptr<Poller::Watcher> Poller::find(Id id) {
  std::lock_guard lock(mutex_);
  const auto found = watchers_.find(id);
  return found == watchers_.end() ? nullptr : found->second;
}

void Poller::run() {
  std::array<epoll_event, 64> ready;
  std::int64_t next_tick = steady_ns() + period_.ns;
  while (!stopped_) {
    const std::int64_t left = next_tick - steady_ns();
    const int count = epoll_wait(epoll_.number(), ready.data(), static_cast<int>(ready.size()),
                                 left <= 0 ? 0 : static_cast<int>((left + 999'999) / 1'000'000));
    for (int i = 0; i < count && !stopped_; ++i) {
      if (ready[i].data.u64 == kWakes) {
        std::uint64_t wakes = 0;
        LW_CHECK(read(wakes_.number(), &wakes, sizeof wakes) == sizeof wakes);
        continue;
      }
      if (const auto watcher = find(ready[i].data.u64)) watcher->on_ready(ready[i].events);
    }
    std::vector<std::function<void()>> posted;
    {
      std::lock_guard lock(mutex_);
      posted.swap(posted_);
    }
    for (const auto& work : posted)
      if (!stopped_) work();
    if (steady_ns() < next_tick) continue;
    tick_();
    next_tick = steady_ns() + period_.ns;
  }
}

}  // namespace leeway::transport
