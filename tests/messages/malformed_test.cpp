// Errors of decoding name the message, the field, the value found and the valid values.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "core/limits.hpp"
#include "tests/messages/conversations.hpp"
#include "tests/support/any.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

msg::BlockData block(Shape shape = {2, 3}, DType dtype = DType::f32) {
  return {BlockId(4), Version(1), dtype, shape, Blob::allocate(24)};
}
msg::Push push() {
  return {Iteration(1), 0, 1, msg::Push::Kind::gradient, 1, 8, {block()}, {}};
}
msg::MiniBatch mini_batch() {
  return {Iteration(3), Epoch(0), 10, 20, 40, {{0, 1, 2}, {1, 0, 0}}};
}
msg::StageTensor tensor(Shape shape = {2, 3}) {
  return {DType::f32, shape, Blob::allocate(24)};
}
template <class T>
std::string push_error(T msg::Push::*member, T value) {
  msg::Push broken = push();
  broken.*member = std::move(value);
  return error_of(Body(broken));
}

}  // namespace

TEST_CASE("an error names the message, the field, the value found and the valid values") {
  using Kind = msg::Push::Kind;
  CHECK(error_of(msg::Pull{Iteration(-1)}) == "pull: iteration is -1, must be 0 or more");
  CHECK(error_of(msg::Pull{Iteration(2), Clock(3)}) ==
        "pull: own_clock is 3, must not be beyond the iteration 2");
  CHECK(error_of(msg::Pull{Iteration(1), Clock(0), static_cast<DType>(5)}) ==
        "pull: dtype has the unknown value 5");
  CHECK(error_of(msg::Idle{Clock(kCountEnd)}) ==
        "idle: clock is 4611686018427387904, must be 0 or more");
  CHECK(push_error(&msg::Push::bucket_count, 0u) == "push: bucket_count is 0, must be 1 to 4096");
  CHECK(push_error(&msg::Push::bucket_count, 4097u) ==
        "push: bucket_count is 4097, must be 1 to 4096");
  CHECK(push_error(&msg::Push::bucket, 1u) == "push: bucket is 1, must be below 1");
  CHECK(push_error(&msg::Push::kind, static_cast<Kind>(4)) == "push: kind has the unknown value 4");
  CHECK(push_error(&msg::Push::weight, -0.5) == "push: weight is -0.5, must be 0 or more");
  CHECK(push_error(&msg::Push::weight, HUGE_VAL) == "push: weight is inf, must be 0 or more");
  CHECK(push_error(&msg::Push::weight, std::nan("")) == "push: weight is nan, must be 0 or more");
  CHECK(push_error(&msg::Push::kind, Kind::empty) == "push: block 4 has data in an empty push");
  CHECK(push_error(&msg::Push::blocks, {{BlockId(4), Version(0)}}) == "push: block 4 has no data");
  CHECK(push_error(&msg::Push::blocks, {{BlockId(1u << 20), Version(0)}}) ==
        "push: blocks[0].block is 1048576, must be below 1048576");
  CHECK(push_error(&msg::Push::blocks, {{BlockId(4), Version(-2)}}) ==
        "push: blocks[0].version is -2, must be 0 or more");
  CHECK(error_of(msg::Weights{Iteration(0), {{BlockId(4), Version(0)}}}) ==
        "weights: block 4 has no data");
  CHECK(error_of(msg::SnapshotState{0, Iteration(0), false, {{BlockId(4), Version(0)}}}) ==
        "snapshot state: block 4 has no data");
  CHECK(error_of(msg::Pushed{Iteration(0), 4096}) == "pushed: bucket is 4096, must be below 4096");
  CHECK(error_of(msg::Admit{WorkerId(65536)}) == "admit: worker is 65536, must be below 65536");
  CHECK(error_of(msg::Fenced{WorkerId(0), Clock(-1)}) == "fenced: clock is -1, must be 0 or more");
  CHECK(error_of(msg::Fenced{WorkerId(0), Clock(0), {4096}}) ==
        "fenced: applied[0] is 4096, must be below 4096");
  CHECK(error_of(msg::Fenced{WorkerId(0), Clock(0), std::vector<std::uint32_t>(4097)}) ==
        "fenced: applied has 4097 entries, must be at most 4096");
  CHECK(error_of(msg::Fenced{WorkerId(0), Clock(0), {3, 3}}) ==
        "fenced: applied must be ascending, 3 comes after 3");
  CHECK(error_of(msg::Fenced{WorkerId(0), Clock(0), {3, 4095}}) == "");
  CHECK(error_of(msg::PushDropped{Iteration(-1)}) == "push dropped: next is -1, must be 0 or more");
  CHECK(error_of(msg::RoundClosed{Iteration(0), {WorkerId(65536)}}) ==
        "round closed: contributors[0] is 65536, must be below 65536");
  CHECK(error_of(msg::CloseRound{Iteration(0), {WorkerId(3), WorkerId(3)}}) ==
        "close round: contributors must be ascending, 3 comes after 3");
  CHECK(error_of(msg::CloseRound{Iteration(0), std::vector<WorkerId>(65537)}) ==
        "close round: contributors has 65537 entries, must be at most 65536");
  CHECK(error_of(msg::Refused{static_cast<msg::Refused::Reason>(9)}) ==
        "refused: reason has the unknown value 9");
}

