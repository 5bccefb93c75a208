// The mesh between processes of one host that lend each other large blobs.
#include <catch2/catch.hpp>

#include "tensor/shared_arena.hpp"
#include "tests/support/process.hpp"
#include "tests/transport/mesh_recorder.hpp"
#include "tests/transport/tcp_proxy.hpp"

namespace leeway::test {
namespace {

constexpr Address kWorker0{RoleKind::worker, 0}, kShard0{RoleKind::shard, 0};

/// Both lend to each other.
bool lend(Station& a, Station& b) {
  return comes_true([&] {
    return a.mesh().counts(PeerId(0)).shared_memory && b.mesh().counts(PeerId(0)).shared_memory;
  });
}

/// Another process whose mesh returns all messages.
struct Echo {
  Echo() : process({MESH_ECHO}) {
    LW_CHECK(comes_true([&] { return process.out().ends_with('\n'); }), process.err());
    port = static_cast<std::uint16_t>(std::stoi(process.out()));
  }
  Process process;
  std::uint16_t port = 0;
};

}  // namespace

TEST_CASE("messages of any size arrive intact over every transport, also from another process") {
  const auto transport = GENERATE(Transport::automatic, Transport::tcp, Transport::shared_memory);
  Station a({.transport = transport});
  Echo echo;
  const PeerId peer = a.must_call(echo.port);
  const bool shared = transport != Transport::tcp;
  REQUIRE(comes_true([&] { return a.mesh().counts(peer).shared_memory == shared; }));
  const std::vector<std::vector<std::size_t>> all = {
      {},        {1},           {65'536},          {65'537},  {0, 70'000, 3, 100'000, 0, 65'000},
      {4 << 20}, {1 << 20, 64}, {100'000, 40'000}, {30 << 20}};
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < all.size(); ++i) {
    a.mesh().send(peer, kWorker0, kShard0, message_of(i, all[i]));
    bytes += 16;
    for (const std::size_t size : all[i]) bytes += size;
  }
  const auto received = a.received(all.size());
  REQUIRE(received.size() == all.size());
  for (std::uint64_t i = 0; i < all.size(); ++i)
    CHECK(same_bytes(received[i].message, message_of(i, all[i])));
  CHECK(a.mesh().counts(peer).bytes_out == bytes);
  CHECK(a.mesh().counts(peer).bytes_in == bytes);
}

TEST_CASE("a large blob is read in the sender's memory and then returned") {
  Station a, b;
  const PeerId peer = a.must_call(b.mesh().port());
  REQUIRE(lend(a, b));
  const Message message = message_of(1, {1 << 20, 100});
  Blob sent = message.blobs()[0];
  a.mesh().send(peer, kWorker0, kShard0, message);
  {
    auto received = b.received(1);
    REQUIRE(received.size() == 1);
    REQUIRE(same_bytes(received[0].message, message));
    Blob large = received[0].message.blobs()[0];
    CHECK(large.data() != sent.data());
    CHECK_FALSE(arena_offset(large));
    CHECK_THROWS_AS(large.mutable_data(), CheckFailed);
    // Writes to a sent blob, which shows that both meshes share its bytes.
    sent.mutable_data()[77] ^= std::byte{1};
    CHECK(large.bytes()[77] == sent.bytes()[77]);
  }
  b.forget();
  const_cast<Message&>(message) = Message();
  CHECK(comes_true([&] { return sent.unique(); }));
}

TEST_CASE("lent blobs survive a lost connection, and then return to the sender") {
  Station a, b;
  TcpProxy proxy(b.mesh().port());
  const PeerId peer = a.must_call(proxy.port());
  REQUIRE(lend(a, b));
  std::vector<Blob> sent;
  for (std::uint64_t i = 0; i < 12; ++i) {
    if (i == 4) {
      REQUIRE(b.received(4).size() == 4);
      proxy.hold();
    }
    const Message message = message_of(i, {1 << 20});
    sent.push_back(message.blobs()[0]);
    a.mesh().send(peer, kWorker0, kShard0, message);
  }
  proxy.cut();
  REQUIRE(a.logged("reconnected 0"));
  a.mesh().send(peer, kWorker0, kShard0, message_of(12));
  auto received = b.received(13);
  REQUIRE(received.size() == 13);
  for (std::size_t i = 0; i < 12; ++i)
    CHECK(same_bytes(received[i].message, message_of(i, {1 << 20})));
  CHECK_FALSE(sent[0].unique());
  received.clear();
  b.forget();
  CHECK(comes_true([&] { return std::ranges::all_of(sent, &Blob::unique); }));
  CHECK(lend(a, b));
}

TEST_CASE("blobs that a killed process had borrowed return to the sender") {
  Station a({.silence = milliseconds(300)});
  Echo echo;
  const PeerId peer = a.must_call(echo.port);
  REQUIRE(comes_true([&] { return a.mesh().counts(peer).shared_memory; }));
  echo.process.stop();
  std::vector<Blob> sent;
  for (std::uint64_t i = 0; i < 50; ++i) {
    const Message message = message_of(i, {1 << 20});
    sent.push_back(message.blobs()[0]);
    a.mesh().send(peer, kWorker0, kShard0, message);
  }
  REQUIRE(a.logged("silent 0"));
  CHECK(std::ranges::none_of(sent, &Blob::unique));
  echo.process.signal(SIGKILL);
  REQUIRE(a.logged("gone 0"));
  CHECK(comes_true([&] { return std::ranges::all_of(sent, &Blob::unique); }));
}

TEST_CASE("a mesh that uses only shared memory refuses a peer without it") {
  Station a({.transport = Transport::shared_memory}), b({.transport = Transport::tcp});
  const auto called = a.call(b.mesh().port());
  REQUIRE_FALSE(called);
  CHECK_FALSE(b.logged("up", std::chrono::milliseconds(100)));
  CHECK(called.error().text.find("only shared memory") != std::string::npos);
  const auto calls = b.call(a.mesh().port());
  REQUIRE_FALSE(calls);
  CHECK(calls.error().text.find("only shared memory") != std::string::npos);
  CHECK(a.logged("note: refused a call"));
  CHECK_FALSE(a.logged("up", std::chrono::milliseconds(1)));
}

}  // namespace leeway::test
