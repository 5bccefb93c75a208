#pragma once
// Between the values of messages/*.hpp and their Cap'n Proto form. Included by messages/*.cpp
// alone.
#include <capnp/message.h>

#include <string>

#include "core/limits.hpp"
#include "core/text.hpp"
#include "envelope.capnp.h"
#include "messages/envelope.hpp"

namespace leeway::wire {

/// Limits for reading `words` of a message from a stranger. An honest message visits each word a
/// few times at most, so pointers that share a target cannot amplify it.
inline capnp::ReaderOptions reader_options(std::size_t words) {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = 8 * words + 64;
  options.nestingLimit = 16;
  return options;
}

/// Thrown while reading; `decode` turns it into an Error. The text names the field and what is
/// wrong with it.
struct Malformed {
  std::string text;
};

template <class... Values>
void require(bool condition, const Values&... values) {
  if (!condition) throw Malformed{concat(values...)};
}

/// A count of iterations: zero or more, and far from overflow.
inline std::int64_t read_count(std::int64_t value, const char* field) {
  require(value >= 0 && value < (std::int64_t{1} << 62), field, " is ", value,
          ", must be 0 or more");
  return value;
}
inline std::uint32_t read_index(std::uint32_t value, std::uint32_t limit, const char* field) {
  require(value < limit, field, " is ", value, ", must be below ", limit);
  return value;
}
inline WorkerId read_worker(std::uint32_t value) {
  return WorkerId(read_index(value, limits::kMaxWorkers, "worker"));
}

/// Texts whole, also beyond a zero byte.
inline capnp::Text::Reader text_of(const std::string& in) {
  return {in.c_str(), in.size()};
}
inline std::string read_text(capnp::Text::Reader in) {
  return {in.begin(), in.size()};
}

/// An enum of the schema to ours, which lists the same values in the same order up to `last`.
template <class To, class From>
To read_enum(From from, To last, const char* field) {
  require(static_cast<unsigned>(from) <= static_cast<unsigned>(last), field,
          " has the unknown value ", static_cast<unsigned>(from));
  return static_cast<To>(from);
}

using Blobs = std::vector<Blob>;
using ConstBlobs = std::span<const Blob>;
using BlockListBuilder = capnp::List<schema::BlockRef>::Builder;
using BlockListReader = capnp::List<schema::BlockRef>::Reader;

/// Writes a tensor's reference and appends its data to `blobs`.
void write_tensor(schema::TensorRef::Builder out, DType dtype, const Shape& in, const Blob& data,
                  Blobs& blobs);
void read_tensor(schema::TensorRef::Reader in, ConstBlobs blobs, DType& dtype, Shape& out,
                 Blob& data);

/// Writes the blocks' references and appends their data to `blobs`.
void write_blocks(BlockListBuilder out, const std::vector<msg::BlockData>& blocks, Blobs& blobs);
std::vector<msg::BlockData> read_blocks(BlockListReader in, ConstBlobs blobs);

void write(schema::Pull::Builder out, const msg::Pull& in);
void write(schema::Weights::Builder out, const msg::Weights& in, Blobs& blobs);
void write(schema::Push::Builder out, const msg::Push& in, Blobs& blobs);
void write(schema::Pushed::Builder out, const msg::Pushed& in);
void write(schema::Refused::Builder out, const msg::Refused& in);
msg::Pull read(schema::Pull::Reader in);
msg::Weights read(schema::Weights::Reader in, ConstBlobs blobs);
msg::Push read(schema::Push::Reader in, ConstBlobs blobs);
msg::Pushed read(schema::Pushed::Reader in);
msg::Refused read(schema::Refused::Reader in);

using AppliedListBuilder = capnp::List<schema::AppliedBucket>::Builder;
using AppliedListReader = capnp::List<schema::AppliedBucket>::Reader;

void write_applied(AppliedListBuilder out, const std::vector<msg::AppliedBucket>& in);
std::vector<msg::AppliedBucket> read_applied(AppliedListReader in);

void write(schema::MiniBatch::Builder out, const msg::MiniBatch& in);
void write(schema::NoMore::Builder out, const msg::NoMore& in);
void write(schema::Activation::Builder out, const msg::Activation& in, Blobs& blobs);
void write(schema::OutputGradient::Builder out, const msg::OutputGradient& in, Blobs& blobs);
void write(schema::GivenUp::Builder out, const msg::GivenUp& in);
msg::MiniBatch read(schema::MiniBatch::Reader in);
msg::NoMore read(schema::NoMore::Reader in);
msg::Activation read(schema::Activation::Reader in, ConstBlobs blobs);
msg::OutputGradient read(schema::OutputGradient::Reader in, ConstBlobs blobs);
msg::GivenUp read(schema::GivenUp::Reader in);

void write(schema::Start::Builder out, const msg::Start& in);
void write(schema::WantLease::Builder out, const msg::WantLease& in);
void write(schema::Lease::Builder out, const msg::Lease& in);
void write(schema::NoData::Builder out, const msg::NoData& in);
void write(schema::PushDropped::Builder out, const msg::PushDropped& in);
void write(schema::Idle::Builder out, const msg::Idle& in);
void write(schema::Diverged::Builder out, const msg::Diverged& in);
void write(schema::Leave::Builder out, const msg::Leave& in);
void write(schema::Stopped::Builder out, const msg::Stopped& in);
msg::Start read(schema::Start::Reader in);
msg::WantLease read(schema::WantLease::Reader in);
msg::Lease read(schema::Lease::Reader in);
msg::NoData read(schema::NoData::Reader in);
msg::PushDropped read(schema::PushDropped::Reader in);
msg::Idle read(schema::Idle::Reader in);
msg::Diverged read(schema::Diverged::Reader in);
msg::Leave read(schema::Leave::Reader in);
msg::Stopped read(schema::Stopped::Reader in);

void write(schema::Admit::Builder out, const msg::Admit& in);
void write(schema::Admitted::Builder out, const msg::Admitted& in);
void write(schema::Raise::Builder out, const msg::Raise& in);
void write(schema::Fence::Builder out, const msg::Fence& in);
void write(schema::Fenced::Builder out, const msg::Fenced& in);
void write(schema::Remove::Builder out, const msg::Remove& in);
void write(schema::Bound::Builder out, const msg::Bound& in);
void write(schema::RoundClosed::Builder out, const msg::RoundClosed& in);
void write(schema::CloseRound::Builder out, const msg::CloseRound& in);
void write(schema::Snapshot::Builder out, const msg::Snapshot& in);
void write(schema::SnapshotVote::Builder out, const msg::SnapshotVote& in);
void write(schema::SnapshotState::Builder out, const msg::SnapshotState& in, Blobs& blobs);
msg::Admit read(schema::Admit::Reader in);
msg::Admitted read(schema::Admitted::Reader in);
msg::Raise read(schema::Raise::Reader in);
msg::Fence read(schema::Fence::Reader in);
msg::Fenced read(schema::Fenced::Reader in);
msg::Remove read(schema::Remove::Reader in);
msg::Bound read(schema::Bound::Reader in);
msg::RoundClosed read(schema::RoundClosed::Reader in);
msg::CloseRound read(schema::CloseRound::Reader in);
msg::Snapshot read(schema::Snapshot::Reader in);
msg::SnapshotVote read(schema::SnapshotVote::Reader in);
msg::SnapshotState read(schema::SnapshotState::Reader in, ConstBlobs blobs);

void write(schema::WorkerReport::Builder out, const msg::WorkerReport& in);
void write(schema::ShardReport::Builder out, const msg::ShardReport& in);
void write(schema::SchedulerReport::Builder out, const msg::SchedulerReport& in);
void write(schema::Evicted::Builder out, const msg::Evicted& in);
void write(schema::RunEnded::Builder out, const msg::RunEnded& in);
void write(schema::Evaluated::Builder out, const msg::Evaluated& in);
msg::WorkerReport read(schema::WorkerReport::Reader in);
msg::ShardReport read(schema::ShardReport::Reader in);
msg::SchedulerReport read(schema::SchedulerReport::Reader in);
msg::Evicted read(schema::Evicted::Reader in);
msg::RunEnded read(schema::RunEnded::Reader in);
msg::Evaluated read(schema::Evaluated::Reader in);

}  // namespace leeway::wire
