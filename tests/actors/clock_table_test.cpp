// ClockTable against a reference that keeps every accepted bucket and recomputes everything.
#include "actors/shard/clock_table.hpp"

#include <rapidcheck/catch.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <set>

#include "core/check.hpp"
#include "core/rng.hpp"

using namespace leeway;
using Verdict = ClockTable::Verdict;

namespace {

constexpr std::uint32_t kBuckets = 3;
constexpr Session kFirst{1};

class ReferenceTable {
 public:
  struct Worker {
    Session session;
    bool live = false;
    bool fenced = false;
    std::int64_t clock = 0;
    std::set<std::uint32_t> buckets;
    std::int64_t next_unseen = 0;
  };

  std::int64_t admit(WorkerId id, Session session, std::int64_t iteration) {
    const std::int64_t own = workers_.contains(id) ? workers_[id].clock : 0;
    const std::int64_t at = std::max({iteration, min_clock_, own});
    workers_[id] = {session, true, false, at, {}, 0};
    settle();
    return at;
  }
  void raise(WorkerId id, std::int64_t iteration) {
    if (!workers_.contains(id) || !workers_[id].live) return;
    workers_[id].clock = std::max(workers_[id].clock, iteration);
    settle();
  }
  void fence(WorkerId id) {
    if (workers_.contains(id)) workers_[id].fenced = true;
  }
  void remove(WorkerId id) {
    if (workers_.contains(id)) workers_[id].live = false;
    settle();
  }
  Verdict accept(WorkerId id, std::int64_t iteration, std::uint32_t bucket) {
    auto& worker = workers_.at(id);
    if (iteration > worker.clock) return Verdict::gap;
    if (iteration < worker.clock || !worker.buckets.insert(bucket).second) return Verdict::repeat;
    worker.next_unseen = std::max(worker.next_unseen, iteration + 1);
    return Verdict::accepted;
  }
  bool is_whole(WorkerId id) const { return workers_.at(id).buckets.size() == kBuckets; }
  void advance(WorkerId id) {
    workers_.at(id).buckets.clear();
    ++workers_.at(id).clock;
    settle();
    if (workers_.at(id).live) widest_ = std::max(widest_, workers_.at(id).clock - min_clock_);
  }

  bool may_push(WorkerId id, Session session) const {
    const auto found = workers_.find(id);
    return found != workers_.end() && found->second.live && !found->second.fenced &&
           found->second.session == session;
  }

  void settle() {
    std::optional<std::int64_t> least, largest;
    for (const auto& [id, worker] : workers_) {
      if (!worker.live) continue;
      least = std::min(least.value_or(worker.clock), worker.clock);
      largest = std::max(largest.value_or(worker.clock), worker.clock);
    }
    if (!least) return;
    min_clock_ = *least;
    max_clock_ = std::max(max_clock_, *largest);
  }

  void require_same(const ClockTable& table) const {
    RC_ASSERT(table.min_clock() == Clock(min_clock_));
    RC_ASSERT(table.max_clock() == Clock(max_clock_));
    RC_ASSERT(table.max_clock_gap() == widest_);
    RC_ASSERT(table.participants().size() == workers_.size());
    for (const auto& [id, worker] : workers_) {
      const auto* entry = table.find(id);
      RC_ASSERT(entry != nullptr);
      RC_ASSERT(entry->live == worker.live);
      RC_ASSERT(entry->fenced == worker.fenced);
      RC_ASSERT(entry->clock == Clock(worker.clock));
      RC_ASSERT(entry->session == worker.session);
      RC_ASSERT(entry->buckets_accepted == worker.buckets.size());
      RC_ASSERT(entry->next_unseen == Iteration(worker.next_unseen));
    }
  }

  std::map<WorkerId, Worker> workers_;
  std::int64_t min_clock_ = 0, max_clock_ = 0, widest_ = 0;
};

/// Applies one random operation to both.
void operate(ClockTable& table, ReferenceTable& reference, Rng& rng) {
  const WorkerId id(static_cast<std::uint32_t>(rng.below(4)));
  const Session session(static_cast<std::uint32_t>(1 + rng.below(3)));
  const auto known = reference.workers_.find(id);
  const std::int64_t clock = known == reference.workers_.end() ? 0 : known->second.clock;
  const std::int64_t iteration =
      std::max<std::int64_t>(0, clock - 2 + static_cast<std::int64_t>(rng.below(5)));
  switch (rng.below(16)) {
    case 0:
      RC_ASSERT(table.admit(id, session, Iteration(iteration)) ==
                Clock(reference.admit(id, session, iteration)));
      break;
    case 1:
      if (known != reference.workers_.end() && !known->second.buckets.empty()) return;
      table.raise(id, Iteration(iteration));
      reference.raise(id, iteration);
      break;
    case 2:
      table.fence(id);
      reference.fence(id);
      break;
    case 3:
      table.remove(id);
      reference.remove(id);
      break;
    case 4:
      if (known == reference.workers_.end()) return;
      table.advance(id);
      reference.advance(id);
      break;
    default: {
      const auto bucket = static_cast<std::uint32_t>(rng.below(kBuckets));
      RC_ASSERT(table.may_push(id, session) == reference.may_push(id, session));
      if (!reference.may_push(id, session)) return;
      const std::int64_t pushed = rng.one_in(3) ? iteration : clock;
      RC_ASSERT(table.accept(id, Iteration(pushed), bucket, kBuckets) ==
                reference.accept(id, pushed, bucket));
      const bool whole = reference.is_whole(id);
      RC_ASSERT(table.is_whole(id, Iteration(clock)) == whole);
      RC_ASSERT(table.advance_if_whole(id) == whole);
      if (whole) reference.advance(id);
    }
  }
}

/// Pushes whole iterations of two buckets.
void push(ClockTable& table, WorkerId id, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::uint32_t bucket = 0; bucket < 2; ++bucket)
      REQUIRE(table.accept(id, Iteration(table.find(id)->clock.value()), bucket, 2) ==
              Verdict::accepted);
    REQUIRE(table.advance_if_whole(id));
  }
}

}  // namespace

