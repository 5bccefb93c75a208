// LeaseBook under a driver that acts as the scheduler and marks every sample of every epoch.
#include "actors/scheduler/lease_book.hpp"

#include <rapidcheck/catch.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "core/check.hpp"
#include "core/rng.hpp"
#include "core/text.hpp"
#include "tests/support/any_sizes.hpp"

using namespace leeway;

namespace {

std::vector<WorkerId> workers(std::uint32_t count) {
  std::vector<WorkerId> ids;
  for (std::uint32_t i = 0; i < count; ++i) ids.push_back(WorkerId(i));
  return ids;
}

std::string text_of(const std::optional<msg::Lease>& lease) {
  if (!lease) return "none";
  return concat("lease ", lease->lease, " epoch ", lease->epoch, " [", lease->begin, ", ",
                lease->end, ") from ", lease->first_iteration, " batch ", lease->batch, " round ",
                lease->round_samples);
}

/// Workers that request, train, die, return and idle. Throws CheckFailed on a wrong answer.
class Driver {
 public:
  Driver(const LeaseBook::Limits& limits, std::uint32_t count, std::uint64_t seed,
         std::shared_ptr<Balance> balance = nullptr)
      : limits_(limits),
        book_(limits, balance),
        most_(limits.batch * (balance ? 8 : 1)),
        least_(balance ? 1 : limits.batch),
        rng_(seed),
        workers_(count) {
    // Without a limit, the run has as many epochs as the driver reaches.
    total_ = limits.total_samples;
  }

  void step() {
    const WorkerId id(static_cast<std::uint32_t>(rng_.below(workers_.size())));
    auto& worker = at(id);
    switch (rng_.below(limits_.spare > 0 ? 14 : 12)) {
      case 12:
      case 13:
        close_round();
        break;
      case 0:
        if (worker.live && live().size() > 1) kill(id);
        break;
      case 1:
        if (!worker.live) begin_admission(id);
        break;
      case 2:
        if (worker.admitting) end_admission(id);
        break;
      case 3:
      case 4:
      case 5:
      case 6:
        if (worker.live && !worker.admitting) request(id);
        break;
      default:
        if (worker.live && !worker.admitting) train_some(id);
    }
  }

  /// All workers train without faults until no samples are left.
  void finish() {
    for (int round = 0; !book_.all_trained(); ++round) {
      LW_CHECK(round < 10'000, "all_trained() stays false", limits_.by_rounds,
               limits_.total_iterations, workers_.size());
      if (limits_.spare > 0) close_round();
      for (std::uint32_t i = 0; i < workers_.size(); ++i) {
        const WorkerId id(i);
        if (!at(id).live && book_.anything_to_lease()) begin_admission(id);
        if (at(id).admitting) end_admission(id);
        if (!at(id).live) continue;
        const bool more = request(id);
        train(id, at(id).next);
        if (more || has_open_share(at(id))) continue;
        idle(id);
        if (book_.anything_to_lease()) begin_admission(id);  // as the scheduler does
      }
    }
  }

  /// Every sample of the run is marked as trained. No sample can be marked twice.
  void check_end() const {
    LW_CHECK(book_.samples_trained() == trained_, book_.samples_trained(), trained_);
    LW_CHECK(book_.samples_leased() == trained_, book_.samples_leased(), trained_);
    if (limits_.total_iterations > 0) return;
    LW_CHECK(trained_ == static_cast<std::uint64_t>(total_), trained_, total_);
    for (const auto& [epoch, marks] : marks_) {
      const std::int64_t size =
          std::min(limits_.data_size, total_ - epoch.value() * limits_.data_size);
      for (std::int64_t i = 0; i < limits_.data_size; ++i)
        LW_CHECK((marks[static_cast<std::size_t>(i)] == Mark::trained) == (i < size), epoch, i);
    }
  }

  std::int64_t iterations() const { return iterations_; }

 private:
  enum class Mark : std::uint8_t { free, leased, trained };
  struct Worker {
    bool live = true;
    bool admitting = false;
    Iteration next;  // of the next request
    Clock clock;     // confirmed
    std::vector<msg::Lease> leases;
  };

  Worker& at(WorkerId id) { return workers_[id.value()]; }
  std::vector<WorkerId> live() const {
    std::vector<WorkerId> ids;
    for (std::uint32_t i = 0; i < workers_.size(); ++i)
      if (workers_[i].live) ids.push_back(WorkerId(i));
    return ids;
  }

