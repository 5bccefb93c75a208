#pragma once
// RecordingOutbox: an Outbox that delivers nothing, and computes only what a test asks for. It
// keeps the messages, events and work of a role until a test takes them. Its clock moves by
// advance().
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/outbox.hpp"
#include "core/check.hpp"
#include "messages/envelope.hpp"

namespace leeway::test {

using Workers = std::vector<std::uint32_t>;

/// A worker of a stage, and a shard that has parameters of that stage.
using Pairs = std::set<std::pair<WorkerId, ShardId>>;

template <class T>
struct Sent {
  Address to;
  Session session;
  T body;
};

class RecordingOutbox : public Outbox {
 public:
  /// The messages of that kind since they were last taken, in order.
  template <class T>
  std::vector<Sent<T>> take() {
    std::vector<Sent<T>> taken;
    std::erase_if(sent_, [&](auto& letter) {
      auto* body = std::get_if<T>(&letter.second.body);
      if (body) taken.push_back({letter.first, letter.second.session, std::move(*body)});
      return body != nullptr;
    });
    return taken;
  }
  /// The workers that messages of that kind were sent to, in order.
  template <class T>
  Workers receivers_of() {
    Workers workers;
    for (const auto& sent : take<T>())
      if (sent.to.kind == RoleKind::worker) workers.push_back(sent.to.index);
    return workers;
  }
  /// For messages to shards that are about a worker: each worker and shard. Throws if a pair
  /// repeats.
  template <class T>
  Pairs pairs() {
    Pairs pairs;
    for (const auto& sent : take<T>())
      LW_CHECK(pairs.emplace(sent.body.worker, ShardId(sent.to.index)).second, "sent twice");
    return pairs;
  }
  /// The session of the last Start to a worker; 0: none.
  Session session_of(std::uint32_t worker) const {
    const auto found = sessions_.find(address_of(WorkerId(worker)));
    return found == sessions_.end() ? Session() : found->second;
  }
  /// The messages of one kind to one actor. They stay to be taken.
  template <class T>
  std::vector<T> sent(Address to) const {
    std::vector<T> found;
    for (const auto& [address, envelope] : sent_)
      if (const auto* body = std::get_if<T>(&envelope.body); body && address == to)
        found.push_back(*body);
    return found;
  }
  bool has_sent_nothing() const { return sent_.empty(); }
  void forget() { sent_.clear(); }

  /// The events of one type since they were last taken, in order.
  template <class T>
  std::vector<T> events() {
    std::vector<T> taken;
    std::erase_if(events_, [&](const Event& event) {
      const auto* one = event.as<T>();
      if (one) taken.push_back(*one);
      return one != nullptr;
    });
    return taken;
  }
  /// The workers of the events of one type, in order.
  template <class T>
  Workers happened() {
    Workers workers;
    for (const auto& event : events<T>()) workers.push_back(event.worker.value());
    return workers;
  }
  /// The work since it was last taken; it has not run.
  std::vector<std::shared_ptr<Work>> take_work() { return std::exchange(works_, {}); }
  /// Computes the oldest work that was not taken and returns it; null without any.
  std::shared_ptr<Work> compute_one() {
    if (works_.empty()) return nullptr;
    auto work = std::move(works_.front());
    works_.erase(works_.begin());
    for (int part = 0; part < work->parts(); ++part) work->run(part);
    return work;
  }
  /// The delays of all timers that have been set.
  const std::vector<Duration>& timers() const { return timers_; }
  void advance(Duration time) { now_ = now_ + time; }
  /// How often the role has called watch() for the worker.
  std::size_t watched(std::uint32_t worker) const {
    return watched_.count(address_of(WorkerId(worker)));
  }

 private:
  Instant now() const final { return now_; }
  Rng& random() final { return rng_; }
  void send(Address to, Message message) final {
    auto envelope = decode(message);
    LW_CHECK(bool(envelope), envelope ? std::string() : envelope.error().text);
    if (std::holds_alternative<msg::Start>(envelope->body)) sessions_[to] = envelope->session;
    sent_.emplace_back(to, std::move(*envelope));
  }
  void after(Duration delay, TimerToken) final { timers_.push_back(delay); }
  void compute(std::shared_ptr<Work> work) final { works_.push_back(std::move(work)); }
  void watch(Address actor) final { watched_.insert(actor); }
  void emit(const Event& event) final { events_.push_back(event); }

  Rng rng_{1};
  Instant now_;
  std::vector<std::pair<Address, Envelope>> sent_;
  std::map<Address, Session> sessions_;
  std::vector<Event> events_;
  std::vector<std::shared_ptr<Work>> works_;
  std::vector<Duration> timers_;
  std::multiset<Address> watched_;
};

}  // namespace leeway::test
