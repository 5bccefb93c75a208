#include "dashboard/feed.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/memory.hpp"
#include "core/text.hpp"

namespace leeway::dashboard {
namespace {

/// The feed counts events in batches: waking up for each would cost more than counting it.
constexpr std::chrono::milliseconds kBatch(20);

}  // namespace

Feed::Feed(RunInfo info, IfFull if_full, Duration lateness)
    : if_full_(if_full),
      lateness_(lateness),
      history_(std::move(info)),
      thread_([this] { run_thread(); }) {}

Feed::~Feed() {
  {
    std::lock_guard lock(queue_mutex_);
    stops_ = true;
  }
  queue_changed_.notify_all();
  thread_.join();
}

void Feed::event(Address actor, Instant at, const Event& event) {
  std::unique_lock lock(queue_mutex_);
  if (if_full_ == IfFull::wait)
    queue_changed_.wait(lock, [&] { return queue_.size() < kMostEvents; });
  if (queue_.size() >= kMostEvents) {
    ++lost_;
    return;
  }
  queue_.push_back({actor, at, event});
}

void Feed::lost(std::uint64_t events) {
  std::lock_guard lock(queue_mutex_);
  lost_ += events;
}

void Feed::run_thread() {
  std::unique_lock lock(queue_mutex_);
  while (!stops_) {
    queue_changed_.wait_for(lock, kBatch, [&] { return stops_; });
    lock.unlock();
    update([](RunHistory&) {});
    lock.lock();
  }
}

void Feed::count_events(bool all) {
  std::vector<EventRecord> events;
  {
    std::lock_guard lock(queue_mutex_);
    std::swap(events, queue_);
  }
  queue_changed_.notify_all();
  if (lateness_.ns > 0) {
    early_.insert(early_.end(), std::make_move_iterator(events.begin()),
                  std::make_move_iterator(events.end()));
    std::ranges::stable_sort(early_, {}, &EventRecord::at);
    auto ready = early_.end();
    if (!all && !early_.empty())
      ready = std::ranges::upper_bound(early_, early_.back().at.ns - lateness_.ns, {},
                                       [](const auto& record) { return record.at.ns; });
    events.assign(std::make_move_iterator(early_.begin()), std::make_move_iterator(ready));
    early_.erase(early_.begin(), ready);
  }
  for (const auto& [actor, at, event] : events) history_.event(actor, at, event);
}

void Feed::progress(const Progress& progress) {
  update([&](RunHistory& history) {
    history.progress(progress);
    history.memory(resident_bytes());
  });
}

void Feed::evaluated(const EvaluationResult& result) {
  update([&](RunHistory& history) { history.evaluated(result); });
}

void Feed::checkpointed(const CheckpointResult& result) {
  update([&](RunHistory& history) { history.checkpointed(result); });
}

void Feed::evicted(WorkerId worker, const msg::Evicted& evicted) {
  update([&](RunHistory& history) {
    history.explain_eviction(worker, evicted.reason, history.now());
  });
}

void Feed::ended(const RunTotals& totals) {
  update(
      [&](RunHistory& history) {
        history.progress(totals.last);
        history.ended((totals.last.now - Instant()).seconds(),
                      std::string(name_of(totals.end.reason)), totals.end.text);
      },
      true);
}

void Feed::failed(const std::string& error) {
  update(
      [&](RunHistory& history) {
        if (!history.end()) history.ended(history.now(), "failed", error);
      },
      true);
}

Feed::State Feed::state(std::uint64_t since) {
  ProcessFigures figures{.memory_bytes = resident_bytes()};
  {
    std::lock_guard lock(queue_mutex_);
    figures.lost_events = lost_;
  }
  nlohmann::ordered_json json;
  State state;
  {
    std::lock_guard lock(history_mutex_);
    state.revision = history_.revision();
    state.has_ended = history_.end().has_value();
    json = state_of(history_, figures, since);
  }
  state.json = text_of(json);
  return state;
}

}  // namespace leeway::dashboard
