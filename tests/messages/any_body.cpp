#include "tests/messages/any_body.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "core/limits.hpp"
#include "tests/messages/message_fields.hpp"

namespace leeway::test {
namespace {

// ---- random values, the ends of each range among them ----

template <class T>
T any_integer(T least, T most) {
  const auto ends = rc::gen::element(least, most);
  const auto all = rc::gen::map(rc::gen::arbitrary<T>(), [=](T value) {
    return value < least || value > most ? least : value;
  });
  return *rc::gen::weightedOneOf<T>({{1, ends}, {4, all}});
}

void randomize(bool& out) {
  out = *rc::gen::arbitrary<bool>();
}
void randomize(std::uint16_t& out) {
  out = any_integer<std::uint16_t>(0, std::numeric_limits<std::uint16_t>::max());
}
void randomize(std::uint32_t& out) {
  out = any_integer<std::uint32_t>(0, std::numeric_limits<std::uint32_t>::max());
}
void randomize(std::uint64_t& out) {
  out = any_integer<std::uint64_t>(0, std::numeric_limits<std::uint64_t>::max());
}
void randomize(std::int64_t& out) {
  out = any_integer<std::int64_t>(0, kCountEnd - 1);
}
void randomize(double& out) {
  out = *rc::gen::weightedOneOf<double>(
      {{4, rc::gen::arbitrary<double>()},
       {1, rc::gen::element(std::numeric_limits<double>::infinity(), -0.0,
                            std::numeric_limits<double>::quiet_NaN())}});
}
void randomize(std::string& out) {
  out = *rc::gen::arbitrary<std::string>();
}
void randomize(Duration& out) {
  randomize(out.ns);
}
void randomize(WorkerId& out) {
  out = WorkerId(any_integer<std::uint32_t>(0, limits::kMaxWorkers - 1));
}
void randomize(BlockId& out) {
  out = BlockId(any_integer<std::uint32_t>(0, limits::kMaxBlocks - 1));
}
template <class Tag, class Rep>
void randomize(Id<Tag, Rep>& out) {
  out = Id<Tag, Rep>(any_integer<Rep>(0, std::numeric_limits<Rep>::max()));
}
template <class Tag>
void randomize(Count<Tag>& out) {
  out = Count<Tag>(any_integer<std::int64_t>(0, kCountEnd - 1));
}

constexpr int last_of(DType) {
  return static_cast<int>(DType::i32);
}
constexpr int last_of(msg::Push::Kind) {
  return static_cast<int>(msg::Push::Kind::empty);
}
constexpr int last_of(msg::Pushed::Durability) {
  return static_cast<int>(msg::Pushed::Durability::durable);
}
constexpr int last_of(msg::Refused::Reason) {
  return static_cast<int>(msg::Refused::Reason::gap);
}
constexpr int last_of(msg::RunEnded::Reason) {
  return static_cast<int>(msg::RunEnded::Reason::failed);
}
template <class T>
requires std::is_enum_v<T>
void randomize(T& out) {
  out = static_cast<T>(*rc::gen::inRange(0, last_of(T{}) + 1));
}

void randomize_tensor(DType& dtype, Shape& shape, Blob& data) {
  randomize(dtype);
  const auto extents = *rc::gen::container<std::vector<std::int64_t>>(
      *rc::gen::inRange<std::size_t>(0, 5), rc::gen::inRange<std::int64_t>(0, 5));
  shape = Shape(extents);
  // A blob may be larger than its tensor.
  data = Blob::allocate(static_cast<std::size_t>(shape.count()) * size_of(dtype) +
                        *rc::gen::element<std::size_t>(0, 3, 64));
}
void randomize(msg::BlockData& out) {
  randomize(out.block);
  randomize(out.version);
  randomize_tensor(out.dtype, out.shape, out.data);
}
void randomize(msg::StageTensor& out) {
  randomize_tensor(out.dtype, out.shape, out.data);
}
template <class T>
void randomize(T& out);
template <class T>
void randomize(std::vector<T>& out) {
  out.resize(*rc::gen::inRange<std::size_t>(0, 5));
  for (auto& item : out) randomize(item);
}

// What a message promises beyond the range of each field.
template <class T>
void make_valid(T&) {}
void make_valid(msg::Pull& pull) {
  pull.own_clock = std::min(pull.own_clock, Clock(pull.iteration.value()));
}
void make_valid(msg::Push& push) {
  push.bucket_count = any_integer<std::uint32_t>(1, limits::kMaxBuckets);
  push.bucket %= push.bucket_count;
  push.weight = *rc::gen::element(0.0, 0.25, 1.0, 1e300);
  if (push.kind == msg::Push::Kind::empty)
    for (auto& block : push.blocks) block = {block.block, block.version};
}
void make_valid(msg::Pushed& pushed) {
  pushed.bucket %= limits::kMaxBuckets;
}
template <class T>
void make_ascending(std::vector<T>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}
void make_valid(msg::Lease& lease) {
  lease.end = std::max(lease.begin, lease.end);
  lease.batch = std::max(lease.batch, 1u);
  lease.round_samples = std::max(lease.round_samples, 1u);
  make_ascending(lease.applied);
}
void make_valid(msg::MiniBatch& batch) {
  batch.end = std::max(batch.begin, batch.end);
  batch.round_samples = std::max(batch.round_samples, 1u);
  make_ascending(batch.applied);
}
void make_valid(msg::Fenced& fenced) {
  for (auto& part : fenced.applied) part %= limits::kMaxBuckets;
  make_ascending(fenced.applied);
}
void make_valid(msg::RoundClosed& closed) {
  make_ascending(closed.contributors);
}
void make_valid(msg::CloseRound& close) {
  make_ascending(close.contributors);
}
void make_valid(msg::ShardReport& report) {
  report.lags.resize(*rc::gen::element<std::size_t>(0, 3, limits::kLagBins));
}

/// A message: all its fields.
template <class T>
void randomize(T& out) {
  std::apply([](auto&... field) { (randomize(field), ...); }, fields(out));
  make_valid(out);
}

// ---- envelopes ----

template <class T>
Envelope any_envelope_of() {
  Envelope out;
  randomize(out.incarnation);
  randomize(out.placement);
  randomize(out.shard_incarnation);
  T body{};
  randomize(body);
  out.body = std::move(body);
  return out;
}

}  // namespace

std::vector<Envelope> any_envelopes() {
  std::vector<Envelope> all;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (all.push_back(any_envelope_of<std::variant_alternative_t<I, Body>>()), ...);
  }
  (std::make_index_sequence<std::variant_size_v<Body>>());
  return all;
}

}  // namespace leeway::test
