#include "blame/run_waits.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "blame/result_file.hpp"
#include "blame/sums_by.hpp"
#include "monitoring/event_file.hpp"

namespace leeway::blame {
namespace {

using Json = nlohmann::json;
using Rows = std::map<std::pair<std::size_t, Cause>, double>;

// ---- from events ----

Expected<Rows> follow(const std::string& path) {
  Rows rows;
  WaitFollower follower([&](const Wait& wait) {
    rows[{wait.worker, wait.cause}] += (wait.end - wait.begin).seconds();
  });
  const auto read = read_events(path, [&](const EventRecord& record) {
    follower.handle(record.actor, record.at, record.event);
  });
  if (!read) return read.error();
  return rows;
}

// ---- from the result ----

/// The rows of a stage, whose neighbours' shares are in the result.
void add_stage(const Json& entry, std::size_t worker, Rows& rows) {
  const double before = entry.at("wait_for_stage_before_seconds");
  const double after = entry.at("wait_for_stage_after_seconds");
  rows[{worker, {Cause::Kind::stage_before}}] += before;
  rows[{worker, {Cause::Kind::stage_after}}] += after;
  rows[{worker, {Cause::Kind::other}}] += entry.at("wait_seconds").get<double>() - before - after;
}

/// The rows of a worker. `parked`: seconds that its pulls were parked for others.
void add_worker(const Json& entry, std::size_t worker, const std::map<std::size_t, double>& parked,
                Rows& rows) {
  const double wait = entry.at("wait_seconds");
  double sum = 0;
  for (const auto& [other, seconds] : parked) sum += seconds;
  const double scale = sum > wait ? wait / sum : 1;
  for (const auto& [other, seconds] : parked)
    rows[{worker, {Cause::Kind::worker, other}}] += scale * seconds;
  rows[{worker, {Cause::Kind::other}}] += wait - scale * sum;
}

Rows divide(const Json& result) {
  std::map<std::size_t, std::map<std::size_t, double>> parked;
  for (const Json& wait : result.at("waits"))
    parked[wait.at("worker")][wait.at("for_worker")] += wait.at("seconds").get<double>();
  Rows rows;
  for (const Json& entry : result.at("workers")) {
    const std::size_t worker = entry.at("worker");
    if (entry.contains("stage"))
      add_stage(entry, worker, rows);
    else
      add_worker(entry, worker, parked[worker], rows);
  }
  return rows;
}

}  // namespace

std::vector<std::pair<Cause, double>> RunWaits::by_cause() const {
  return sums_by(rows, &Row::cause);
}

double RunWaits::attributed() const {
  double sum = 0;
  for (const Row& row : rows) sum += row.seconds;
  return sum;
}

Expected<RunWaits> read_run_waits(const std::string& folder) {
  const auto events = events_path(folder);
  RunWaits waits;
  Expected<Rows> rows = Rows{};
  const auto read = read_result(folder, [&](const Json& result) {
    waits.name = result.at("name");
    waits.workers = result.at("workers").size();
    waits.compute = worker_seconds(result).compute;
    waits.wait = worker_seconds(result).wait;
    for (const Json& entry : result.at("workers")) waits.has_stages |= entry.contains("stage");
    waits.from_events = events && !waits.has_stages;
    rows = waits.from_events ? follow(*events) : Expected<Rows>(divide(result));
  });
  if (!read) return read.error();
  if (!rows) return rows.error();
  for (const auto& [key, seconds] : *rows)
    if (seconds > 0) waits.rows.push_back({key.first, key.second, seconds});
  std::ranges::stable_sort(waits.rows, std::greater<>(), &RunWaits::Row::seconds);
  return waits;
}

}  // namespace leeway::blame
