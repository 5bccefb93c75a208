// Bulk lanes: traffic and lost connections.
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>
#include <thread>

#include "tests/support/process.hpp"
#include "tests/transport/mesh_recorder.hpp"
#include "tests/transport/tcp_proxy.hpp"
#include "transport/certificates.hpp"

namespace leeway::test {
namespace {

using namespace leeway::transport;

constexpr Address kWorker0{RoleKind::worker, 0}, kShard0{RoleKind::shard, 0};
constexpr MeshOptions kTcp{.transport = Transport::tcp};

/// Sends large messages until they use a bulk lane. Returns their number.
std::uint64_t send_until_bulk(Station& a, PeerId peer, Station& b, std::uint64_t sent = 0) {
  while (!a.mesh().counts(peer).bulk && sent < 1000) {
    a.mesh().send(peer, kWorker0, kShard0, message_of(sent++, {1u << 20}));
    REQUIRE(b.received(sent).size() == sent);
  }
  REQUIRE(a.mesh().counts(peer).bulk);
  return sent;
}

void check_in_order(const std::vector<Received>& received) {
  for (std::size_t i = 0; i < received.size(); ++i) {
    const auto sizes = received[i].message.blobs().empty()
                           ? std::vector<std::size_t>{}
                           : std::vector<std::size_t>{received[i].message.blobs()[0].size()};
    REQUIRE(same_bytes(received[i].message, message_of(i, sizes)));
  }
}

/// The sockets of this process that are connected to one of the ports, or accepted by it.
std::set<int> sockets_of(std::uint16_t one, std::uint16_t other) {
  const auto port = [](int socket, auto* name) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    return name(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
                   address.sin_family == AF_INET
               ? ntohs(address.sin_port)
               : 0;
  };
  std::set<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int socket = std::stoi(entry.path().filename().string());
    const int own = port(socket, getsockname), peer = port(socket, getpeername);
    if (peer != 0 && (own == one || own == other || peer == one || peer == other))
      found.insert(socket);
  }
  return found;
}

TEST_CASE("large blobs use bulk lanes in both directions") {
  Station a(kTcp), b(kTcp);
  const PeerId to_b = a.must_call(b.mesh().port());
  REQUIRE(b.logged("up 0"));
  CHECK_FALSE(a.mesh().counts(to_b).bulk);
  send_until_bulk(a, to_b, b);
  send_until_bulk(b, PeerId(0), a);
  // Both ends of a small lane and two bulk lanes.
  CHECK(sockets_of(a.mesh().port(), b.mesh().port()).size() == 6);
}

TEST_CASE("small and large messages of a pair keep their order over two lanes") {
  Station a(kTcp), b(kTcp);
  const PeerId to_b = a.must_call(b.mesh().port());
  const std::uint64_t begun = send_until_bulk(a, to_b, b);
  constexpr std::uint64_t kMore = 300;
  for (std::uint64_t i = begun; i < begun + kMore; ++i)
    a.mesh().send(to_b, kWorker0, kShard0,
                  i % 3 == 0 ? message_of(i, {3u << 20}) : message_of(i, {}));
  const auto received = b.received(begun + kMore);
  REQUIRE(received.size() == begun + kMore);
  check_in_order(received);
}

TEST_CASE("a peer that leaves is gone after its messages on both lanes") {
  Station a(kTcp), b(kTcp);
  const PeerId to_b = a.must_call(b.mesh().port());
  const std::uint64_t begun = send_until_bulk(a, to_b, b);
  for (std::uint64_t i = begun; i < begun + 20; ++i)
    a.mesh().send(to_b, kWorker0, kShard0, message_of(i, {1u << 20}));
  a.mesh().leave(to_b);
  REQUIRE(b.gone(0) == "left");
  const auto received = b.received(1);
  REQUIRE(received.size() == begun + 20);
  check_in_order(received);
}

TEST_CASE("a peer that leaves sends everything, also to one that takes it slowly") {
  Station a(kTcp), b(kTcp);
  const PeerId to_b = a.must_call(b.mesh().port());
  const std::uint64_t begun = send_until_bulk(a, to_b, b);
  b.handling = std::chrono::milliseconds(500);
  for (std::uint64_t i = begun; i < begun + 14; ++i)
    a.mesh().send(to_b, kWorker0, kShard0, message_of(i, {1u << 20}));
  a.mesh().leave(to_b);
  REQUIRE(b.gone(0) == "left");
  const auto received = b.received(1);
  REQUIRE(received.size() == begun + 14);
  check_in_order(received);
}

TEST_CASE("a mesh that ends sends large messages, although no bulk lane is open yet") {
  Station a(kTcp), b(kTcp);
  const PeerId to_b = a.must_call(b.mesh().port());
  for (std::uint64_t i = 0; i < 3; ++i)
    a.mesh().send(to_b, kWorker0, kShard0, message_of(i, {1u << 20}));
  a.close();
  REQUIRE(b.gone(0) == "left");
  const auto received = b.received(1);
  REQUIRE(received.size() == 3);
  check_in_order(received);
}

TEST_CASE("after the loss of only the bulk lanes, the whole connection is made again") {
  Station a(kTcp), b(kTcp);
  const PeerId to_b = a.must_call(b.mesh().port());
  REQUIRE(b.logged("up 0"));
  const auto small = sockets_of(a.mesh().port(), b.mesh().port());
  const std::uint64_t begun = send_until_bulk(a, to_b, b);
  for (const int socket : sockets_of(a.mesh().port(), b.mesh().port()))
    if (!small.contains(socket)) shutdown(socket, SHUT_RDWR);
  REQUIRE(a.logged("reconnected 0"));
  REQUIRE(b.logged("reconnected 0"));
  send_until_bulk(a, to_b, b, begun);
}

TEST_CASE("mixed traffic in both directions survives cuts of any connection at any time") {
  Station a(kTcp), b(kTcp);
  const PeerId to_b = a.must_call(b.mesh().port());
  REQUIRE(b.logged("up 0"));
  constexpr Address kWorker1{RoleKind::worker, 1};
  constexpr std::uint64_t kCount = 400;
  Rng random(5);
  const auto sizes = [](std::uint64_t i) {
    return i % 5 == 0 ? std::vector<std::size_t>{1u << 20} : std::vector<std::size_t>{i % 300};
  };
  for (std::uint64_t i = 0; i < kCount; ++i) {
    for (const Address from : {kWorker0, kWorker1}) {
      a.mesh().send(to_b, from, kShard0, message_of(i, sizes(i)));
      b.mesh().send(PeerId(0), from, kShard0, message_of(i, sizes(i)));
    }
    for (const int socket : sockets_of(a.mesh().port(), b.mesh().port()))
      if (random.next() % 200 == 0) shutdown(socket, SHUT_RDWR);
  }
  for (Station* each : {&a, &b}) {
    const auto received = each->received(2 * kCount);
    REQUIRE(received.size() == 2 * kCount);
    std::map<Address, std::uint64_t> next;
    for (const auto& arrived : received) {
      const std::uint64_t number = next[arrived.from]++;
      REQUIRE(same_bytes(arrived.message, message_of(number, sizes(number))));
    }
    CHECK_FALSE(each->logged("gone", std::chrono::milliseconds(1)));
  }
}

TEST_CASE("bulk lanes that both sides request at once are made once") {
  for (int i = 0; i < 20; ++i) {
    INFO("round " << i);
    Station a(kTcp), b(kTcp);
    const PeerId to_b = a.must_call(b.mesh().port());
    REQUIRE(b.logged("up 0"));
    std::thread other(
        [&] { b.mesh().send(PeerId(0), kWorker0, kShard0, message_of(0, {1u << 20})); });
    a.mesh().send(to_b, kWorker0, kShard0, message_of(0, {1u << 20}));
    other.join();
    REQUIRE(
        comes_true([&] { return a.mesh().counts(to_b).bulk && b.mesh().counts(PeerId(0)).bulk; }));
    a.mesh().send(to_b, kWorker0, kShard0, message_of(1, {1u << 20}));
    b.mesh().send(PeerId(0), kWorker0, kShard0, message_of(1, {1u << 20}));
    REQUIRE(a.received(2).size() == 2);
    REQUIRE(b.received(2).size() == 2);
    // A half-closed connection would be detected after a while.
    std::this_thread::sleep_for(std::chrono::milliseconds(i == 19 ? 500 : 0));
    CHECK(a.log_of_peers() == std::vector<std::string>{"up 0"});
    CHECK(b.log_of_peers() == std::vector<std::string>{"up 0"});
  }
}

TEST_CASE("large blobs travel over TLS on bulk lanes, both ways") {
  const TemporaryFolder folder;
  REQUIRE(make_certificates({.folder = folder / "tls", .nodes = {"node"}}));
  const MeshOptions options{.tls = folder / "tls/node", .transport = Transport::tcp};
  Station a(options), b(options);
  const PeerId to_b = a.must_call(b.mesh().port());
  REQUIRE(b.logged("up 0"));
  std::uint64_t there = send_until_bulk(a, to_b, b), back = send_until_bulk(b, PeerId(0), a);
  for (int i = 0; i < 20; ++i) {
    a.mesh().send(to_b, kWorker0, kShard0, message_of(there++, {5u << 20}));
    b.mesh().send(PeerId(0), kWorker0, kShard0, message_of(back++, {5u << 20}));
  }
  const auto one = b.received(there), other = a.received(back);
  REQUIRE(one.size() == there);
  REQUIRE(other.size() == back);
  check_in_order(one);
  check_in_order(other);
}

}  // namespace
}  // namespace leeway::test