TEST_CASE("the table agrees with a naive one, and no clock ever decreases") {
  rc::prop("random operations", [](std::uint64_t seed) {
    Rng rng(seed);
    ClockTable table;
    ReferenceTable reference;
    Clock least;
    std::map<WorkerId, Clock> clocks;
    for (int i = 0; i < 300; ++i) {
      operate(table, reference, rng);
      reference.require_same(table);
      RC_ASSERT(table.min_clock() >= least);
      least = table.min_clock();
      for (const auto& [id, entry] : table.participants()) {
        RC_ASSERT(entry.clock >= clocks[id]);
        clocks[id] = entry.clock;
        if (entry.live) RC_ASSERT(entry.clock >= least);
      }
    }
  });
}

TEST_CASE("an iteration is whole when all its buckets are accepted, in any order") {
  ClockTable table;
  table.admit(WorkerId(0), kFirst, Iteration(0));
  for (const std::uint32_t bucket : {2u, 0u}) {
    CHECK(table.accept(WorkerId(0), Iteration(0), bucket, 3) == Verdict::accepted);
    CHECK_FALSE(table.advance_if_whole(WorkerId(0)));
  }
  CHECK(table.accept(WorkerId(0), Iteration(0), 1, 3) == Verdict::accepted);
  CHECK(table.min_clock() == Clock(0));
  CHECK(table.advance_if_whole(WorkerId(0)));
  CHECK(table.min_clock() == Clock(1));
  CHECK(table.find(WorkerId(0))->buckets_accepted == 0);
}

TEST_CASE("a bucket that was accepted before is a repeat; one of a later iteration is a gap") {
  ClockTable table;
  table.admit(WorkerId(0), kFirst, Iteration(0));
  push(table, WorkerId(0), 3);
  CHECK(table.accept(WorkerId(0), Iteration(0), 1, 2) == Verdict::repeat);
  CHECK(table.accept(WorkerId(0), Iteration(2), 0, 2) == Verdict::repeat);
  CHECK(table.accept(WorkerId(0), Iteration(4), 0, 2) == Verdict::gap);
  CHECK(table.accept(WorkerId(0), Iteration(3), 0, 2) == Verdict::accepted);
  CHECK(table.accept(WorkerId(0), Iteration(3), 0, 2) == Verdict::repeat);
  CHECK(table.find(WorkerId(0))->clock == Clock(3));
  CHECK(table.find(WorkerId(0))->next_unseen == Iteration(4));
}

TEST_CASE("with no live worker min_clock keeps its last value, and a new worker starts there") {
  ClockTable table;
  CHECK(table.min_clock() == Clock(0));
  table.admit(WorkerId(0), kFirst, Iteration(0));
  push(table, WorkerId(0), 5);
  table.remove(WorkerId(0));
  CHECK(table.min_clock() == Clock(5));
  CHECK(table.admit(WorkerId(1), kFirst, Iteration(2)) == Clock(5));
  CHECK(table.min_clock() == Clock(5));
}

TEST_CASE("a new worker's clock is the iteration of its admission, and counts in min_clock") {
  ClockTable table;
  table.admit(WorkerId(0), kFirst, Iteration(0));
  push(table, WorkerId(0), 4);
  CHECK(table.admit(WorkerId(1), kFirst, Iteration(6)) == Clock(6));
  push(table, WorkerId(0), 3);
  CHECK(table.min_clock() == Clock(6));
  CHECK(table.max_clock() == Clock(7));
  CHECK(table.max_clock_gap() == 1);  // 7 and 6; the admission at 6, ahead of 4, does not count
}

TEST_CASE("a worker that left returns at its own clock or later") {
  ClockTable table;
  table.admit(WorkerId(0), kFirst, Iteration(0));
  table.admit(WorkerId(1), kFirst, Iteration(0));
  push(table, WorkerId(1), 3);
  table.remove(WorkerId(1));
  CHECK(table.min_clock() == Clock(0));
  CHECK(table.admit(WorkerId(1), Session(2), Iteration(1)) == Clock(3));
  CHECK(table.may_push(WorkerId(1), Session(2)));
  CHECK_FALSE(table.may_push(WorkerId(1), kFirst));
}

