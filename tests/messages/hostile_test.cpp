// Messages of broken or hostile senders: decoding returns an error. It never throws, crashes or
// accepts a value beyond its limits.
#include <rapidcheck/catch.h>

#include <catch2/catch.hpp>
#include <limits>

#include "core/limits.hpp"
#include "core/rng.hpp"
#include "tests/messages/conversations.hpp"
#include "tests/messages/fields_envelope.hpp"
#include "tests/messages/fields_node.hpp"
#include "tests/support/any.hpp"
#include "tests/support/sanitized.hpp"

using namespace leeway;
using namespace leeway::test;
using Catch::Contains;

namespace {

// ---- guarantees of a decoded message ----

template <class Tag>
bool holds(const Count<Tag>& count);
template <class T>
bool holds(const std::vector<T>& items);
template <class... Arms>
bool holds(const std::variant<Arms...>& body);
template <class T>
bool holds(const T& value) {
  if constexpr (requires { typename T::variant; })  // derives from it
    return holds(static_cast<const typename T::variant&>(value));
  else if constexpr (requires(T & in) { fields(in); })
    return std::apply([](const auto&... field) { return (holds(field) && ...); },
                      fields(const_cast<T&>(value)));
  else
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
bool holds(const event::Refused& refused) {
  return holds(refused.iteration);  // the sender can have any index
}
template <>
bool holds(const Duration& duration) {
  return duration.ns >= 0;
}
template <>
bool holds(const msg::StageTensor& tensor) {
  // The receiver checks the bytes of an encoding.
  if (tensor.codec != CodecId::none) return tensor.dtype == DType::f32;
  return static_cast<std::size_t>(tensor.shape.count()) * size_of(tensor.dtype) <=
         tensor.data.size();
}
template <>
bool holds(const msg::BlockData& block) {
  const bool fits =
      !block.data || holds(msg::StageTensor{block.dtype, block.shape, block.data, block.codec});
  return holds(block.version) && block.block.value() < limits::kMaxBlocks && fits;
}
template <class T>
bool holds(const std::vector<T>& items) {
  if constexpr (std::is_same_v<T, msg::AppliedBucket>)
    return std::adjacent_find(items.begin(), items.end(), std::greater_equal<>()) == items.end();
  return std::all_of(items.begin(), items.end(), [](const T& item) { return holds(item); });
}
template <class... Arms>
bool holds(const std::variant<Arms...>& body) {
  return std::visit([](const auto& arm) { return holds(arm); }, body);
}

/// Decodes a message and checks the result. True if the message is accepted.
template <class Conversation>
bool decode_and_check(const Words& words, Blobs blobs) {
  const auto envelope = Conversation::read(Message(words, std::move(blobs)));
  if (!envelope) {
    RC_ASSERT(!envelope.error().text.empty());
    return false;
  }
  RC_ASSERT(holds(envelope->body));
  RC_ASSERT(Conversation::read(encode(*envelope)).has_value());
  return true;
}

}  // namespace

TEMPLATE_TEST_CASE("a truncated message is refused", "", Actors, Hosts) {
  rc::prop("every length", [] {
    for (const auto& envelope : TestType::any()) {
      const Message whole = encode(envelope);
      for (std::size_t length = 0; length < whole.header().size(); ++length) {
        Words words = words_of(whole);
        words.resize(length);
        RC_ASSERT(!decode_and_check<TestType>(words, blobs_of(whole)));
      }
    }
  });
}

TEMPLATE_TEST_CASE("random words are refused, also after a valid beginning", "", Actors, Hosts) {
  rc::prop("noise", [](std::uint64_t seed) {
    Rng rng(seed);
    Words words(rng.below(40));
    for (auto& word : words) word = rng.one_in(3) ? rng.below(16) : rng.next();
    decode_and_check<TestType>(words, {Blob::floats(4)});
    if (words.size() < 3) return;
    words[0] = (words.size() - 1) << 32;  // one segment of all that follows
    decode_and_check<TestType>(words, {Blob::floats(4)});
    words[1] = 0x0004'0002'0000'0000;  // a root struct of 2 data words and 4 pointers
    words[2] = (words[2] & ~std::uint64_t{0xffff}) | kProtocolVersion;
    decode_and_check<TestType>(words, {Blob::floats(4)});
  });
}

TEMPLATE_TEST_CASE("a message with flipped bits is refused or keeps all guarantees", "", Actors,
                   Hosts) {
  int accepted = 0, refused = 0;
  rc::prop("bit flips", [&](std::uint64_t seed) {
    Rng rng(seed);
    for (const auto& envelope : TestType::any()) {
      const Message whole = encode(envelope);
      for (int attempt = 0; attempt < 8; ++attempt) {
        Words words = words_of(whole);
        for (auto flips = 1 + rng.below(4); flips > 0; --flips)
          words[rng.below(words.size())] ^= std::uint64_t{1} << rng.below(64);
        ++(decode_and_check<TestType>(words, blobs_of(whole)) ? accepted : refused);
      }
    }
  });
  CHECK(accepted > 100);
  CHECK(refused > 100);
}

TEMPLATE_TEST_CASE("invalid pointers and list lengths are refused or keep all guarantees", "",
                   Actors, Hosts) {
  // Words with a special meaning in Cap'n Proto replace every word of valid messages.
  const Words evil = {
      ~std::uint64_t{0},
      0xffff'ffff'0000'0001,  // a list of 2^29 - 1 composites, directly after the pointer
      0xffff'fff8'0000'0001,  // a list of 2^29 - 1 elements without size
      0xffff'fffa'0000'0001,  // a list of 2^29 - 1 bytes: an overlong text
      0xffff'fffd'0000'0001,  // a list of 2^29 - 1 words
      0x0000'0007'0000'0001,  // an empty composite list
      0x0000'0000'ffff'fffc,  // a struct before itself: a loop
      0xffff'ffff'ffff'fffc,  // the largest struct, before itself
      0x0000'0000'7fff'fffc,  // a struct far beyond the end
      0x0000'0000'7fff'fffe,  // far pointers to other segments
      0xffff'ffff'0000'0006,
      0x0000'0000'0000'0003,  // a capability
      0x0000'0000'3fff'fffc,  // as the tag of a list: many structs without size
      0x8000'0000'0000'0000, 0x7fff'ffff'ffff'ffff,
  };
  rc::prop("words of every message", [&] {
    const auto first = *rc::gen::inRange<std::size_t>(0, test::kThinning);
    for (const auto& envelope : TestType::any()) {
      const Message whole = encode(envelope);
      for (std::size_t at = first; at < whole.header().size(); at += test::kThinning) {
        for (const std::uint64_t word : evil) {
          Words words = words_of(whole);
          words[at] = word;
          decode_and_check<TestType>(words, blobs_of(whole));
        }
      }
    }
  });
}

TEST_CASE("a tensor whose blob is missing or too small is refused with that reason") {
  rc::prop("blobs dropped or shortened", [] {
    for (const Envelope& envelope : any_envelopes()) {
      const Message whole = encode(envelope);
      const Blobs blobs = blobs_of(whole);
      // The blobs of the last two belong to the message inside.
      if (blobs.empty() || std::holds_alternative<msg::Relay>(envelope.body) ||
          std::holds_alternative<msg::Seed>(envelope.body))
        continue;
      Blobs fewer = blobs;
      fewer.pop_back();
      const std::string dropped = error_of(Message(words_of(whole), fewer));
      RC_ASSERT(dropped.find(std::string(name_of(envelope.body)) + ": ") == 0u);
      RC_ASSERT(dropped.find("blob is ") != std::string::npos);
      decode_and_check<Actors>(words_of(whole), Blobs(blobs.size()));
      const auto at = *rc::gen::inRange<std::size_t>(0, blobs.size());
      Blobs shorter = blobs;
      shorter[at] = Blob::allocate(*rc::gen::inRange<std::size_t>(0, shorter[at].size() + 1));
      decode_and_check<Actors>(words_of(whole), shorter);
    }
  });
}

TEMPLATE_TEST_CASE("any message of another protocol version is refused", "", Actors, Hosts) {
  rc::prop("any other version", [] {
    const auto version = *rc::gen::distinctFrom(kProtocolVersion);
    for (const auto& envelope : TestType::any()) {
      Words words = words_of(encode(envelope));
      // The root's data follows the table of segments and the root's pointer.
      const std::size_t segments = static_cast<std::uint32_t>(words[0]) + std::size_t{1};
      std::uint64_t& root = words[segments / 2 + 2];
      root = (root & ~std::uint64_t{0xffff}) | version;
      const auto got = TestType::read(Message(words, {}));
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

TEST_CASE("a body without a kind, or of an unknown kind, is refused") {
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

TEST_CASE("a message without tensors has no blobs") {
  const Words join = words_of(encode({.body = msg::Join{}}));
  CHECK(error_of(Message(join, {Blob::allocate(1)})) == "join: has 1 blobs, must have 0");
}

TEST_CASE("headers and blobs beyond the limits are refused before they are read") {
  const Words words(limits::kMaxHeaderBytes / 8 + 1);
  CHECK(error_of(Message(words, {})) ==
        "message header has 16777224 bytes, at most 16777216 are allowed");
  const Blobs blobs(limits::kMaxBlobs + 1, Blob::allocate(1));
  CHECK(error_of(Message(words_of(encode({.body = msg::Join{}})), blobs)) ==
        "message has 65537 blobs, at most 65536 are allowed");
  CHECK_THAT(error_of(Message()), Contains("message: "));
}