TEST_CASE("errors in leases and reports name the field") {
  const msg::Lease lease{LeaseId(1), Epoch(0), 10, 20, Iteration(0), 5, 10};
  CHECK(error_of(lease) == "");
  auto broken = lease;
  broken.end = 9;
  CHECK(error_of(broken) == "lease: end is 9, must not be before begin 10");
  broken = lease;
  broken.batch = 0;
  CHECK(error_of(broken) == "lease: batch is 0, must be 1 or more");
  broken = lease;
  broken.round_samples = 0;
  CHECK(error_of(broken) == "lease: round_samples is 0, must be 1 or more");
  broken = lease;
  broken.applied = {{1, 2, 3}, {1, 2, 3}};
  CHECK(
      error_of(broken) ==
      "lease: applied must be ascending, stage 1, shard 2, bucket 3 comes after stage 1, shard 2, "
      "bucket 3");
  broken.applied.assign(limits::kMaxAppliedBuckets + 1, {});
  CHECK(error_of(broken) == "lease: applied has 1048577 entries, must be at most 1048576");
  msg::ShardReport report;
  report.lags.resize(limits::kLagBins + 1);
  CHECK(error_of(report) == "shard report: lags has 65 entries, must be at most 64");
  report.lags.clear();
  report.waits = {{WorkerId(1), WorkerId(70000), {}, 1}};
  CHECK(error_of(report) == "shard report: waits[0].for_worker is 70000, must be below 65536");
  report.waits.assign(limits::kMaxWaits + 1, {});
  CHECK(error_of(report) == "shard report: waits has 16385 entries, must be at most 16384");
  report.waits.pop_back();
  CHECK(error_of(report) == "");
}

