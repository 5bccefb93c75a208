// Frames and outgoing queues without a network: valid bytes, hostile bytes, fairness, windows.
#include <catch2/catch.hpp>

#include "core/limits.hpp"
#include "tensor/blob_pool.hpp"
#include "tests/cluster/mesh_recorder.hpp"

namespace leeway::test {
namespace {

using namespace leeway::cluster;

constexpr Address kWorker0{RoleKind::worker, 0}, kWorker1{RoleKind::worker, 1};
constexpr Address kShard0{RoleKind::shard, 0};

struct Bytes final : Sink, Source {
  bool put(const void* more, std::size_t count) override {
    const auto* const first = static_cast<const char*>(more);
    all.insert(all.end(), first, first + count);
    return true;
  }
  bool take(void* to, std::size_t count) override {
    if (count > remaining()) return false;
    std::copy_n(all.data() + at, count, static_cast<char*>(to));
    at += count;
    return true;
  }
  std::size_t remaining() const override { return all.size() - at; }

  std::vector<char> all;
  std::size_t at = 0;
};

/// Receives frames like a link.
struct Receiver {
  ~Receiver() { inbounds::close(inbound->token()); }
  /// False: malformed.
  bool receive(Frame frame) {
    frame.token = inbound->token();
    Bytes bytes;
    return save(frame, bytes) && receive(bytes);
  }
  bool receive(Bytes& bytes) {
    Frame frame;
    if (!load(frame, bytes)) return false;
    if (!frame.arrival) return true;
    const auto arrival = frame.arrival;
    const bool letter = frame.kind == FrameKind::letter;
    cost += letter ? arrival->cost : chunk_cost(frame.bytes);
    if (letter && !inbound->begin(frame.number, arrival)) return false;
    if (arrival->left > 0) return true;
    if (!letter) inbound->end(frame.number);
    while (const auto whole = inbound->take(arrival->from, arrival->to))
      come.push_back({PeerId(), whole->from, whole->to, whole->message()});
    return true;
  }
  /// Receives from a bulk connection, where chunks have no frame.
  bool receive_bulk(const Frame& frame) {
    if (frame.kind == FrameKind::letter) return receive(frame);
    const auto arrival = inbound->find(frame.number);
    if (!arrival || !arrival->bulk || frame.bytes > arrival->left) return false;
    for_each_piece(frame.message, *frame.packing, frame.place, frame.bytes,
                   [&](const std::byte* bytes, std::uint64_t count) {
                     while (count > 0) {
                       const auto piece = arrival->next_piece(count);
                       std::memcpy(piece.data(), bytes, piece.size());
                       bytes += piece.size();
                       count -= piece.size();
                     }
                     return true;
                   });
    if (arrival->left > 0) return true;
    inbound->end(frame.number);
    while (const auto whole = inbound->take(arrival->from, arrival->to))
      come.push_back({PeerId(), whole->from, whole->to, whole->message()});
    return true;
  }