  void mark(Epoch epoch, std::int64_t begin, std::int64_t end, Mark from, Mark to) {
    auto& marks = marks_[epoch];
    marks.resize(static_cast<std::size_t>(limits_.data_size));
    LW_CHECK(0 <= begin && begin <= end && end <= limits_.data_size, begin, end);
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      LW_CHECK(marks[i] == from, epoch, i, static_cast<int>(marks[i]), static_cast<int>(to));
      marks[i] = to;
    }
  }

  bool request(WorkerId id) {
    auto& worker = at(id);
    const auto lease = book_.grant(id, worker.next, live());
    if (!lease) return false;
    LW_CHECK(lease->first_iteration == worker.next, "not contiguous", text_of(lease), worker.next);
    LW_CHECK(lease->batch >= least_ && lease->batch <= most_, text_of(lease));
    // By rounds, all shares state the samples of the workers that took part when the round began.
    auto& round = round_samples_[limits_.by_rounds ? lease->first_iteration : Iteration(-1)];
    if (round == 0 || !limits_.by_rounds)
      round = limits_.batch *
              static_cast<std::uint32_t>(std::max<std::size_t>(
                  1, live().size() - std::min<std::size_t>(limits_.spare, live().size())));
    LW_CHECK(lease->round_samples == round, text_of(lease), round);
    LW_CHECK(limits_.by_rounds || lease->begin < lease->end, "an empty lease", text_of(lease));
    LW_CHECK(lease->end - lease->begin <=
                 std::max(limits_.lease_size * lease->batch / limits_.batch, lease->batch),
             text_of(lease));
    check_sum_of_round(*lease);
    LW_CHECK(!limits_.by_rounds || lease->iterations() == 1, text_of(lease));
    LW_CHECK(ids_.insert(lease->lease).second, "a repeated id", text_of(lease));
    mark(lease->epoch, lease->begin, lease->end, Mark::free, Mark::leased);
    if (lease->begin < lease->end) iterations_ += lease->iterations();
    if (limits_.total_iterations > 0)
      LW_CHECK(iterations_ <= static_cast<std::int64_t>(limits_.total_iterations), iterations_);
    const auto again = book_.grant(id, worker.next, live());
    LW_CHECK(text_of(again) == text_of(lease), "a repeat differs", text_of(again), text_of(lease));
    worker.leases.push_back(*lease);
    worker.next = worker.next + lease->iterations();
    LW_CHECK(book_.horizon() >= worker.next, book_.horizon(), worker.next);
    return true;
  }

  /// A round has at most the samples that its leases state, plus those of spare workers.
  void check_sum_of_round(const msg::Lease& lease) {
    if (!limits_.by_rounds) return;
    auto& sum = round_sums_[lease.first_iteration];
    sum += lease.end - lease.begin;
    LW_CHECK(sum <= lease.round_samples || limits_.spare > 0, sum, lease.first_iteration);
  }

  void train_some(WorkerId id) {
    auto& worker = at(id);
    const auto ahead = static_cast<std::uint64_t>(worker.next.value() - worker.clock.value());
    train(id, Iteration(worker.clock.value() + static_cast<std::int64_t>(rng_.below(ahead + 1))));
  }

  /// Confirms the iterations below `until`. The book must return exactly their samples.
  void train(WorkerId id, Iteration until) {
    auto& worker = at(id);
    if (limits_.spare > 0) until = std::min(until, first_open_);
    if (until.value() < worker.clock.value()) return;
    std::int64_t expected = 0;
    for (const auto& lease : worker.leases)
      for (std::int64_t i = lease.begin; i < lease.end; ++i) {
        const Iteration iteration = lease.first_iteration + (i - lease.begin) / lease.batch;
        expected += iteration < until && iteration.value() >= worker.clock.value() ? 1 : 0;
      }
    worker.clock = Clock(until.value());
    std::int64_t confirmed = 0;
    for (const auto& range : book_.confirm(id, worker.clock)) {
      mark(range.epoch, range.begin, range.end, Mark::leased, Mark::trained);
      confirmed += range.count();
    }
    LW_CHECK(confirmed == expected, confirmed, expected, id, until);
    LW_CHECK(book_.confirm(id, worker.clock).empty(), "confirmed twice");
    trained_ += static_cast<std::uint64_t>(confirmed);
  }

