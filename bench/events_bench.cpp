// Cost of an event for each of its receivers, and of the state that a page receives.
//
//   events_bench [--benchmark_filter=file]
//
// The events are those of workers under ssp, as a run emits them: 11 for each iteration with one
// shard. Items are events, except for `state` and `change`.
#include <benchmark/benchmark.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "dashboard/feed.hpp"
#include "monitoring/event_file.hpp"
#include "monitoring/event_log.hpp"

namespace {

using namespace leeway;

/// The events of `workers` workers that compute for 0.9 to 1.1 s each, one of them for 2 s.
std::vector<EventRecord> events_of(std::uint32_t workers, std::int64_t iterations) {
  std::vector<EventRecord> events;
  for (std::int64_t i = 0; i < iterations; ++i)
    for (std::uint32_t id = 0; id < workers; ++id) {
      const std::int64_t begin = 2'000'000'000 * i + 1'000'003 * id % 200'000'000;
      const std::int64_t end =
          begin + (id == 0 ? 2'000'000'000 : 900'000'000 + 7'919 * (id + i) % 200'000'000);
      const WorkerId worker(id);
      const Iteration now(i), next(i + 1);
      const auto add = [&](Address actor, std::int64_t ns, const Event& event) {
        events.push_back({actor, Instant{ns}, event});
      };
      add(kScheduler, begin, event::LeaseGranted{worker, next, Epoch(0), 64 * i, 64 * i + 64});
      add(leeway::worker(id), begin, event::StepStarted{worker, now, 64, Duration{end - begin}});
      add(shard(0), begin + 1000, event::PullParked{worker, next, Clock(i)});
      for (std::uint32_t bucket = 0; bucket < 3; ++bucket)
        add(shard(0), end, event::BucketApplied{worker, Session(1), now, bucket, 64});
      add(shard(0), end, event::ClockMoved{worker, Clock(i + 1)});
      add(leeway::worker(id), end, event::StepFinished{worker, now, 64});
      add(kScheduler, end, event::Trained{worker, Epoch(0), 64 * i, 64 * i + 64});
      add(shard(0), end, event::PullReleased{worker, next, WorkerId(0)});
      add(shard(0), end, event::PullAnswered{worker, next, Clock(i), Clock(i)});
    }
  return events;
}

/// A file that is removed at the end.
class ScratchFile {
 public:
  explicit ScratchFile(const char* name)
      : path_(std::filesystem::temp_directory_path() / (std::to_string(::getpid()) + name)) {}
  ~ScratchFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Calls take(event) for each of the events, again and again.
template <class Take>
void measure(benchmark::State& state, Take&& take) {
  const auto events = events_of(4, 1000);
  for (auto _ : state)
    for (const auto& [actor, at, event] : events) take(actor, at, event);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(events.size()));
}

void file(benchmark::State& state) {
  const ScratchFile scratch("-events.bin");
  EventFile file(scratch.path(), EventFile::IfSlow::wait);
  measure(state, [&](auto actor, auto at, const auto& event) { file.add(actor, at, event); });
  file.finish();
  state.counters["bytes/event"] =
      static_cast<double>(file.bytes()) / static_cast<double>(file.written());
}
BENCHMARK(file)->UseRealTime();

void json_lines(benchmark::State& state) {
  const ScratchFile scratch("-events.jsonl");
  EventLog log(scratch.path());
  measure(state, [&](auto actor, auto at, const auto& event) { log.write(actor, at, event); });
}
BENCHMARK(json_lines)->UseRealTime();

dashboard::RunInfo info_of(std::uint32_t workers) {
  return {.name = "bench", .kind = "threads", .policy = "ssp(1)", .workers = workers, .bound = 1};
}

/// The actors' threads queue an event, while the feed counts others.
void queue(benchmark::State& state) {
  dashboard::Feed feed(info_of(4), dashboard::Feed::IfFull::wait);
  measure(state, [&](auto actor, auto at, const auto& event) { feed.event(actor, at, event); });
}
BENCHMARK(queue)->UseRealTime();

/// The feed's thread counts it.
void count(benchmark::State& state) {
  dashboard::RunHistory history(info_of(4));
  measure(state, [&](auto actor, auto at, const auto& event) { history.event(actor, at, event); });
}
BENCHMARK(count)->UseRealTime();

void fill(dashboard::RunHistory& history, std::uint32_t workers) {
  for (const auto& [actor, at, event] : events_of(workers, 200)) history.event(actor, at, event);
}

/// The whole state as JSON, for `workers` workers.
void state(benchmark::State& bench) {
  const auto workers = static_cast<std::uint32_t>(bench.range(0));
  dashboard::RunHistory history(info_of(workers));
  fill(history, workers);
  std::size_t bytes = 0;
  for (auto _ : bench) bytes = dashboard::text_of(dashboard::state_of(history, {})).size();
  bench.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(state)->Arg(4)->Arg(1000)->Unit(benchmark::kMicrosecond);

/// The change since the last interval.
void change(benchmark::State& bench) {
  const auto workers = static_cast<std::uint32_t>(bench.range(0));
  dashboard::RunHistory history(info_of(workers));
  fill(history, workers);
  const std::uint64_t before = history.revision();
  history.event(worker(0), Instant{400'000'000'000},
                event::StepStarted{WorkerId(0), Iteration(200), 64, seconds(1)});
  std::size_t bytes = 0;
  for (auto _ : bench) bytes = dashboard::text_of(dashboard::state_of(history, {}, before)).size();
  bench.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(change)->Arg(4)->Arg(1000)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
