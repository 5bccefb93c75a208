#pragma once
// The fields of every message, by one list: for generators and comparisons.
//
// `fields` takes each message apart by structured bindings, so that a field added to one stops
// compiling here until it is listed.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "messages/envelope.hpp"

namespace leeway::test {

// ---- the fields of each message ----

#define LEEWAY_FIELDS(Type, ...)  \
  inline auto fields(Type& in) {  \
    auto& [__VA_ARGS__] = in;     \
    return std::tie(__VA_ARGS__); \
  }
LEEWAY_FIELDS(msg::Pull, a, b, c)
LEEWAY_FIELDS(msg::Weights, a, b)
LEEWAY_FIELDS(msg::Push, a, b, c, d, e, f, g, h)
LEEWAY_FIELDS(msg::Pushed, a, b, c, d)
LEEWAY_FIELDS(msg::Refused, a, b, c)
LEEWAY_FIELDS(msg::Start, a, b)
LEEWAY_FIELDS(msg::WantLease, a, b, c, d, e, f)
LEEWAY_FIELDS(msg::Lease, a, b, c, d, e, f, g, h)
LEEWAY_FIELDS(msg::AppliedBucket, a, b, c)
LEEWAY_FIELDS(msg::NoData, a)
LEEWAY_FIELDS(msg::PushDropped, a)
LEEWAY_FIELDS(msg::Idle, a, b)
LEEWAY_FIELDS(msg::Diverged, a, b, c)
LEEWAY_FIELDS(msg::Stopped, a, b)
LEEWAY_FIELDS(msg::Admit, a, b, c, d)
LEEWAY_FIELDS(msg::Admitted, a, b, c)
LEEWAY_FIELDS(msg::Raise, a, b, c)
LEEWAY_FIELDS(msg::Fence, a, b)
LEEWAY_FIELDS(msg::Fenced, a, b, c)
LEEWAY_FIELDS(msg::Remove, a, b)
LEEWAY_FIELDS(msg::Bound, a, b)
LEEWAY_FIELDS(msg::RoundClosed, a, b, c)
LEEWAY_FIELDS(msg::CloseRound, a, b, c)
LEEWAY_FIELDS(msg::Snapshot, a, b, c)
LEEWAY_FIELDS(msg::SnapshotVote, a, b, c)
LEEWAY_FIELDS(msg::SnapshotState, a, b, c, d)
LEEWAY_FIELDS(msg::WorkerReport, a, b, c, d, e, f, g, h, i, j, k)
LEEWAY_FIELDS(msg::ShardReport, a, b, c, d, e, f, g, h, i, j, k, l)
LEEWAY_FIELDS(msg::ShardReport::Wait, a, b, c, d)
LEEWAY_FIELDS(msg::SchedulerReport, a, b, c, d, e)
LEEWAY_FIELDS(msg::Evicted, a, b, c, d)
LEEWAY_FIELDS(msg::RunEnded, a, b, c, d, e)
LEEWAY_FIELDS(msg::Evaluated, a, b, c)
LEEWAY_FIELDS(msg::Leave, a)
LEEWAY_FIELDS(msg::MiniBatch, a, b, c, d, e, f, g)
LEEWAY_FIELDS(msg::NoMore, a, b)
LEEWAY_FIELDS(msg::Activation, a, b, c, d, e)
LEEWAY_FIELDS(msg::OutputGradient, a, b, c, d, e, f)
LEEWAY_FIELDS(msg::GivenUp, a, b)
#undef LEEWAY_FIELDS
template <class T>
requires std::is_empty_v<T>  // Join, Stop, Finish, Interrupt
    std::tuple<> fields(T&) {
  return {};
}

// ---- equality: numbers bit by bit, tensors by reference ----

template <class T>
bool same(const T& a, const T& b);
inline bool same(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}
inline bool same(const msg::BlockData& a, const msg::BlockData& b) {
  return a.block == b.block && a.version == b.version && a.dtype == b.dtype && a.shape == b.shape &&
         a.data.same_as(b.data);
}
inline bool same(const msg::StageTensor& a, const msg::StageTensor& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.data.same_as(b.data);
}
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const T& left, const T& right) { return same(left, right); });
}
template <class T>
bool same(const T& a, const T& b) {
  if constexpr (requires { a == b; }) {
    return a == b;
  } else {
    const auto all = [&]<std::size_t... I>([[maybe_unused]] auto left, [[maybe_unused]] auto right,
                                           std::index_sequence<I...>) {
      return (same(std::as_const(std::get<I>(left)), std::as_const(std::get<I>(right))) && ...);
    };
    const auto left = fields(const_cast<T&>(a));
    return all(left, fields(const_cast<T&>(b)),
               std::make_index_sequence<std::tuple_size_v<decltype(left)>>());
  }
}

}  // namespace leeway::test
