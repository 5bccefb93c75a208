// Unknown callers, processes of other users, and peers that break the protocol.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <memory>
#include <vector>

#include "tests/support/process.hpp"
#include "tests/transport/mesh_recorder.hpp"
#include "tests/transport/raw_peer.hpp"
#include "tests/transport/tcp_proxy.hpp"

namespace leeway::test {
namespace {

using namespace leeway::transport;

constexpr Address kWorker0{RoleKind::worker, 0}, kShard0{RoleKind::shard, 0};

/// A peer connects to the mesh and sends it a message.
void check_alive(Station& station) {
  Station other;
  const std::size_t before = station.received(0).size();
  other.mesh().send(other.must_call(station.mesh().port()), kWorker0, kShard0,
                    message_of(1, {200'000}));
  CHECK(station.received(before + 1).size() == before + 1);
}

Bytes bytes_of(const std::string& text) {
  Bytes bytes;
  ByteWriter(bytes).put(text.data(), text.size());
  return bytes;
}

TEST_CASE("bytes that are no greeting are refused") {
  Station a;
  Hello hello;
  hello.version = "raw";
  const Bytes valid = packet_of(hello, kTransportProtocol);
  std::vector<Bytes> packets = {Bytes{std::byte{1}}, Bytes(32), Bytes(32, std::byte{0xff}),
                                bytes_of("GET / HTTP/1.1\r\nHost: leeway.example\r\n\r\n")};
  packets[0].resize(32);
  // The head of a packet that announces 4 GiB.
  packets.push_back(valid);
  std::memset(packets.back().data() + 12, 0xff, 4);
  Rng random(3);
  for (int i = 0; i < 300; ++i) {
    Bytes changed = valid;
    changed[random.next() % changed.size()] ^= std::byte(1 + random.next() % 255);
    changed.resize(1 + random.next() % changed.size());
    packets.push_back(std::move(changed));
  }
  for (const Bytes& packet : packets)
    connect_to(a.mesh().port())
        .write({reinterpret_cast<const char*>(packet.data()), packet.size()});
  check_alive(a);
  CHECK(a.logged("note: refused a call: it sent no valid greeting"));
}

TEST_CASE("changed confirmations are refused") {
  Station a;
  Rng random(7);
  for (int i = 0; i < 200; ++i) {
    INFO("change " << i);
    RawPeer peer(a.mesh().port());
    peer.details.host = std::string(random.next() % 600, 'x');
    switch (i % 4) {
      case 0:
        peer.details.port = 0x10000 + static_cast<std::uint32_t>(random.next() >> 40);
        break;
      case 1:
        peer.details.host = "10.0.0.1\nforged line";
        break;
      case 2:
        peer.details.received = {random.next() | 1, 0};
        break;
      default:
        peer.hello.expected = {random.next(), 5};
    }
    // Impossible counts are found after the answer.
    if (i % 4 == 2)
      peer.greet();
    else
      REQUIRE_FALSE(peer.greet());
    REQUIRE(peer.is_closed());
  }
  check_alive(a);
  for (const auto& line : a.log()) CHECK(line.find('\n') == std::string::npos);
}

TEST_CASE("a process that does not know the user's token is refused with the reason") {
  Station a;
  const Secret other{std::byte{1}};
  RawPeer stranger(a.mesh().port(), &other);
  CHECK_FALSE(stranger.greet());
  CHECK(stranger.refusal.find("another user of the host") != std::string::npos);
  CHECK(a.logged("note: refused a call: it does not know the token of this user"));
  CHECK_FALSE(a.logged("up", std::chrono::milliseconds(1)));

  const TemporaryFolder folder;
  ::setenv("LEEWAY_TOKEN", (folder / "token").c_str(), 1);
  Station b;
  ::unsetenv("LEEWAY_TOKEN");
  const auto called = b.call(a.mesh().port());
  REQUIRE_FALSE(called);
  CHECK(called.error().text.find("another user of the host") != std::string::npos);
}

TEST_CASE("a token that others can read is refused, and the error names the file") {
  const TemporaryFolder folder;
  const std::string token = folder / "token";
  ::setenv("LEEWAY_TOKEN", token.c_str(), 1);
  { Station first; }
  struct stat status {};
  REQUIRE(stat(token.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  chmod(token.c_str(), 0644);
  const Station second;
  chmod(token.c_str(), 0600);
  truncate(token.c_str(), 5);
  const Station third;
  ::unsetenv("LEEWAY_TOKEN");
  CHECK(second.error.find(token) == 0);
  CHECK(second.error.find("others than this user can read") != std::string::npos);
  CHECK(third.error.find("does not have 32 bytes") != std::string::npos);
}

TEST_CASE("a valid caller connects while silent callers hold all places") {
  Station a;
  std::vector<Socket> idle;
  for (int i = 0; i < 200; ++i) idle.push_back(connect_to(a.mesh().port()));
  check_alive(a);
}

TEST_CASE("a peer that breaks the protocol loses its link, and other peers continue") {
  Station a;
  Station other;
  const PeerId peer = other.must_call(a.mesh().port());
  struct Fault {
    const char* name;
    FrameKind kind;
    Bytes body;
    std::optional<std::uint32_t> claimed;
  };
  Bytes counts;
  ByteWriter(counts).put(LaneCounts{1, 0});
  const std::vector<Fault> faults = {
      {"a letter that announces 4 GiB", FrameKind::letter, Bytes(100), 0xffff'ffffu},
      {"an acknowledgement that announces 1 MiB", FrameKind::ack, Bytes(100), 1u << 20},
      {"a letter of zeros", FrameKind::letter, Bytes(100), std::nullopt},
      {"an empty letter", FrameKind::letter, {}, std::nullopt},
      {"a letter of ones", FrameKind::letter, Bytes(500, std::byte{0xff}), std::nullopt},
      {"an acknowledgement of an unsent message", FrameKind::ack, counts, std::nullopt},
      {"an empty offer", FrameKind::offer, {}, std::nullopt},
      {"a short bye", FrameKind::bye, Bytes(3), std::nullopt},
      {"an unknown frame", static_cast<FrameKind>(99), {}, std::nullopt},
  };
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const Fault& fault = faults[i];
    INFO(fault.name);
    RawPeer broken(a.mesh().port());
    REQUIRE(broken.greet());
    REQUIRE(broken.send_frame(static_cast<std::uint32_t>(fault.kind), fault.body, fault.claimed));
    REQUIRE(broken.is_closed());
    REQUIRE(a.logged(concat("gone ", i + 1, ": it sent invalid bytes")));
    other.mesh().send(peer, kWorker0, kShard0, message_of(i));
    REQUIRE(a.received(i + 1).size() == i + 1);
  }
}

TEST_CASE("an invalid message on a bulk lane ends the link") {
  Station a({.transport = Transport::tcp});
  for (const std::uint64_t size : {std::uint64_t{1} << 40, std::uint64_t{64}}) {
    INFO(size << " bytes");
    RawPeer broken(a.mesh().port());
    REQUIRE(broken.greet());
    RawPeer bulk(a.mesh().port());
    bulk.hello.lane = Lane::bulk_to_called;
    bulk.hello.token = broken.ready.token;
    REQUIRE(bulk.send(packet_of(bulk.hello, kTransportProtocol)));
    Bytes letter;
    ByteWriter(letter).put(kLaneConfirm);
    ByteWriter(letter).put(size);
    letter.resize(letter.size() + 64, std::byte{0xee});
    REQUIRE(bulk.send(letter));
    REQUIRE(broken.is_closed());
  }
  REQUIRE(a.gone(1) == "it sent invalid bytes");
  check_alive(a);
}

TEST_CASE("a bulk lane needs the token of a connection") {
  Station a;
  for (const Token token : {Token{0}, Token{8}}) {
    RawPeer stranger(a.mesh().port());
    stranger.hello.lane = Lane::bulk_to_called;
    stranger.hello.token = token;
    REQUIRE(stranger.send(packet_of(stranger.hello, kTransportProtocol)));
    CHECK(stranger.is_closed());
  }
  CHECK(a.logged("note: refused a call: no connection matches its bulk lane"));
}

TEST_CASE("a process that calls anew is another peer, and the old one is gone") {
  Station a;
  // The mesh would call a lost peer back, at its own address, and give it up for that.
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (std::uint32_t i = 0; i < 3; ++i) {
    peers.push_back(std::make_unique<RawPeer>(a.mesh().port()));
    peers[i]->hello.mesh = peers[0]->hello.mesh;
    REQUIRE(peers[i]->greet());
    const bool is_up = a.logged(concat("up ", i));
    const bool is_gone =
        i == 0 || a.logged(concat("gone ", i - 1, ": it gave up on this process, and calls again"));
    INFO(join(a.log(), "\n"));
    REQUIRE(is_up);
    REQUIRE(is_gone);
  }
}

}  // namespace
}  // namespace leeway::test
