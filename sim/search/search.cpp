#include "sim/search/search.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

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

  void check_seed(std::uint64_t seed) {
    const Plan plan = draw_plan(base_, seed, options_.draw);
    const bool twice = options_.twice_one_in > 0 && seed % options_.twice_one_in == 0;
    const Trial trial = attempt(plan, twice);
    if (!trial.property.empty()) fail(seed, plan, trial, twice);
    std::lock_guard lock(mutex_);
    ++result_.seeds;
    result_.events += trial.events;
    result_.faults += plan.faults.size();
    if (result_.failures.size() >= options_.most_failures) stop_ = true;
  }

  /// Other exceptions, such as a missing file, are failures as well.
  Trial attempt(const Plan& plan, bool twice) const {
    try {
      return try_plan(plan, options_.make_job, twice);
    } catch (const std::exception& error) {
      return {"no other exception", error.what(), 0};
    }
  }

  void fail(std::uint64_t seed, const Plan& plan, const Trial& trial, bool twice) {
    Failure failure{seed, plan, plan, trial};
    const auto fails = [&](const Plan& candidate) {
      if (stop_) return false;
      auto again = attempt(candidate, twice);
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
