// Bulk connections: traffic, failed attempts, loss, and unknown callers.
#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>
#include <thread>

#include "cluster/certificates.hpp"
#include "tests/cluster/mesh_recorder.hpp"
#include "tests/cluster/tcp_proxy.hpp"
#include "tests/support/process.hpp"

namespace leeway::test {
namespace {

using namespace leeway::cluster;

constexpr Address kWorker0{RoleKind::worker, 0}, kShard0{RoleKind::shard, 0};
constexpr MeshOptions kTcp{.transport = Transport::tcp};

/// Sends large messages until they use a bulk connection. Returns their number.
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

/// Both ends of this process's connections, except the meshes' ordinary ones.
std::vector<int> bulk_sockets(std::uint16_t one, std::uint16_t other) {
  const auto port = [](int socket, auto* name) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    return name(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
                   address.sin_family == AF_INET
               ? ntohs(address.sin_port)
               : 0;
  };
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int socket = std::stoi(entry.path().filename().string());
    const int own = port(socket, getsockname), peer = port(socket, getpeername);
    if (peer != 0 && own != one && own != other && peer != one && peer != other)
      found.push_back(socket);
  }
  return found;
}

TEST_CASE("large blobs use bulk connections in both directions") {
  Station a(kTcp), b(kTcp);
  const PeerId to_b = a.must_call(b.mesh().port());
  REQUIRE(b.logged("up 0"));
  CHECK_FALSE(a.mesh().counts(to_b).bulk);
  send_until_bulk(a, to_b, b);
  send_until_bulk(b, PeerId(0), a);
  CHECK(bulk_sockets(a.mesh().port(), b.mesh().port()).size() == 4);
}

TEST_CASE("small and large messages of a pair keep their order over two connections") {
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

TEST_CASE("a peer that leaves is gone after its messages on both connections") {
  Station a(kTcp), b(kTcp);
  const PeerId to_b = a.must_call(b.mesh().port());
  const std::uint64_t begun = send_until_bulk(a, to_b, b);
  for (std::uint64_t i = begun; i < begun + 20; ++i)
    a.mesh().send(to_b, kWorker0, kShard0, message_of(i, {1u << 20}));
  a.mesh().leave(to_b);
  REQUIRE(b.logged("gone 0: left"));
  const auto received = b.received(1);
  REQUIRE(received.size() == begun + 20);
  check_in_order(received);
}

TEST_CASE("after the loss of only the bulk connections, the whole connection is made again") {
  Station a(kTcp), b(kTcp);
  const PeerId to_b = a.must_call(b.mesh().port());
  const std::uint64_t begun = send_until_bulk(a, to_b, b);
  for (const int socket : bulk_sockets(a.mesh().port(), b.mesh().port()))
    shutdown(socket, SHUT_RDWR);
  REQUIRE(a.logged("reconnected 0"));
  REQUIRE(b.logged("reconnected 0"));
  send_until_bulk(a, to_b, b, begun);
}

TEST_CASE("lost bulk connections under mixed traffic are restored") {
  Station a(kTcp), b(kTcp);
  const PeerId to_b = a.must_call(b.mesh().port());
  std::uint64_t sent = send_until_bulk(a, to_b, b);
  constexpr Address kWorker1{RoleKind::worker, 1};
  for (int cuts = 1; cuts <= 5; ++cuts) {
    INFO("cut " << cuts);
    for (int i = 0; i < 200; ++i) {
      a.mesh().send(to_b, kWorker0, kShard0, message_of(sent++, {i % 5 == 0 ? 1u << 20 : 100u}));
      a.mesh().send(to_b, kWorker1, kShard0, message_of(sent++, {}));
      if (i == 100)
        for (const int socket : bulk_sockets(a.mesh().port(), b.mesh().port()))
          shutdown(socket, SHUT_RDWR);
    }
    const auto reconnected = [&](Station& station) {
      return std::ranges::count(station.log(), "reconnected 0") >= cuts;
    };
    REQUIRE(comes_true([&] { return reconnected(a) && reconnected(b); }));
    // The new connection works.
    b.forget();
    REQUIRE(comes_true([&] {
      a.mesh().send(to_b, kWorker0, kShard0, message_of(0, {1u << 20}));
      return !b.received(1).empty() && a.mesh().counts(to_b).bulk;
    }));
  }
}

TEST_CASE("bulk connections that both sides request at once are made once") {
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

TEST_CASE("without bulk connections, large blobs use the ordinary connection") {
  MeshOptions without = kTcp;
  without.bulk = false;
  const bool caller = GENERATE(true, false);
  Station a(caller ? without : kTcp), b(caller ? kTcp : without);
  const PeerId to_b = a.must_call(b.mesh().port());
  for (std::uint64_t i = 0; i < 30; ++i)
    a.mesh().send(to_b, kWorker0, kShard0, message_of(i, {2u << 20}));
  const auto received = b.received(30);
  REQUIRE(received.size() == 30);
  check_in_order(received);
  CHECK_FALSE(a.mesh().counts(to_b).bulk);
}

// Unknown callers.

struct Taken {
  explicit Taken(const std::string& folder = "") {
    auto read = BulkTls::read(folder);
    LW_CHECK(read.has_value(), read ? "" : read.error().text);
    tls = *read;
    auto opened = BulkListener::open(
        "127.0.0.1", tls,
        {.knows = [](Token token) { return token == 7; },
         .take = [this](const BulkHello&, std::unique_ptr<BulkSocket>) { ++taken; },
         .note =
             [this](const std::string& text) {
               std::lock_guard lock(mutex);
               notes.push_back(text);
             }});
    LW_CHECK(opened.has_value(), opened ? "" : opened.error().text);
    listener = std::move(*opened);
  }
  bool noted(const std::string& words) {
    return comes_true([&] {
      std::lock_guard lock(mutex);
      return std::ranges::any_of(
          notes, [&](const std::string& note) { return note.find(words) != std::string::npos; });
    });
  }
  bool has_taken(int count) {
    return comes_true([&] { return taken == count; });
  }
  bool lets_in() {
    return bool(open_bulk("127.0.0.1", listener->port(), tls.get(), {.token = 7}, seconds(60)));
  }

  std::shared_ptr<const BulkTls> tls;
  std::atomic<int> taken{0};
  std::mutex mutex;
  std::vector<std::string> notes;
  std::unique_ptr<BulkListener> listener;
};

TEST_CASE("a bulk connection is accepted only with a known token") {
  Taken here;
  CHECK(here.lets_in());
  CHECK(here.has_taken(1));
  CHECK_FALSE(open_bulk("127.0.0.1", here.listener->port(), nullptr, {.token = 8}, seconds(60)));
  CHECK(here.noted("no matching connection"));
  CHECK(here.taken == 1);
}

TEST_CASE("garbage and a hundred silent callers do not block a valid caller") {
  Taken here;
  std::vector<Socket> idle;
  for (int i = 0; i < 100; ++i) idle.push_back(connect_to(here.listener->port()));
  connect_to(here.listener->port()).write("GET / HTTP/1.1\r\nHost: leeway.example\r\n\r\n");
  CHECK(here.noted("no matching connection"));
  CHECK(here.noted("too many callers without a greeting"));
  CHECK(here.lets_in());
}

TEST_CASE("over TLS, a bulk connection is accepted only from processes of the same cluster") {
  const TemporaryFolder folder;
  for (const std::string cluster : {"own", "other"})
    REQUIRE(make_certificates({.folder = folder / cluster, .nodes = {"node"}}));
  const auto other = BulkTls::read(folder / "other/node");
  REQUIRE(other);
  for (const BulkTls* tls : {other->get(), static_cast<const BulkTls*>(nullptr)}) {
    Taken here(folder / "own/node");
    CHECK(here.lets_in());
    const auto port = here.listener->port();
    CHECK_FALSE(open_bulk("127.0.0.1", port, tls, {.token = 7}, seconds(60)));
    CHECK(here.noted("TLS handshake failed"));
    CHECK(here.taken == 1);
  }
}

TEST_CASE("large blobs travel over TLS on bulk connections, both ways") {
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