  /// The worker dies. It may have finished further iterations that were not confirmed.
  void kill(WorkerId id) {
    auto& worker = at(id);
    if (!worker.admitting) train_some(id);
    std::int64_t back = 0;
    for (const auto& lease : worker.leases) {
      const std::int64_t done =
          (worker.clock.value() - lease.first_iteration.value()) * lease.batch;
      const std::int64_t size = lease.end - lease.begin;
      const std::int64_t kept = std::clamp<std::int64_t>(done, 0, size);
      mark(lease.epoch, lease.begin + kept, lease.end, Mark::leased, Mark::free);
      back += size - kept;
    }
    std::int64_t returned = 0;
    // Unfinished iterations are leased again, so they do not count against the limit.
    for (const auto& lease : worker.leases) {
      const std::int64_t done =
          std::max<std::int64_t>(0, worker.clock.value() - lease.first_iteration.value());
      if (lease.begin < lease.end)
        iterations_ -= std::max<std::int64_t>(0, lease.iterations() - done);
    }
    for (const auto& range : book_.take_back(id).back) {
      mark(range.epoch, range.begin, range.end, Mark::free, Mark::free);
      returned += range.count();
    }
    // By rounds, shares that the worker has not requested go back too.
    LW_CHECK(limits_.by_rounds ? returned >= back : returned == back, returned, back);
    LW_CHECK(book_.take_back(id).back.empty(), "samples came back twice");
    leave(worker);
  }

  /// Closes the first open round with the pushes of some workers that have a share of it.
  void close_round() {
    std::optional<Iteration> last;
    for (const auto& worker : workers_)
      if (worker.live && !worker.admitting)
        last = std::min(last.value_or(position(worker)), position(worker));
    if (!last) return;
    const Iteration round = *last;
    std::vector<WorkerId> contributors;
    for (std::uint32_t i = 0; i < workers_.size(); ++i)
      if (workers_[i].live && has_share(workers_[i], round)) contributors.push_back(WorkerId(i));
    if (contributors.empty()) return;
    rng_.shuffle(std::span(contributors));
    contributors.resize(1 + rng_.below(contributors.size()));
    std::sort(contributors.begin(), contributors.end());
    std::map<WorkerId, std::int64_t> back;
    for (const auto& share : book_.close(round, contributors))
      back[share.worker] = share.samples.count();
    first_open_ = round + 1;
    for (std::uint32_t i = 0; i < workers_.size(); ++i) {
      const WorkerId id(i);
      auto& worker = at(id);
      if (std::binary_search(contributors.begin(), contributors.end(), id)) {
        LW_CHECK(!back.contains(id), "taken from a contributor", id, round);
        train(id, first_open_);
      } else {
        drop(id, round, back[id]);
      }
      if (worker.live) worker.next = std::max(worker.next, first_open_);
    }
  }
  /// Drops the worker's share of the round, if any. `back`: the samples that the book took back.
  void drop(WorkerId id, Iteration round, std::int64_t back) {
    std::erase_if(at(id).leases, [&](const msg::Lease& lease) {
      if (lease.first_iteration != round) return false;
      LW_CHECK(back == lease.end - lease.begin, id, round, back);
      mark(lease.epoch, lease.begin, lease.end, Mark::leased, Mark::free);
      if (lease.begin < lease.end) --iterations_;
      return true;
    });
  }
  /// The worker's first iteration whose round is open.
  Iteration position(const Worker& worker) const {
    for (const auto& lease : worker.leases)
      if (lease.first_iteration >= first_open_) return lease.first_iteration;
    return worker.next;
  }
  bool has_open_share(const Worker& worker) const {
    return limits_.spare > 0 && position(worker) < worker.next;
  }
  static bool has_share(const Worker& worker, Iteration round) {
    return std::any_of(worker.leases.begin(), worker.leases.end(),
                       [&](const msg::Lease& lease) { return lease.first_iteration == round; });
  }

  void idle(WorkerId id) {
    book_.take_back(id);
    leave(at(id));
  }
  static void leave(Worker& worker) {
    worker.live = worker.admitting = false;
    worker.leases.clear();
  }

  void begin_admission(WorkerId id) {
    auto& worker = at(id);
    worker.live = worker.admitting = true;
    worker.next = std::max(Iteration(worker.clock.value()), book_.horizon());
  }
  /// The worker starts, possibly after rounds in which it has shares.
  void end_admission(WorkerId id) {
    auto& worker = at(id);
    const auto delay = static_cast<std::uint64_t>(book_.horizon() - worker.next);
    worker.admitting = false;
    worker.next = worker.next + static_cast<std::int64_t>(rng_.below(delay + 1));
    worker.clock = Clock(worker.next.value());
    book_.skip_to(id, worker.next);
  }

