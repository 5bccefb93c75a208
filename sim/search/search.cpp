#include "sim/search/search.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "sim/search/crash_trial.hpp"
#include "sim/search/loss_trial.hpp"
#include "sim/search/shrink.hpp"

namespace leeway::sim {

namespace {

class Search {
 public:
  Search(const Job& base, const SearchOptions& options)
      : base_(base), options_(options), next_(options.first) {}

  SearchResult run(const std::function<bool(const SearchResult&)>& progress) {
    const auto began = std::chrono::steady_clock::now();
    const auto elapsed = [&] { return std::chrono::steady_clock::now() - began; };
    unsigned threads = options_.threads ? options_.threads : std::thread::hardware_concurrency();
    threads = std::max(threads, 1u);
    running_ = threads;
    std::vector<std::jthread> all;
    for (unsigned i = 0; i < threads; ++i) all.emplace_back([this] { work(); });
    std::unique_lock lock(mutex_);
    while (running_ > 0) {
      finished_.wait_for(lock, std::chrono::seconds(1), [&] { return running_ == 0; });
      result_.took = elapsed();
      if (!progress) continue;
      const SearchResult now = result_;
      lock.unlock();
      if (!progress(now)) stop_ = true;
      lock.lock();
    }
    result_.took = elapsed();
    std::sort(result_.failures.begin(), result_.failures.end(),
              [](const Failure& a, const Failure& b) { return a.seed < b.seed; });
    return result_;
  }

 private:
  void work() {
    while (!stop_) {
      const std::uint64_t seed = next_.fetch_add(1);
      if (seed > options_.last) break;
      check_seed(seed);
    }
    std::lock_guard lock(mutex_);
    --running_;
    finished_.notify_all();
  }

  TrialKind kind_of(std::uint64_t seed) const {
    const auto is_one_in = [&](std::uint64_t count, std::uint64_t rest) {
      return count > 0 && seed % count == rest;
    };
    if (is_one_in(options_.crash_one_in, options_.crash_one_in / 2)) return TrialKind::crashes;
    if (is_one_in(options_.loss_one_in, options_.loss_one_in / 4)) return TrialKind::losses;
    return is_one_in(options_.twice_one_in, 0) ? TrialKind::twice : TrialKind::once;
  }

  void check_seed(std::uint64_t seed) {
    const Plan plan = draw_plan(base_, seed, options_.draw);
    const TrialKind kind = kind_of(seed);
    const Trial trial = attempt(plan, kind);
    if (!trial.property.empty()) fail(seed, plan, trial, kind);
    std::lock_guard lock(mutex_);
    ++result_.seeds;
    result_.events += trial.events;
    result_.faults += plan.faults.size();
    result_.crashes += trial.crashes;
    result_.losses += trial.losses;
    result_.cut_short += trial.is_cut_short ? 1 : 0;
    if (result_.failures.size() >= options_.most_failures) stop_ = true;
  }

  /// Other exceptions, such as a missing file, are failures as well.
  Trial attempt(const Plan& plan, TrialKind kind) const {
    try {
      if (kind == TrialKind::crashes) return try_crashes(plan, options_.make_job);
      if (kind == TrialKind::losses) return try_losses(plan, options_.make_job);
      return try_plan(plan, options_.make_job, kind == TrialKind::twice);
    } catch (const std::exception& error) {
      return {.property = "no other exception", .report = error.what()};
    }
  }

  void fail(std::uint64_t seed, const Plan& plan, const Trial& trial, TrialKind kind) {
    Failure failure{seed, plan, plan, trial, kind};
    const auto fails = [&](const Plan& candidate) {
      if (stop_) return false;
      auto again = attempt(candidate, kind);
      if (again.property != trial.property) return false;
      failure.trial = std::move(again);
      return true;
    };
    failure.shrunk = shrink(plan, fails, options_.shrink_trials);
    std::lock_guard lock(mutex_);
    result_.failures.push_back(std::move(failure));
  }

  const Job& base_;
  const SearchOptions& options_;
  std::atomic<std::uint64_t> next_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable finished_;
  unsigned running_ = 0;
  SearchResult result_;
};

}  // namespace

SearchResult search(const Job& base, const SearchOptions& options,
                    const std::function<bool(const SearchResult&)>& progress) {
  return Search(base, options).run(progress);
}

}  // namespace leeway::sim