TEST_CASE("a fenced worker may not push, but counts in min_clock until it is removed") {
  ClockTable table;
  table.admit(WorkerId(0), kFirst, Iteration(0));
  table.admit(WorkerId(1), kFirst, Iteration(0));
  push(table, WorkerId(1), 2);
  table.fence(WorkerId(0));
  CHECK_FALSE(table.may_push(WorkerId(0), kFirst));
  CHECK(table.min_clock() == Clock(0));
  table.remove(WorkerId(0));
  CHECK(table.min_clock() == Clock(2));
  table.admit(WorkerId(0), Session(2), Iteration(0));
  CHECK(table.may_push(WorkerId(0), Session(2)));
}

TEST_CASE(
    "the buckets of an unfinished iteration are discarded when its worker is admitted again") {
  ClockTable table;
  table.admit(WorkerId(0), kFirst, Iteration(0));
  CHECK(table.accept(WorkerId(0), Iteration(0), 0, 2) == Verdict::accepted);
  table.fence(WorkerId(0));
  CHECK(table.find(WorkerId(0))->buckets_accepted == 1);
  table.remove(WorkerId(0));
  table.admit(WorkerId(0), Session(2), Iteration(0));
  CHECK(table.accept(WorkerId(0), Iteration(0), 0, 2) == Verdict::accepted);
}

TEST_CASE("raise() moves the clock of a live worker up, never down, and no other clock") {
  ClockTable table;
  table.admit(WorkerId(0), kFirst, Iteration(3));
  table.raise(WorkerId(0), Iteration(5));
  CHECK(table.min_clock() == Clock(5));
  table.raise(WorkerId(0), Iteration(4));
  CHECK(table.min_clock() == Clock(5));
  table.raise(WorkerId(9), Iteration(50));
  CHECK(table.find(WorkerId(9)) == nullptr);
  table.remove(WorkerId(0));
  table.raise(WorkerId(0), Iteration(50));
  CHECK(table.find(WorkerId(0))->clock == Clock(5));
}

TEST_CASE("advance() moves a clock past an iteration that is not whole") {
  ClockTable table;
  for (const std::uint32_t worker : {0u, 1u, 2u})
    table.admit(WorkerId(worker), kFirst, Iteration(4));
  for (const std::uint32_t bucket : {0u, 1u})
    CHECK(table.accept(WorkerId(0), Iteration(4), bucket, 2) == Verdict::accepted);
  CHECK(table.is_whole(WorkerId(0), Iteration(4)));
  CHECK(table.accept(WorkerId(0), Iteration(4), 1, 2) == Verdict::repeat);
  CHECK(table.accept(WorkerId(1), Iteration(4), 1, 2) == Verdict::accepted);
  CHECK_FALSE(table.is_whole(WorkerId(1), Iteration(4)));
  for (const std::uint32_t worker : {0u, 1u, 2u}) table.advance(WorkerId(worker));
  CHECK(table.min_clock() == Clock(5));
  CHECK(table.is_whole(WorkerId(1), Iteration(4)));
  CHECK_FALSE(table.is_whole(WorkerId(1), Iteration(5)));
  // A straggling bucket is a repeat; the next iteration has no bucket yet.
  CHECK(table.accept(WorkerId(1), Iteration(4), 0, 2) == Verdict::repeat);
  CHECK(table.accept(WorkerId(1), Iteration(5), 1, 2) == Verdict::accepted);
}

TEST_CASE("at_min_clock counts the live workers at min_clock that are not fenced") {
  ClockTable table;
  for (const std::uint32_t worker : {0u, 1u, 2u})
    table.admit(WorkerId(worker), kFirst, Iteration(4));
  CHECK(table.at_min_clock() == 3);
  table.fence(WorkerId(2));
  CHECK(table.at_min_clock() == 2);
  table.remove(WorkerId(2));
  CHECK(table.at_min_clock() == 2);
  table.advance(WorkerId(0));
  CHECK(table.at_min_clock() == 1);
}

TEST_CASE("an older view of the membership is refused") {
  ClockTable table;
  CHECK(table.enter_view(View(3)));
  CHECK(table.enter_view(View(3)));
  CHECK_FALSE(table.enter_view(View(2)));
  CHECK(table.view() == View(3));
}

TEST_CASE("calls that violate a requirement throw") {
  ClockTable table;
  table.admit(WorkerId(0), kFirst, Iteration(0));
  CHECK_THROWS_AS(table.accept(WorkerId(0), Iteration(0), 2, 2), CheckFailed);
  CHECK(table.accept(WorkerId(0), Iteration(0), 0, 2) == Verdict::accepted);
  CHECK_THROWS_AS(table.accept(WorkerId(0), Iteration(0), 2, 3), CheckFailed);  // another count
  CHECK_THROWS_AS(table.raise(WorkerId(0), Iteration(4)), CheckFailed);  // it has begun to push
}
