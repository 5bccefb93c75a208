#pragma once
// LeaseBookDriver: drives a LeaseBook as the scheduler does, and marks every sample of every epoch.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "actors/scheduler/lease_book.hpp"
#include "core/check.hpp"
#include "core/rng.hpp"
#include "core/text.hpp"
#include "tests/support/worker_ids.hpp"

namespace leeway::test {

inline std::string text_of(const std::optional<msg::Lease>& lease) {
  if (!lease) return "none";
  return concat("lease ", lease->lease, " epoch ", lease->epoch, " [", lease->begin, ", ",
                lease->end, ") from ", lease->first_iteration, " batch ", lease->batch, " round ",
                lease->round_samples);
}

/// Workers that request, train, die, return and idle. Throws CheckFailed on a wrong answer.
class LeaseBookDriver {
 public:
  LeaseBookDriver(const LeaseBook::Limits& limits, std::uint32_t count, std::uint64_t seed,
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
    follow();
    const WorkerId id(static_cast<std::uint32_t>(rng_.below(workers_.size())));
    auto& worker = at(id);
    switch (rng_.below(limits_.round_size.drops() ? 14 : 12)) {
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
      if (limits_.round_size.drops()) close_round();
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
  std::int64_t snapshots() const { return snapshots_; }

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

  struct Snapshot {
    std::map<WorkerId, Iteration> ends;
    std::map<Epoch, std::set<std::int64_t>> trained;
    std::int64_t iterations = 0;
  };

  /// Sometimes begins a snapshot. Compares a complete one with what the book has followed.
  void follow() {
    if (!snapshot_ && rng_.one_in(8)) {
      snapshot_.emplace();
      snapshot_->iterations = trained_iterations_;
      for (const auto& [epoch, marks] : marks_)
        for (std::size_t i = 0; i < marks.size(); ++i)
          if (marks[i] == Mark::trained)
            snapshot_->trained[epoch].insert(static_cast<std::int64_t>(i));
      for (std::uint32_t i = 0; i < workers_.size(); ++i) {
        const WorkerId id(i);
        snapshot_->ends[id] = limits_.by_rounds
                                  ? book_.horizon()
                                  : std::max(book_.horizon(id), Iteration(at(id).clock.value()));
      }
      book_.follow_snapshot(snapshot_->ends);
    }
    if (snapshot_ && is_complete(*snapshot_)) compare_snapshot();
  }
  bool is_complete(const Snapshot& snapshot) {
    for (std::uint32_t i = 0; i < workers_.size(); ++i) {
      const auto& worker = workers_[i];
      const Iteration end = snapshot.ends.at(WorkerId(i));
      if (limits_.round_size.drops() && first_open_ < end) return false;
      if (worker.live && worker.clock.value() < end.value()) return false;
    }
    return true;
  }
  void compare_snapshot() {
    auto followed = book_.end_snapshot();
    LW_CHECK(followed.has_value());
    LW_CHECK(followed->ends == snapshot_->ends);
    SampleSupply* const supply = &followed->supply;
    auto& trained = snapshot_->trained;
    std::uint64_t samples = 0;
    for (const auto& [epoch, positions] : trained) samples += positions.size();
    LW_CHECK(supply->samples_leased() == samples, supply->samples_leased(), samples);
    if (limits_.total_iterations > 0) {
      const auto leased =
          static_cast<std::int64_t>(limits_.total_iterations - supply->iterations_left());
      LW_CHECK(leased == snapshot_->iterations, leased, snapshot_->iterations);
    }
    // Together with the trained samples, the supply has each sample once, epoch by epoch.
    for (std::uint32_t share = 0; share < supply->shares(); ++share)
      while (!marks_.empty()) {
        const auto taken = supply->take(limits_.data_size, std::nullopt, {&share, 1}).samples;
        if (taken.count() == 0 || taken.epoch > marks_.rbegin()->first) break;
        for (std::int64_t i = taken.begin; i < taken.end; ++i)
          LW_CHECK(trained[taken.epoch].insert(i).second, "leased though trained", taken.epoch, i);
      }
    for (const auto& [epoch, marks] : marks_) {
      const auto first = epoch.value() * limits_.data_size;
      const auto size =
          total_ > 0 ? std::min(limits_.data_size, total_ - first) : limits_.data_size;
      LW_CHECK(static_cast<std::int64_t>(trained[epoch].size()) == size, epoch, size);
    }
    snapshot_.reset();
    ++snapshots_;
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
      round = limits_.batch * static_cast<std::uint32_t>(limits_.round_size.of(live().size()));
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

  /// A round has at most the samples that its leases state, unless it drops pushes.
  void check_sum_of_round(const msg::Lease& lease) {
    if (!limits_.by_rounds) return;
    auto& sum = round_sums_[lease.first_iteration];
    sum += lease.end - lease.begin;
    LW_CHECK(sum <= lease.round_samples || limits_.round_size.drops(), sum, lease.first_iteration);
  }

  void train_some(WorkerId id) {
    auto& worker = at(id);
    const auto ahead = static_cast<std::uint64_t>(worker.next.value() - worker.clock.value());
    train(id, Iteration(worker.clock.value() + static_cast<std::int64_t>(rng_.below(ahead + 1))));
  }

  /// Confirms the iterations below `until`. The book must return exactly their samples.
  void train(WorkerId id, Iteration until) {
    auto& worker = at(id);
    if (limits_.round_size.drops()) until = std::min(until, first_open_);
    if (until.value() < worker.clock.value()) return;
    std::int64_t expected = 0;
    for (const auto& lease : worker.leases)
      for (std::int64_t i = lease.begin; i < lease.end; ++i) {
        const Iteration iteration = lease.first_iteration + (i - lease.begin) / lease.batch;
        if (iteration >= until || iteration.value() < worker.clock.value()) continue;
        ++expected;
        const bool in_snapshot = snapshot_ && iteration < snapshot_->ends.at(id);
        if (in_snapshot) snapshot_->trained[lease.epoch].insert(i);
        if ((i - lease.begin) % lease.batch != 0) continue;  // the first sample of an iteration
        ++trained_iterations_;
        if (in_snapshot) ++snapshot_->iterations;
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
    return limits_.round_size.drops() && position(worker) < worker.next;
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
    worker.next = Iteration(worker.clock.value());
    if (limits_.by_rounds) worker.next = std::max(worker.next, book_.horizon());
    book_.admitted(id, worker.next);
    if (snapshot_) snapshot_->ends[id] = std::min(snapshot_->ends[id], worker.next);
  }
  /// The worker starts, possibly after rounds in which it has shares.
  void end_admission(WorkerId id) {
    auto& worker = at(id);
    const auto delay =
        static_cast<std::uint64_t>(std::max<std::int64_t>(0, book_.horizon() - worker.next));
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
  std::int64_t trained_iterations_ = 0;
  std::optional<Snapshot> snapshot_;
  std::int64_t snapshots_ = 0;  // compared
  Iteration first_open_;        // for rounds that drop pushes: the first that is not closed
};

}  // namespace leeway::test