  LeaseBook::Limits limits_;
  LeaseBook book_;
  std::uint32_t most_, least_;  // samples per iteration
  Rng rng_;
  std::vector<Worker> workers_;
  std::map<Epoch, std::vector<Mark>> marks_;
  std::set<LeaseId> ids_;
  std::map<Iteration, std::uint32_t> round_samples_;
  std::map<Iteration, std::int64_t> round_sums_;
  std::int64_t total_ = 0;
  std::uint64_t trained_ = 0;
  std::int64_t iterations_ = 0;  // granted with samples
  Iteration first_open_;         // with spare workers: the first round that is not closed
};

LeaseBook::Limits any_limits(bool by_rounds) {
  LeaseBook::Limits limits;
  limits.data_size = *rc::gen::inRange<std::int64_t>(1, 200);
  limits.total_samples = *rc::gen::inRange<std::int64_t>(1, 3 * limits.data_size + 1);
  limits.batch = *rc::gen::inRange<std::uint32_t>(1, 17);
  limits.lease_size = *rc::gen::inRange<std::uint32_t>(1, 60);
  limits.by_rounds = by_rounds;
  return limits;
}

void drive(const LeaseBook::Limits& limits, bool equal = true) {
  const auto count = *rc::gen::inRange<std::uint32_t>(1, 6);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto steps = *rc::gen::inRange(0, 200);
  Driver driver(limits, count, seed,
                equal ? nullptr : std::make_shared<test::AnySizes>(limits.batch, seed));
  for (int i = 0; i < steps; ++i) driver.step();
  driver.finish();
  driver.check_end();
}

}  // namespace

TEST_CASE("every sample of every epoch is trained once when workers die, idle and return") {
  rc::prop("leases on request", [] { drive(any_limits(false)); });
  rc::prop("rounds", [] { drive(any_limits(true)); });
  rc::prop("leases of unequal batches", [] { drive(any_limits(false), false); });
  rc::prop("rounds of unequal batches", [] { drive(any_limits(true), false); });
  rc::prop("rounds that are closed early", [] {
    auto limits = any_limits(true);
    limits.spare = *rc::gen::inRange<std::uint32_t>(1, 5);
    if (*rc::gen::arbitrary<bool>())
      limits.total_iterations = *rc::gen::inRange<std::uint64_t>(1, 60);
    drive(limits);
  });
}

TEST_CASE("the run ends at the limit of iterations") {
  rc::prop("with and without rounds", [] {
    auto limits = any_limits(*rc::gen::arbitrary<bool>());
    if (*rc::gen::arbitrary<bool>()) limits.total_samples = 0;
    limits.total_iterations = *rc::gen::inRange<std::uint64_t>(1, 60);
    drive(limits, *rc::gen::arbitrary<bool>());
  });
  rc::prop("without faults, all iterations of the limit are granted", [] {
    auto limits = any_limits(*rc::gen::arbitrary<bool>());
    limits.total_samples = 0;
    const auto count = *rc::gen::inRange<std::uint32_t>(1, 6);
    // Full rounds only, so that every iteration has samples.
    limits.data_size = limits.batch * count * *rc::gen::inRange<std::int64_t>(1, 20);
    limits.total_iterations = *rc::gen::inRange<std::uint64_t>(1, 60);
    Driver driver(limits, count, 1);
    driver.finish();
    driver.check_end();
    const auto granted = static_cast<std::uint64_t>(driver.iterations());
    RC_ASSERT(granted == limits.total_iterations);
  });
}

TEST_CASE(
    "without faults, rounds are slices of the epochs in worker order, in any order of requests") {
  rc::prop("any order of requests", [](std::uint64_t seed) {
    const auto limits = any_limits(true);
    const auto live = workers(*rc::gen::inRange<std::uint32_t>(1, 6));
    LeaseBook book(limits);
    Rng rng(seed);
    std::int64_t expected = 0;  // position over all epochs
    for (Iteration round; expected < limits.total_samples; ++round) {
      auto order = live;
      rng.shuffle(std::span(order));
      std::map<WorkerId, msg::Lease> shares;
      for (const WorkerId worker : order) {
        const auto lease = book.grant(worker, round, live);
        RC_ASSERT(lease.has_value());
        shares[worker] = *lease;
      }
      const Epoch epoch(expected / limits.data_size);
      const std::int64_t left =
          std::min(limits.total_samples - expected, limits.data_size - expected % limits.data_size);
      std::int64_t rest = left;
      for (const auto& [worker, share] : shares) {
        const std::int64_t size = std::min<std::int64_t>(rest, limits.batch);
        RC_ASSERT(share.epoch == epoch);
        RC_ASSERT(share.end - share.begin == size);
        if (size > 0) RC_ASSERT(share.begin == expected % limits.data_size);
        rest -= size;
        expected += size;
      }
    }
    RC_ASSERT(!book.anything_to_lease());
  });
}

