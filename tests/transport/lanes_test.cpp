// Letters, queues and arrivals without a network: valid bytes, hostile bytes, order, windows, lost
// connections.
#include <catch2/catch.hpp>

#include "core/limits.hpp"
#include "tests/transport/mesh_recorder.hpp"
#include "transport/arrivals.hpp"
#include "transport/send_queue.hpp"

namespace leeway::test {
namespace {

using namespace leeway::transport;

constexpr Address kWorker0{RoleKind::worker, 0}, kWorker1{RoleKind::worker, 1};
constexpr Address kShard0{RoleKind::shard, 0};

Bytes letter_of(const Parcel& parcel, const Packing& packing) {
  Bytes bytes;
  append_letter(bytes, parcel, packing);
  CHECK(bytes.size() == letter_bytes(parcel.message, packing));
  return bytes;
}

/// Receives letters like a link; the blobs behind a letter arrive at once.
struct Receiver {
  bool receive(const SendQueue::Sending& sending, bool bulk) {
    auto arrival = read_letter(letter_of(sending.parcel, sending.packing), bulk);
    if (!arrival) return false;
    for (std::size_t i = 0; i < arrival->sizes.size(); ++i)
      if (arrival->sizes[i] > 0) arrival->blobs[i] = sending.parcel.message.blobs()[i];
    const Address from = arrival->from, to = arrival->to;
    if (!arrivals.add(std::move(*arrival))) return false;
    ++(bulk ? counts.bulk : counts.small);
    while (auto next = arrivals.take(from, to))
      come.push_back({PeerId(), from, to, next->message()});
    return true;
  }
  Arrivals arrivals;
  LaneCounts counts;
  std::vector<Received> come;
};

std::vector<std::size_t> random_sizes(Rng& random) {
  std::vector<std::size_t> sizes;
  for (std::uint64_t i = random.below(4); i > 0; --i)
    sizes.push_back(random.one_in(3) ? random.below(400'000) : random.below(2000));
  return sizes;
}

TEST_CASE("messages arrive once and in the order of their pair, also over lost connections") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    Rng random(seed);
    SendQueue queue(1024 + random.below(100'000));
    Receiver receiver;
    std::vector<std::pair<Address, Message>> sent;
    std::uint64_t put = 0, losses = 0;
    const std::uint64_t count = 1 + random.below(60);
    for (int step = 0; receiver.come.size() < count; ++step) {
      REQUIRE(step < 100'000);
      const std::uint64_t choice = random.below(20);
      if (choice < 5 && put < count) {
        const Address from = random.one_in(2) ? kWorker0 : kWorker1;
        sent.emplace_back(from, message_of(put++, random_sizes(random)));
        queue.put(from, kShard0, sent.back().second);
      } else if (choice < 12) {
        const bool bulk = random.one_in(2);
        const auto next = bulk ? queue.next_bulk() : queue.next_small();
        // A message may be lost with its connection, on either lane.
        if (next && !random.one_in(15)) {
          REQUIRE(receiver.receive(*next, bulk));
        } else if (next) {
          ++losses;
          REQUIRE(queue.restart(receiver.counts));
        }
      } else if (choice < 18) {
        REQUIRE(queue.acknowledge(receiver.counts));
      }
    }
    for (const Address from : {kWorker0, kWorker1}) {
      std::vector<Message> expected, come;
      for (const auto& [sender, message] : sent)
        if (sender == from) expected.push_back(message);
      for (const auto& received : receiver.come)
        if (received.from == from) come.push_back(received.message);
      REQUIRE(come.size() == expected.size());
      for (std::size_t i = 0; i < come.size(); ++i) REQUIRE(same_bytes(come[i], expected[i]));
    }
    REQUIRE(queue.acknowledge(receiver.counts));
    CHECK(queue.waiting() == 0);
    CHECK(queue.sent() == receiver.counts);
  }
}

TEST_CASE("the small lane keeps its window, and the bulk lane passes it") {
  SendQueue queue(10'000);
  for (std::uint64_t i = 0; i < 10; ++i) queue.put(kWorker0, kShard0, message_of(i, {4000}));
  queue.put(kWorker1, kShard0, message_of(10, {1u << 20}));
  CHECK(queue.next_small());
  CHECK(queue.next_small());
  CHECK(queue.next_small());  // 4 kB more than the window, at most one message
  CHECK_FALSE(queue.next_small());
  CHECK(queue.next_bulk());
  CHECK(queue.acknowledge({1, 0}));
  CHECK(queue.next_small());
  CHECK_FALSE(queue.next_small());
}

TEST_CASE("a peer that acknowledges an unsent message is refused") {
  SendQueue queue(10'000);
  queue.put(kWorker0, kShard0, message_of(0));
  CHECK_FALSE(queue.acknowledge({1, 0}));
  REQUIRE(queue.next_small());
  CHECK(queue.acknowledge({1, 0}));
  CHECK_FALSE(queue.acknowledge({0, 0}));
  CHECK_FALSE(queue.acknowledge({1, 1}));
  CHECK_FALSE(queue.restart({2, 0}));
}

TEST_CASE("a truncated or changed letter is refused or harmless") {
  Rng random(7);
  for (int i = 0; i < 3000; ++i) {
    const Parcel parcel{kWorker0, kShard0, random.below(9), message_of(i, random_sizes(random))};
    const Packing packing = pack_for_bulk(parcel.message);
    Bytes bytes = letter_of(parcel, packing);
    CHECK(read_letter(bytes, true));
    CHECK(read_letter(bytes, false).has_value() == !has_large_blobs(parcel.message));
    if (random.one_in(2)) {
      bytes.resize(random.below(bytes.size()));
      CHECK_FALSE(read_letter(bytes, true));
      continue;
    }
    for (std::uint64_t change = 1 + random.below(4); change > 0; --change)
      bytes[random.below(std::min<std::size_t>(bytes.size(), 200))] =
          static_cast<std::byte>(random.next());
    if (const auto read = read_letter(bytes, true)) {
      std::uint64_t behind = 0;
      for (const auto size : read->sizes) behind += size;
      CHECK(behind <= limits::kMaxMessageBytes);
    }
  }
}

TEST_CASE("a repeated message, and too many that wait for an earlier one, are refused") {
  const auto arrival = [](std::uint64_t order, std::size_t held) {
    Arrival one;
    one.from = kWorker0;
    one.to = kShard0;
    one.order = order;
    one.held = held;
    return one;
  };
  Arrivals arrivals;
  CHECK(arrivals.add(arrival(0, 8)));
  CHECK_FALSE(arrivals.add(arrival(0, 8)));
  CHECK(arrivals.take(kWorker0, kShard0));
  CHECK_FALSE(arrivals.add(arrival(0, 8)));
  CHECK(arrivals.add(arrival(2, std::size_t{1} << 31)));
  CHECK_FALSE(arrivals.take(kWorker0, kShard0));
  CHECK_FALSE(arrivals.add(arrival(3, 8)));
}

}  // namespace
}  // namespace leeway::test
