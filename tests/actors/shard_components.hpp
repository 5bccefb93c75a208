#pragma once
// Helpers for tests of a shard's components: a recording outbox and a recording sink.
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "actors/shard/clock_table.hpp"
#include "actors/shard/push_sink.hpp"
#include "core/check.hpp"
#include "messages/envelope.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {

const WorkerId kA(0), kB(1), kC(2);

/// Keeps messages, events and work; computes nothing.
class RecordingOutbox final : public Outbox {
 public:
  /// The messages of one kind to one actor that have been sent so far.
  template <class T>
  std::vector<T> sent(Address to) const {
    std::vector<T> found;
    for (const auto& [address, envelope] : sent_)
      if (const auto* body = std::get_if<T>(&envelope.body); body && address == to)
        found.push_back(*body);
    return found;
  }
  /// The events of one type that have been emitted so far.
  template <class T>
  std::vector<T> events() const {
    std::vector<T> found;
    for (const Event& event : events_)
      if (const auto* one = event.as<T>()) found.push_back(*one);
    return found;
  }
  /// Computes the oldest work and returns it; null without any work.
  std::shared_ptr<Work> compute_one() {
    if (work_.empty()) return nullptr;
    auto work = std::move(work_.front());
    work_.pop_front();
    for (int part = 0; part < work->parts(); ++part) work->run(part);
    return work;
  }

  /// The delays of the timers that have been set so far.
  const std::vector<Duration>& timers() const { return timers_; }
  void advance(Duration time) { now_ = now_ + time; }

  Instant now() const override { return now_; }
  Rng& random() override { return rng_; }
  void send(Address to, Message message) override {
    auto envelope = decode(message);
    LW_CHECK(bool(envelope), to);
    sent_.emplace_back(to, std::move(*envelope));
  }
  void after(Duration delay, TimerToken) override { timers_.push_back(delay); }
  void compute(std::shared_ptr<Work> work) override { work_.push_back(std::move(work)); }
  void watch(Address) override {}
  void emit(const Event& event) override { events_.push_back(event); }

 private:
  std::vector<std::pair<Address, Envelope>> sent_;
  std::vector<Event> events_;
  std::deque<std::shared_ptr<Work>> work_;
  std::vector<Duration> timers_;
  Instant now_;
  Rng rng_{1};
};

/// Names a push by its worker and its iteration.
using PushName = std::pair<std::uint32_t, std::int64_t>;

inline PushName name_of(const Contribution& push) {
  return {push.worker.value(), push.iteration.value()};
}

/// Records the names of pushes, and the weights of those that are applied.
class RecordingSink final : public PushSink {
 public:
  void apply(std::vector<Contribution> contributions, Outbox&) override {
    auto& update = updates.emplace_back();
    for (const auto& push : contributions) {
      update.push_back(name_of(push));
      weights.push_back(push.weight);
    }
  }
  void drop(const Contribution& push, Outbox&) override { dropped.push_back(name_of(push)); }
  void forget(const Contribution& push) override { forgotten.push_back(name_of(push)); }

  std::vector<std::vector<PushName>> updates;
  std::vector<PushName> dropped, forgotten;
  std::vector<double> weights;
};

/// A push with one block, or with no block if `empty`.
inline Contribution push_of(WorkerId worker, std::int64_t iteration, std::uint32_t bucket = 0,
                            bool empty = false) {
  Contribution push{.worker = worker,
                    .session = Session(1),
                    .iteration = Iteration(iteration),
                    .bucket = bucket,
                    .shard_bucket = bucket};
  if (!empty) push.blocks.resize(1);
  return push;
}

/// One shard with three buckets.
inline std::shared_ptr<const Job> one_shard_job() {
  Plan plan = tiny_plan();
  plan.shards = 1;
  return job_of(plan);
}

/// Workers 0 to count - 1, at iteration 0.
inline void admit_workers(ClockTable& clocks, std::uint32_t count) {
  for (std::uint32_t worker = 0; worker < count; ++worker)
    clocks.admit(WorkerId(worker), Session(1), Iteration(0));
}

}  // namespace leeway::test