  std::shared_ptr<Inbound> inbound = inbounds::open(random_word());
  std::uint64_t cost = 0;
  std::vector<Received> come;
};

TEST_CASE(
    "the frames of next() rebuild every message in the order of its pair, within the window") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    Rng random(seed);
    const std::uint64_t window = 1024 + random.next() % 300'000;
    Outbound out(window, 1 + random.next() % 100'000);
    Receiver receiver;
    std::map<Address, std::vector<Message>> sent;
    for (int i = 0; i < 20; ++i) {
      std::vector<std::size_t> sizes(random.next() % 5);
      for (auto& size : sizes) size = random.next() % (random.next() % 2 ? 200 : 150'000);
      const Address from = random.next() % 2 ? kWorker0 : kWorker1;
      sent[from].push_back(message_of(static_cast<std::uint64_t>(i), sizes));
      out.put(from, kShard0, sent[from].back());
    }
    while (!out.empty()) {
      if (auto frame = out.next()) {
        REQUIRE(receiver.receive(std::move(*frame)));
        // A letter may be larger than the window; then no other frame is in flight.
        REQUIRE(out.under_way() <= std::max(window, window / 4 + kInlineBytes + 4096));
        REQUIRE(out.under_way() == receiver.cost);
      } else {
        REQUIRE(receiver.cost > 0);
        out.credited(std::exchange(receiver.cost, 0));
      }
    }
    std::map<Address, std::size_t> next;
    for (const auto& piece : receiver.come)
      REQUIRE(same_bytes(piece.message, sent[piece.from][next[piece.from]++]));
    REQUIRE(receiver.come.size() == 20);
    REQUIRE(out.messages() == 20);
  }
}

TEST_CASE("messages of a pair arrive in order over two connections of any speed") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    Rng random(seed);
    Outbound out(300'000, 50'000);
    Receiver receiver;
    std::deque<Frame> small, bulk;
    std::map<Address, std::uint64_t> sent, come;
    for (int i = 0; i < 30; ++i) {
      out.use_bulk(random.next() % 4 != 0);
      const Address from = random.next() % 2 ? kWorker0 : kWorker1;
      const std::size_t large = random.next() % 2 ? 1 + random.next() % 3'000'000 : 10;
      out.put(from, kShard0, message_of(sent[from]++, {large, random.next() % 100'000}));
    }
    while (!out.empty() || !small.empty() || !bulk.empty()) {
      if (auto frame = out.next()) (frame->bulk ? bulk : small).push_back(std::move(*frame));
      REQUIRE(bulk.size() <= 4);
      if (!small.empty() && random.next() % 3 == 0) {
        REQUIRE(receiver.receive(std::move(small.front())));
        small.pop_front();
        out.credited(std::exchange(receiver.cost, 0));
      }
      if (!bulk.empty() && random.next() % 3 == 0) {
        REQUIRE(receiver.receive_bulk(bulk.front()));
        receiver.cost = 0;
        bulk.pop_front();
        out.bulk_sent();
      }
    }
    REQUIRE(receiver.come.size() == 30);
    for (const auto& piece : receiver.come) REQUIRE(number_of(piece.message) == come[piece.from]++);
    REQUIRE(receiver.inbound->taken() == 30);
    REQUIRE(out.begun() == 30);
  }
}

TEST_CASE("bulk and ordinary connections refuse each other's frames") {
  Receiver receiver;
  Outbound out(1u << 20, 50'000);
  out.use_bulk(GENERATE(true, false));
  out.put(kWorker0, kShard0, message_of(3, {120'000}));
  REQUIRE(receiver.receive(*out.next()));
  const Frame chunk = *out.next();
  CHECK((chunk.bulk ? receiver.receive(chunk) : receiver.receive_bulk(chunk)) == false);
}

TEST_CASE("pairs of actors take turns") {
  Outbound out(100u << 20, 1u << 20);
  out.put(kWorker0, kShard0, message_of(0, {10u << 20}));
  out.put(kWorker1, kShard0, message_of(1, {10u << 20}));
  std::vector<std::uint64_t> numbers;
  while (auto frame = out.next()) numbers.push_back(frame->number);
  REQUIRE(numbers.size() == 22);
  for (std::size_t i = 0; i < numbers.size(); ++i) CHECK(numbers[i] == i % 2);
}

TEST_CASE("after a restart, begun messages are dropped and all others are sent") {
  Outbound out(4u << 20, 1u << 20);
  Receiver before, after;
  out.put(kWorker0, kShard0, message_of(0, {3u << 20}));
  out.put(kWorker0, kShard0, message_of(1, {10}));
  out.put(kWorker1, kShard0, message_of(2, {100'000}));
  REQUIRE(before.receive(*out.next()));  // the first message's letter
  out.restart();
  CHECK(out.under_way() == 0);
  while (auto frame = out.next()) REQUIRE(after.receive(std::move(*frame)));
  REQUIRE(after.come.size() == 2);
  CHECK(number_of(after.come[0].message) == 1);
  CHECK(number_of(after.come[1].message) == 2);
  CHECK(out.empty());
}

Bytes saved(Frame frame) {
  Bytes bytes;
  REQUIRE(save(frame, bytes));
  return bytes;
}

Frame letter(Token token, const Message& message) {
  Frame frame;
  frame.kind = FrameKind::letter;
  frame.token = token;
  frame.from = kWorker0;
  frame.to = kShard0;
  frame.message = message;
  frame.packing = std::make_shared<Packing>(pack(message, nullptr, false));
  return frame;
}

TEST_CASE("a truncated or changed frame is refused or harmless") {
  Receiver receiver;
  const Token token = receiver.inbound->token();
  Frame hello;
  hello.kind = FrameKind::hello;
  hello.greeting = std::make_shared<Greeting>();
  hello.greeting->version = "1.2.3";
  hello.greeting->host = "10.0.0.1";
  Frame credit;
  credit.kind = FrameKind::credit;
  credit.token = token;
  for (const Frame& frame : {letter(token, message_of(1, {100, 3, 70'000})), hello, credit}) {
    const Bytes whole = saved(frame);
    for (std::size_t size = 0; size < std::min<std::size_t>(whole.all.size(), 400); ++size) {
      Bytes cut = whole;
      cut.all.resize(size);
      Frame loaded;
      CHECK_FALSE(load(loaded, cut));
    }
    Rng random(7);
    for (int i = 0; i < 20'000; ++i) {
      Bytes changed = whole;
      const std::size_t flips = 1 + random.next() % 4;
      for (std::size_t flip = 0; flip < flips; ++flip)
        changed.all[random.next() % std::min<std::size_t>(changed.all.size(), 200)] =
            static_cast<char>(random.next());
      receiver.receive(changed);
    }
  }
}

TEST_CASE("announced bytes use no memory before they arrive") {
  Receiver receiver;
  Bytes bytes = saved(letter(receiver.inbound->token(), message_of(1, {70'000})));
  // The size of the blob follows kind, token, number, order, two addresses, two counts, header.
  const std::size_t at = 1 + 8 + 8 + 8 + 5 + 5 + 4 + 4 + 16;
  std::uint64_t mark = 0;
  std::memcpy(&mark, bytes.all.data() + at, 8);
  REQUIRE((mark & 0xffffff) == 70'000);
  const auto announce = [&](std::uint64_t size) {
    Bytes changed = bytes;
    const std::uint64_t other = (mark >> 56 << 56) | size;
    std::memcpy(changed.all.data() + at, &other, 8);
    return receiver.receive(changed);
  };
  CHECK_FALSE(announce(limits::kMaxBlobBytes + 1));
  CHECK_FALSE(announce(0));
  const std::size_t before = host_pool_counts().bytes_in_use;
  CHECK(announce(limits::kMaxBlobBytes));
  CHECK(host_pool_counts().bytes_in_use == before);
}

TEST_CASE("a chunk of an unknown message, or with too many bytes, is refused") {
  Receiver receiver;
  Outbound out(1u << 20, 50'000);
  out.put(kWorker0, kShard0, message_of(3, {120'000}));
  const Frame first = *out.next(), second = *out.next();
  CHECK_FALSE(receiver.receive(second));
  REQUIRE(receiver.receive(first));
  CHECK_FALSE(receiver.receive(first));  // repeated
  Frame larger = second;
  larger.bytes = 120'000;
  REQUIRE(receiver.receive(larger));
  CHECK(receiver.come.size() == 1);
  CHECK_FALSE(receiver.receive(second));  // the message is complete
}

TEST_CASE("of a frame with an unknown token, only the token is read") {
  Bytes bytes = saved(letter(12345, message_of(1, {100})));
  Frame loaded;
  REQUIRE(load(loaded, bytes));
  CHECK(loaded.inbound == nullptr);
  CHECK(loaded.arrival == nullptr);
}

}  // namespace
}  // namespace leeway::test
