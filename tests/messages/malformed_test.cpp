// Messages as a broken or hostile sender makes them: decode() answers with an error, and never
// throws, crashes or believes what does not hold.
#include <rapidcheck/catch.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "core/limits.hpp"
#include "core/rng.hpp"
#include "tests/messages/any_body.hpp"
#include "tests/messages/message_fields.hpp"

using namespace leeway;
using namespace leeway::test;
using Catch::Contains;

namespace {

using Words = std::vector<std::uint64_t>;
using Blobs = std::vector<Blob>;

Words words_of(const Message& message) {
  return {message.header().begin(), message.header().end()};
}
Blobs blobs_of(const Message& message) {
  return {message.blobs().begin(), message.blobs().end()};
}

std::string error_of(const Message& message) {
  const auto envelope = decode(message);
  return envelope ? "" : envelope.error().text;
}
std::string error_of(Body body) {
  return error_of(encode({.body = std::move(body)}));
}

// ---- what a decoded message promises ----

template <class T>
bool holds(const T&) {
  return true;
}
template <class Tag>
bool holds(const Count<Tag>& count) {
  return count.value() >= 0 && count.value() < kCountEnd;
}
template <>
bool holds(const WorkerId& worker) {
  return worker.value() < limits::kMaxWorkers;
}
template <>
bool holds(const Duration& duration) {
  return duration.ns >= 0;
}
template <>
bool holds(const msg::BlockData& block) {
  return holds(block.version) && block.block.value() < limits::kMaxBlocks &&
         block.shape.rank() >= 0 && block.shape.count() >= 0 &&
         (!block.data || static_cast<std::size_t>(block.shape.count()) * size_of(block.dtype) <=
                             block.data.size());
}
template <>
bool holds(const msg::StageTensor& tensor) {
  return static_cast<std::size_t>(tensor.shape.count()) * size_of(tensor.dtype) <=
         tensor.data.size();
}
template <class T>
bool holds(const std::vector<T>& items) {
  // What shards have applied, of messages that list it.
  if constexpr (std::is_same_v<T, msg::AppliedBucket>)
    return std::adjacent_find(items.begin(), items.end(), std::greater_equal<>()) == items.end();
  return std::all_of(items.begin(), items.end(), [](const T& item) { return holds(item); });
}
bool holds(const Envelope& envelope) {
  return std::visit(
      [](const auto& body) {
        using T = std::decay_t<decltype(body)>;
        return std::apply([](auto&... field) { return (holds(field) && ...); },
                          fields(const_cast<T&>(body)));
      },
      envelope.body);
}

/// Decodes, and checks what comes of it. True when it was taken for a message.
bool survives(Words words, Blobs blobs) {
  const auto envelope = decode(Message(std::move(words), std::move(blobs)));
  if (!envelope) {
    RC_ASSERT(!envelope.error().text.empty());
    return false;
  }
  RC_ASSERT(holds(*envelope));
  RC_ASSERT(decode(encode(*envelope)).has_value());
  return true;
}

msg::BlockData block(Shape shape = {2, 3}, DType dtype = DType::f32) {
  return {BlockId(4), Version(1), dtype, shape, Blob::allocate(24)};
}
msg::Push push() {
  return {Iteration(1), 0, 1, msg::Push::Kind::gradient, 1, 8, {block()}, {}};
}
msg::MiniBatch mini_batch() {
  return {1, Iteration(3), Epoch(0), 10, 20, 40, {{0, 1, 2}, {1, 0, 0}}};
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

TEST_CASE("a message snapshot short anywhere is an error") {
  rc::prop("every length", [] {
    for (const Envelope& envelope : any_envelopes()) {
      const Message whole = encode(envelope);
      for (std::size_t length = 0; length < whole.header().size(); ++length) {
        Words words = words_of(whole);
        words.resize(length);
        RC_ASSERT(!survives(std::move(words), blobs_of(whole)));
      }
    }
  });
}

TEST_CASE("random words are an error, also behind a sound beginning") {
  rc::prop("noise", [](std::uint64_t seed) {
    Rng rng(seed);
    Words words(rng.below(40));
    for (auto& word : words) word = rng.one_in(3) ? rng.below(16) : rng.next();
    survives(words, {Blob::floats(4)});
    if (words.size() < 3) return;
    words[0] = (words.size() - 1) << 32;  // one segment of all that follows
    survives(words, {Blob::floats(4)});
    words[1] = 0x0004'0002'0000'0000;  // a root struct of 2 data words and 4 pointers
    words[2] = (words[2] & ~std::uint64_t{0xffff}) | kProtocolVersion;
    survives(words, {Blob::floats(4)});
  });
}

TEST_CASE("messages with flipped bits are an error or hold what messages promise") {
  int taken = 0, refused = 0;
  rc::prop("bit flips", [&](std::uint64_t seed) {
    Rng rng(seed);
    for (const Envelope& envelope : any_envelopes()) {
      const Message whole = encode(envelope);
      for (int attempt = 0; attempt < 8; ++attempt) {
        Words words = words_of(whole);
        for (auto flips = 1 + rng.below(4); flips > 0; --flips)
          words[rng.below(words.size())] ^= std::uint64_t{1} << rng.below(64);
        ++(survives(std::move(words), blobs_of(whole)) ? taken : refused);
      }
    }
  });
  CHECK(taken > 100);
  CHECK(refused > 100);
}

TEST_CASE("pointers to anywhere and lists of any length are an error or hold") {
  // Words that mean much to Cap'n Proto, put in place of every word of valid messages.
  const Words evil = {
      ~std::uint64_t{0},
      0xffff'ffff'0000'0001,  // a list of 2^29 - 1 composites, just behind
      0xffff'fff8'0000'0001,  // a list of 2^29 - 1 elements without size
      0xffff'fffa'0000'0001,  // a list of 2^29 - 1 bytes: a text without end
      0xffff'fffd'0000'0001,  // a list of 2^29 - 1 words
      0x0000'0007'0000'0001,  // an empty composite list
      0x0000'0000'ffff'fffc,  // a struct before itself: a loop
      0xffff'ffff'ffff'fffc,  // the largest struct, before itself
      0x0000'0000'7fff'fffc,  // a struct far behind the end
      0x0000'0000'7fff'fffe,  // far pointers to elsewhere
      0xffff'ffff'0000'0006,
      0x0000'0000'0000'0003,  // a capability
      0x0000'0000'3fff'fffc,  // as the tag of a list: many structs without size
      0x8000'0000'0000'0000, 0x7fff'ffff'ffff'ffff,
  };
  rc::prop("every word of every message", [&] {
    for (const Envelope& envelope : any_envelopes()) {
      const Message whole = encode(envelope);
      for (std::size_t at = 0; at < whole.header().size(); ++at) {
        for (const std::uint64_t word : evil) {
          Words words = words_of(whole);
          words[at] = word;
          survives(std::move(words), blobs_of(whole));
        }
      }
    }
  });
}

TEST_CASE("tensors without their blob, or with a smaller one, are an error that says so") {
  rc::prop("blobs dropped or shortened", [] {
    for (const Envelope& envelope : any_envelopes()) {
      const Message whole = encode(envelope);
      const Blobs blobs = blobs_of(whole);
      if (blobs.empty()) continue;
      const std::string name(name_of(envelope.body));
      Blobs fewer = blobs;
      fewer.pop_back();
      const auto dropped = decode(Message(words_of(whole), fewer));
      RC_ASSERT(!dropped);
      RC_ASSERT(dropped.error().text.find(name + ": tensor.blob is ") == 0u);
      Blobs none(blobs.size());
      survives(words_of(whole), none);
      const auto at = *rc::gen::inRange<std::size_t>(0, blobs.size());
      Blobs shorter = blobs;
      const auto size = shorter[at].size();
      shorter[at] = Blob::allocate(*rc::gen::inRange<std::size_t>(0, size + 1));
      survives(words_of(whole), shorter);
    }
  });
  const Message whole = encode({.body = push()});
  CHECK(error_of(Message(words_of(whole), {Blob::allocate(23)})) ==
        "push: tensor needs 24 bytes, its blob has 23");
  CHECK(error_of(Message(words_of(whole), {Blob::allocate(24)})) == "");
  CHECK(error_of(Message(words_of(whole), {})) == "push: tensor.blob is 0, must be below 0");
}

TEST_CASE("an error names the message, the field, what was found and what is allowed") {
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
  CHECK(push_error(&msg::Push::kind, static_cast<Kind>(3)) == "push: kind has the unknown value 3");
  CHECK(push_error(&msg::Push::weight, -0.5) == "push: weight is -0.5, must be 0 or more");
  CHECK(push_error(&msg::Push::weight, HUGE_VAL) == "push: weight is inf, must be 0 or more");
  CHECK(push_error(&msg::Push::weight, std::nan("")) == "push: weight is nan, must be 0 or more");
  CHECK(push_error(&msg::Push::kind, Kind::empty) == "push: block 4 has data in an empty push");
  CHECK(push_error(&msg::Push::blocks, {{BlockId(4), Version(0)}}) == "push: block 4 has no data");
  CHECK(push_error(&msg::Push::blocks, {{BlockId(1u << 20), Version(0)}}) ==
        "push: block is 1048576, must be below 1048576");
  CHECK(push_error(&msg::Push::blocks, {{BlockId(4), Version(-2)}}) ==
        "push: version is -2, must be 0 or more");
  CHECK(error_of(msg::Weights{Iteration(0), {{BlockId(4), Version(0)}}}) ==
        "weights: block 4 has no data");
  CHECK(error_of(msg::SnapshotState{0, Iteration(0), false, {{BlockId(4), Version(0)}}}) ==
        "snapshot state: block 4 has no data");
  CHECK(error_of(msg::Pushed{Iteration(0), 4096}) == "pushed: bucket is 4096, must be below 4096");
  CHECK(error_of(msg::Admit{WorkerId(65536)}) == "admit: worker is 65536, must be below 65536");
  CHECK(error_of(msg::Fenced{WorkerId(0), Clock(-1)}) == "fenced: clock is -1, must be 0 or more");
  CHECK(error_of(msg::Fenced{WorkerId(0), Clock(0), {4096}}) ==
        "fenced: applied is 4096, must be below 4096");
  CHECK(error_of(msg::Fenced{WorkerId(0), Clock(0), std::vector<std::uint32_t>(4097)}) ==
        "fenced: applied has 4097 entries, must be at most 4096");
  CHECK(error_of(msg::Fenced{WorkerId(0), Clock(0), {3, 3}}) ==
        "fenced: applied must be ascending, 3 comes after 3");
  CHECK(error_of(msg::Fenced{WorkerId(0), Clock(0), {3, 4095}}) == "");
  CHECK(error_of(msg::PushDropped{Iteration(-1)}) == "push dropped: next is -1, must be 0 or more");
  CHECK(error_of(msg::RoundClosed{Iteration(0), {WorkerId(65536)}}) ==
        "round closed: worker is 65536, must be below 65536");
  CHECK(error_of(msg::CloseRound{Iteration(0), {WorkerId(3), WorkerId(3)}}) ==
        "close round: contributors must be ascending, 3 comes after 3");
  CHECK(error_of(msg::CloseRound{Iteration(0), std::vector<WorkerId>(65537)}) ==
        "close round: contributors has 65537 entries, must be at most 65536");
  CHECK(error_of(msg::Refused{static_cast<msg::Refused::Reason>(9)}) ==
        "refused: reason has the unknown value 9");
}

TEST_CASE("errors of leases and reports name their field, too") {
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
  CHECK(error_of(broken) ==
        "lease: applied must be ascending, bucket 3 at shard 2 of stage 1 comes after bucket 3 at "
        "shard 2 of stage 1");
  broken.applied.assign(limits::kMaxAppliedBuckets + 1, {});
  CHECK(error_of(broken) == "lease: applied has 1048577 entries, must be at most 1048576");
  msg::ShardReport report;
  report.lags.resize(limits::kLagBins + 1);
  CHECK(error_of(report) == "shard report: lags has 65 bins");
  report.lags.clear();
  report.waits = {{WorkerId(1), WorkerId(70000), {}, 1}};
  CHECK(error_of(report) == "shard report: worker is 70000, must be below 65536");
  report.waits.assign(limits::kMaxWaits + 1, {});
  CHECK(error_of(report) == "shard report: waits has 16385 pairs, must be at most 16384");
  report.waits.pop_back();
  CHECK(error_of(report) == "");
}

TEST_CASE("errors of what stages tell each other name their field, too") {
  CHECK(error_of(mini_batch()) == "");
  const auto after = [](auto change) {
    msg::MiniBatch broken = mini_batch();
    change(broken);
    return error_of(broken);
  };
  using Batch = msg::MiniBatch;
  CHECK(after([](Batch& b) { b.iteration = Iteration(-1); }) ==
        "mini-batch: iteration is -1, must be 0 or more");
  CHECK(after([](Batch& b) { b.epoch = Epoch(-1); }) ==
        "mini-batch: epoch is -1, must be 0 or more");
  CHECK(after([](Batch& b) { b.begin = -1; }) == "mini-batch: begin is -1, must be 0 or more");
  CHECK(after([](Batch& b) { b.end = kCountEnd; }) ==
        "mini-batch: end is 4611686018427387904, must be 0 or more");
  CHECK(after([](Batch& b) { b.end = 9; }) == "mini-batch: end is 9, must not be before begin 10");
  CHECK(after([](Batch& b) { b.end = 10; }) == "");
  CHECK(after([](Batch& b) { b.round_samples = 0; }) ==
        "mini-batch: round_samples is 0, must be 1 or more");
  CHECK(after([](Batch& b) { std::swap(b.applied[0], b.applied[1]); }) ==
        "mini-batch: applied must be ascending, bucket 2 at shard 1 of stage 0 comes after bucket "
        "0 at "
        "shard 0 of stage 1");
  CHECK(error_of(msg::NoMore{1, Iteration(-1)}) == "no more: iteration is -1, must be 0 or more");
  CHECK(error_of(msg::GivenUp{1, Iteration(-1)}) == "given up: iteration is -1, must be 0 or more");
}

TEST_CASE("errors of what stages send on name their field, and the tensor's") {
  msg::Activation activation{1, Iteration(2), 3, 4, tensor()};
  msg::OutputGradient gradient{1, Iteration(2), 3, 4, tensor(), Clock(1)};
  CHECK(error_of(activation) == "");
  CHECK(error_of(gradient) == "");
  activation.iteration = Iteration(-1);
  CHECK(error_of(activation) == "activation: iteration is -1, must be 0 or more");
  gradient.clock = Clock(-1);
  CHECK(error_of(gradient) == "output gradient: clock is -1, must be 0 or more");
  gradient.iteration = Iteration(-1);
  CHECK(error_of(gradient) == "output gradient: iteration is -1, must be 0 or more");
  activation = {1, Iteration(2), 3, 4, tensor({2, 4})};
  CHECK(error_of(activation) == "activation: tensor needs 32 bytes, its blob has 24");
  activation.tensor = tensor({-2, 3});
  CHECK(error_of(activation) == "activation: tensor.shape has the negative extent -2");
  gradient = {1, Iteration(2), 3, 4, tensor(), Clock(1)};
  CHECK(error_of(Message(words_of(encode({.body = gradient})), {})) ==
        "output gradient: tensor.blob is 0, must be below 0");
  gradient.tensor.dtype = static_cast<DType>(5);
  CHECK(error_of(gradient) == "output gradient: tensor.dtype has the unknown value 5");
}

TEST_CASE("shapes that are negative or too large are an error, also beside a zero extent") {
  const auto shape_error = [](Shape shape, DType dtype) {
    return push_error(&msg::Push::blocks, {block(shape, dtype)});
  };
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  CHECK(shape_error({2, -3}, DType::f32) == "push: tensor.shape has the negative extent -3");
  CHECK(shape_error({2, 4}, DType::f32) == "push: tensor needs 32 bytes, its blob has 24");
  CHECK(shape_error({std::int64_t{1} << 40, std::int64_t{1} << 40}, DType::f32) ==
        "push: tensor.shape is too large");
  CHECK(shape_error({huge, 3}, DType::i8) == "push: tensor.shape is too large");
  // The count of elements must fit in 64 signed bits at every step.
  CHECK(shape_error({huge, 2, 0}, DType::i8) == "push: tensor.shape is too large");
  CHECK(shape_error({0, huge, huge}, DType::i8) == "");
}

TEST_CASE("another protocol version is refused by name, whatever the message") {
  rc::prop("any other version", [] {
    const auto version = *rc::gen::distinctFrom(kProtocolVersion);
    for (const Envelope& envelope : any_envelopes()) {
      Words words = words_of(encode(envelope));
      words[2] = (words[2] & ~std::uint64_t{0xffff}) | version;
      const auto got = decode(Message(words, {}));
      RC_ASSERT(!got);
      RC_ASSERT(got.error().text.find("message has protocol version") == 0u);
    }
  });
  Words words = words_of(encode({.body = msg::Join{}}));
  words[2] ^= 3;  // 1 becomes 2
  CHECK(error_of(Message(words, {})) ==
        "message has protocol version 2, this program speaks 1; use the same version of Leeway "
        "everywhere");
}

TEST_CASE("a body of no kind, or of one that is not known here, is an error") {
  // A root struct of one data word: the version, and no body.
  CHECK_THAT(error_of(Message({std::uint64_t{2} << 32, 0x0000'0001'0000'0000, 1}, {})),
             Contains("unknown kind 0"));
  const Words join = words_of(encode({.body = msg::Join{}}));
  const Words stop = words_of(encode({.body = msg::Stop{}}));
  REQUIRE(join.size() == stop.size());
  Words unknown = join;
  for (std::size_t i = 0; i < join.size(); ++i) {
    const std::uint64_t difference = join[i] ^ stop[i];
    if (difference == 0) continue;
    unknown[i] |= std::uint64_t{0xffff} << (std::countr_zero(difference) / 16 * 16);
  }
  CHECK_THAT(error_of(Message(unknown, {})), Contains("unknown kind 65535"));
}

TEST_CASE("headers and blobs beyond the limits are an error before anything is read") {
  const Words words(limits::kMaxHeaderBytes / 8 + 1);
  CHECK(error_of(Message(words, {})) ==
        "message header has 16777224 bytes, at most 16777216 are allowed");
  const Blobs blobs(limits::kMaxBlobs + 1, Blob::allocate(1));
  CHECK(error_of(Message(words_of(encode({.body = msg::Join{}})), blobs)) ==
        "message has 65537 blobs, at most 65536 are allowed");
  CHECK_THAT(error_of(Message()), Contains("message: "));
}