TEST_CASE("errors in messages between stages name the field") {
  CHECK(error_of(mini_batch()) == "");
  const auto after = [](auto change) {
    msg::MiniBatch broken = mini_batch();
    change(broken);
    return error_of(broken);
  };
  using Batch = msg::MiniBatch;
  CHECK(after([](Batch& b) { b.iteration = Iteration(-1); }) ==
        "mini batch: iteration is -1, must be 0 or more");
  CHECK(after([](Batch& b) { b.epoch = Epoch(-1); }) ==
        "mini batch: epoch is -1, must be 0 or more");
  CHECK(after([](Batch& b) { b.begin = -1; }) == "mini batch: begin is -1, must be 0 or more");
  CHECK(after([](Batch& b) { b.end = kCountEnd; }) ==
        "mini batch: end is 4611686018427387904, must be 0 or more");
  CHECK(after([](Batch& b) { b.end = 9; }) == "mini batch: end is 9, must not be before begin 10");
  CHECK(after([](Batch& b) { b.end = 10; }) == "");
  CHECK(after([](Batch& b) { b.round_samples = 0; }) ==
        "mini batch: round_samples is 0, must be 1 or more");
  CHECK(after([](Batch& b) { std::swap(b.applied[0], b.applied[1]); }) ==
        "mini batch: applied must be ascending, stage 0, shard 1, bucket 2 comes after stage 1, "
        "shard "
        "0, bucket 0");
  CHECK(error_of(msg::NoMore{Iteration(-1)}) == "no more: iteration is -1, must be 0 or more");
  CHECK(error_of(msg::GivenUp{Iteration(-1)}) == "given up: iteration is -1, must be 0 or more");
}

TEST_CASE("errors in activations and gradients name the field of the message or the tensor") {
  msg::Activation activation{Iteration(2), 3, 4, tensor()};
  msg::OutputGradient gradient{Iteration(2), 3, 4, tensor(), Clock(1)};
  CHECK(error_of(activation) == "");
  CHECK(error_of(gradient) == "");
  activation.iteration = Iteration(-1);
  CHECK(error_of(activation) == "activation: iteration is -1, must be 0 or more");
  gradient.clock = Clock(-1);
  CHECK(error_of(gradient) == "output gradient: clock is -1, must be 0 or more");
  gradient.iteration = Iteration(-1);
  CHECK(error_of(gradient) == "output gradient: iteration is -1, must be 0 or more");
  activation = {Iteration(2), 3, 4, tensor({2, 4})};
  CHECK(error_of(activation) == "activation: tensor needs 32 bytes, its blob has 24");
  activation.tensor = tensor({-2, 3});
  CHECK(error_of(activation) == "activation: tensor.shape has the negative extent -2");
  gradient = {Iteration(2), 3, 4, tensor(), Clock(1)};
  CHECK(error_of(Message(words_of(encode({.body = gradient})), {})) ==
        "output gradient: tensor.blob is 0, must be below 0");
  gradient.tensor.dtype = static_cast<DType>(5);
  CHECK(error_of(gradient) == "output gradient: tensor.dtype has the unknown value 5");
}

TEST_CASE("the error of a blob that is missing or too small names its tensor") {
  const Message whole = encode({.body = push()});
  CHECK(error_of(Message(words_of(whole), {Blob::allocate(23)})) ==
        "push: blocks[0].tensor needs 24 bytes, its blob has 23");
  CHECK(error_of(Message(words_of(whole), {Blob::allocate(24)})) == "");
  CHECK(error_of(Message(words_of(whole), {})) ==
        "push: blocks[0].tensor.blob is 0, must be below 0");
}

TEST_CASE("shapes with negative or too large extents are refused, also with a zero extent") {
  const auto shape_error = [](Shape shape, DType dtype) {
    return push_error(&msg::Push::blocks, {block(shape, dtype)});
  };
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  CHECK(shape_error({2, -3}, DType::f32) ==
        "push: blocks[0].tensor.shape has the negative extent -3");
  CHECK(shape_error({2, 4}, DType::f32) ==
        "push: blocks[0].tensor needs 32 bytes, its blob has 24");
  CHECK(shape_error({std::int64_t{1} << 40, std::int64_t{1} << 40}, DType::f32) ==
        "push: blocks[0].tensor.shape is too large");
  CHECK(shape_error({huge, 3}, DType::i8) == "push: blocks[0].tensor.shape is too large");
  // Every partial product of extents must fit into a signed 64-bit number.
  CHECK(shape_error({huge, 2, 0}, DType::i8) == "push: blocks[0].tensor.shape is too large");
  CHECK(shape_error({0, huge, huge}, DType::i8) == "");
}
