#include "blame/replay.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include "core/text.hpp"

namespace leeway::blame {
namespace {

/// Operations that overlap by less count as one after the other: clocks are not exact.
constexpr double kClockError = 1e-4;  // s

bool is_transfer(Sharing sharing) {
  return sharing == Sharing::with_next_stage || sharing == Sharing::with_previous_stage;
}

/// The kind of the peer's operation.
std::string_view peer_of(std::string_view kind) {
  if (kind == "forward-send") return "forward-recv";
  if (kind == "forward-recv") return "forward-send";
  if (kind == "backward-send") return "backward-recv";
  return "backward-send";
}

}  // namespace

Sharing sharing_of(std::string_view kind) {
  if (kind == "forward-send" || kind == "backward-recv") return Sharing::with_next_stage;
  if (kind == "forward-recv" || kind == "backward-send") return Sharing::with_previous_stage;
  if (kind == "params-all-gather" || kind == "grads-reduce-scatter" ||
      kind == "separate-grads-all-reduce")
    return Sharing::over_replicas;
  if (kind == "embedding-grads-all-reduce") return Sharing::over_ends;
  if (kind == "optimizer-clip-main-grad") return Sharing::over_all;
  return Sharing::by_one_rank;
}

Expected<Replay> Replay::of(const OperationTrace& trace, std::vector<Operation> operations) {
  Replay replay;
  replay.operations_ = std::move(operations);
  if (const Status complete = replay.find_groups(trace); !complete) return complete.error();
  replay.find_order(trace);
  replay.own_seconds_.resize(replay.operations_.size());
  for (const Group& group : replay.groups_) {
    double begin = 0;
    for (const std::size_t member : group.members)
      begin = std::max(begin, replay.operations_[member].start);
    for (const std::size_t member : group.members) {
      const Operation& operation = replay.operations_[member];
      replay.own_seconds_[member] =
          group.is_shared ? std::max(0.0, operation.end() - begin) : operation.duration;
    }
  }
  return replay;
}

Status Replay::find_groups(const OperationTrace& trace) {
  // Replica, stage and kind of the group's first member, and its number; -1: any.
  using Key = std::tuple<int, int, std::string_view, int>;
  std::map<Key, std::size_t> known;
  group_of_.resize(operations_.size());
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const Operation& operation = operations_[i];
    const auto [replica, stage] = operation.rank;
    const std::string_view kind = trace.kinds[operation.kind];
    const bool is_end = stage == 0 || stage == trace.stages - 1;
    const auto key = [&]() -> std::optional<Key> {
      switch (sharing_of(kind)) {
        case Sharing::by_one_rank:
          return std::nullopt;
        case Sharing::with_next_stage:
          return Key{replica, stage, kind, operation.number};
        case Sharing::with_previous_stage:
          return Key{replica, stage - 1, peer_of(kind), operation.number};
        case Sharing::over_replicas:
          return Key{-1, stage, kind, operation.number};
        case Sharing::over_ends:
          return Key{replica, is_end ? -1 : stage, kind, operation.number};
        case Sharing::over_all:
          return Key{-1, -1, kind, operation.number};
      }
      return std::nullopt;
    }();
    const auto [found, is_new] =
        key ? known.try_emplace(*key, groups_.size()) : std::pair(known.end(), true);
    group_of_[i] = is_new ? groups_.size() : found->second;
    if (is_new) groups_.push_back({{}, key.has_value()});
    groups_[group_of_[i]].members.push_back(i);
  }
  for (const Group& group : groups_) {
    const Operation& first = operations_[group.members.front()];
    const std::string& kind = trace.kinds[first.kind];
    if (!is_transfer(sharing_of(kind)) || group.members.size() == 2) continue;
    return Error{concat("step ", first.step, ": ", kind, ' ', first.number, " of replica ",
                        first.rank.replica, ", stage ", first.rank.stage, " has ",
                        group.members.size() < 2 ? "no" : "more than one", ' ', peer_of(kind),
                        " at the other stage")};
  }
  return {};
}

void Replay::find_order(const OperationTrace& trace) {
  std::map<Rank, std::vector<std::size_t>> by_rank;
  for (std::size_t i = 0; i < operations_.size(); ++i) by_rank[operations_[i].rank].push_back(i);
  next_.resize(operations_.size());
  previous_.resize(operations_.size());
  constexpr std::size_t kComputations = ~std::size_t{0};
  for (auto& [rank, all] : by_rank) {
    std::ranges::stable_sort(all, {}, [&](std::size_t i) { return operations_[i].start; });
    std::map<std::size_t, std::vector<std::size_t>> streams;  // in order of start
    for (const std::size_t i : all) {
      const std::size_t kind = operations_[i].kind;
      const bool is_shared = sharing_of(trace.kinds[kind]) != Sharing::by_one_rank;
      const std::size_t own = is_shared ? kind : kComputations;
      for (const auto& [stream, started] : streams) {
        // The last one of the stream that had ended; of the own stream, the last one.
        auto last = started.rbegin();
        if (stream != own)
          last = std::find_if(started.rbegin(), started.rend(), [&](std::size_t other) {
            return operations_[other].end() <= operations_[i].start + kClockError;
          });
        if (last == started.rend()) continue;
        next_[*last].push_back(i);
        ++previous_[i];
      }
      streams[own].push_back(i);
    }
  }
}

double Replay::measured() const {
  double begin = operations_.front().start, end = begin;
  for (const Operation& operation : operations_) {
    begin = std::min(begin, operation.start);
    end = std::max(end, operation.end());
  }
  return end - begin;
}

Expected<double> Replay::play(std::span<const double> seconds) const {
  auto waits_for = previous_;
  std::vector<double> starts(operations_.size()), begins(groups_.size());
  std::vector<std::size_t> started(groups_.size()), ready;
  for (std::size_t i = 0; i < operations_.size(); ++i)
    if (waits_for[i] == 0) ready.push_back(i);
  std::size_t ended = 0;
  double last_end = 0;
  while (!ready.empty()) {
    const std::size_t operation = ready.back();
    ready.pop_back();
    const std::size_t group = group_of_[operation];
    const auto& members = groups_[group].members;
    begins[group] = std::max(begins[group], starts[operation]);
    if (++started[group] < members.size()) continue;
    for (const std::size_t member : members) {
      const double end = begins[group] + seconds[member];
      last_end = std::max(last_end, end);
      ++ended;
      for (const std::size_t next : next_[member]) {
        starts[next] = std::max(starts[next], end);
        if (--waits_for[next] == 0) ready.push_back(next);
      }
    }
  }
  if (ended == operations_.size()) return last_end;
  return Error{concat("step ", operations_.front().step,
                      ": operations of different ranks wait for each other; the numbers in seq_id "
                      "must count each kind in the same order on all its ranks")};
}

}  // namespace leeway::blame