TEST_CASE("leases have consecutive iterations, and a repeated request gets the same lease") {
  LeaseBook book({.data_size = 100, .total_samples = 0, .batch = 8, .lease_size = 40});
  const auto live = workers(2);
  const auto first = book.grant(WorkerId(0), Iteration(0), live);
  REQUIRE(first);
  CHECK(first->iterations() == 5);
  CHECK(text_of(book.grant(WorkerId(0), Iteration(0), live)) == text_of(first));
  const auto second = book.grant(WorkerId(0), Iteration(5), live);
  CHECK(second->begin == 40);
  const auto third = book.grant(WorkerId(1), Iteration(3), live);
  CHECK(third->begin == 80);
  CHECK(third->end == 100);  // a lease never spans two epochs
  CHECK(third->iterations() == 3);
  CHECK(book.epoch() == Epoch(1));
  CHECK(book.grant(WorkerId(1), Iteration(6), live)->epoch == Epoch(1));
  CHECK(book.horizon() == Iteration(11));
}

TEST_CASE("leases shrink to one batch towards the end of the run") {
  const std::int64_t batch = 8, lease_size = 64, workers_count = 4;
  LeaseBook book({.data_size = 1024, .total_samples = 1024, .batch = 8, .lease_size = 64});
  std::int64_t left = 1024, before = lease_size, leases = 0;
  for (Iteration next; book.anything_to_lease(); ++leases) {
    const auto lease = book.grant(WorkerId(0), next, workers(4));
    const std::int64_t size = lease->end - lease->begin;
    const std::int64_t share = left / (2 * workers_count);
    CHECK(size == std::clamp((share + batch - 1) / batch * batch, batch, lease_size));
    CHECK(size <= before);
    before = size;
    left -= size;
    next = next + lease->iterations();
  }
  CHECK(left == 0);
  CHECK(before == batch);
  CHECK(leases > 1024 / lease_size);
  // Without a limit they do not shrink.
  LeaseBook endless({.data_size = 1024, .total_samples = 0, .batch = 8, .lease_size = 64});
  for (int i = 0; i < 40; ++i)
    CHECK(endless.grant(WorkerId(0), Iteration(8 * i), workers(4))->iterations() == 8);
}

TEST_CASE("samples that a dead worker has not finished are leased first") {
  LeaseBook book({.data_size = 64, .total_samples = 64, .batch = 4, .lease_size = 16});
  const auto live = workers(2);
  const auto lost = book.grant(WorkerId(0), Iteration(0), live);
  REQUIRE(lost->end == 16);
  const auto done = book.confirm(WorkerId(0), Clock(1));
  CHECK(done == std::vector<SampleRange>{{Epoch(0), 0, 4}});
  CHECK(book.take_back(WorkerId(0)).back == std::vector<SampleRange>{{Epoch(0), 4, 16}});
  CHECK(book.samples_leased() == 4);
  const auto again = book.grant(WorkerId(1), Iteration(0), {WorkerId(1)});
  CHECK(again->begin == 4);
  CHECK(again->end == 16);
}

TEST_CASE("a clock far beyond the leases confirms only the leases") {
  LeaseBook book({.data_size = 64, .total_samples = 64, .batch = 1u << 20, .lease_size = 64});
  REQUIRE(book.grant(WorkerId(0), Iteration(0), workers(1)));
  CHECK(book.confirm(WorkerId(0), Clock((std::int64_t{1} << 62) - 1)).size() == 1);
  CHECK(book.samples_trained() == 64);
}

TEST_CASE("the largest limit of iterations is never reached") {
  LeaseBook book({.data_size = 64,
                  .total_samples = 0,
                  .total_iterations = ~std::uint64_t{0},
                  .batch = 8,
                  .lease_size = 32});
  CHECK(book.grant(WorkerId(0), Iteration(0), workers(1))->iterations() == 4);
  CHECK(book.anything_to_lease());
}
