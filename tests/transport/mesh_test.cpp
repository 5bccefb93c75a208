// Meshes in this process over real sockets: messages and calls.
#include <catch2/catch.hpp>

#include "core/limits.hpp"
#include "tests/transport/mesh_recorder.hpp"
#include "tests/transport/tcp_proxy.hpp"

namespace leeway::test {
namespace {

constexpr Address kWorker0{RoleKind::worker, 0}, kWorker1{RoleKind::worker, 1};
constexpr Address kShard0{RoleKind::shard, 0}, kShard1{RoleKind::shard, 1};

TEST_CASE("messages of any size arrive intact") {
  Station a, b;
  const PeerId peer = a.must_call(b.mesh().port());
  REQUIRE(a.log_of_peers() == std::vector<std::string>{"up 0"});
  REQUIRE(b.logged("up 0"));
  CHECK(a.mesh().name(peer) == concat("127.0.0.1:", b.mesh().port()));
  CHECK(b.mesh().name(PeerId(0)) == concat("127.0.0.1:", a.mesh().port()));

  std::vector<Message> sent = {
      Message(),
      message_of(1),
      message_of(2, {0, 1, 7, 8}),
      message_of(3, {65536}),
      message_of(4, {65537}),
      message_of(5, {65535, 1, 1, 200'000, 3}),
      message_of(6, {(1 << 20) - 1, 1, (1 << 20) + 1, 12'345'678}),
      message_of(7, {40 << 20}),  // five windows
      Message({8, 0}, {Blob(), Blob::allocate(0), Blob()}),
      Message(std::vector<std::uint64_t>(limits::kMaxHeaderBytes / 8, 9), {}),
      message_of(10, std::vector<std::size_t>(2000, 5000)),
  };
  for (const auto& message : sent) a.mesh().send(peer, kWorker0, kShard0, message);
  const auto received = b.received(sent.size());
  REQUIRE(received.size() == sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    INFO("message " << i);
    CHECK(same_bytes(received[i].message, sent[i]));
    CHECK(received[i].from == kWorker0);
    CHECK(received[i].to == kShard0);
  }
  const PeerCounts out = a.mesh().counts(peer), in = b.mesh().counts(PeerId(0));
  CHECK(out.messages_out == sent.size());
  CHECK(out.waiting == 0);
  CHECK(in.messages_in == sent.size());
  CHECK(in.bytes_in == out.bytes_out);
}

TEST_CASE("messages of a pair of actors arrive in order despite other traffic") {
  Station a, b;
  const PeerId peer = a.must_call(b.mesh().port());
  constexpr std::uint64_t kEach = 500;
  std::vector<std::thread> senders;
  for (std::uint32_t worker = 0; worker < 4; ++worker)
    senders.emplace_back([&, worker] {
      Rng random(worker);
      for (std::uint64_t i = 0; i < kEach; ++i)
        a.mesh().send(peer, address_of(WorkerId(worker)), kShard0,
                      message_of(i, {static_cast<std::size_t>(random.next() % 300'000)}));
    });
  for (auto& sender : senders) sender.join();
  const auto received = b.received(4 * kEach);
  REQUIRE(received.size() == 4 * kEach);
  std::map<Address, std::uint64_t> next;
  bool intact = true;
  for (const auto& piece : received) {
    REQUIRE(number_of(piece.message) == next[piece.from]++);
    intact = intact && same_bytes(piece.message, message_of(number_of(piece.message),
                                                            {piece.message.blobs()[0].size()}));
  }
  CHECK(intact);
}

TEST_CASE("a peer that leaves is gone after all its messages") {
  Station b;
  {
    Station a;
    const PeerId peer = a.must_call(b.mesh().port());
    for (std::uint64_t i = 0; i < 10; ++i)
      a.mesh().send(peer, kWorker0, kShard0, message_of(i, {3 << 20}));
  }
  REQUIRE(b.gone(0) == "left");
  CHECK(b.received(10).size() == 10);
  CHECK(b.log_of_peers() == std::vector<std::string>{"up 0", "gone 0: left"});
}

TEST_CASE("a small message overtakes a large one of another pair") {
  Station a({.transport = Transport::tcp}), b;
  TcpProxy proxy(b.mesh().port());
  const PeerId peer = a.must_call(proxy.port());
  proxy.hold();
  a.mesh().send(peer, kWorker0, kShard0, message_of(0, {64 << 20}));
  a.mesh().send(peer, kWorker0, kShard0, message_of(1));
  a.mesh().send(peer, kWorker1, kShard0, message_of(2));
  proxy.release();
  const auto received = b.received(3);
  REQUIRE(received.size() == 3);
  CHECK(number_of(received[0].message) == 2);
  CHECK(number_of(received[1].message) == 0);
  CHECK(number_of(received[2].message) == 1);
}

TEST_CASE("messages of any size pass through a window of any size") {
  const std::size_t window = GENERATE(1024, 5000, 100'000);
  Station a({.window_bytes = window}), b({.window_bytes = 4096});
  const PeerId peer = a.must_call(b.mesh().port());
  const std::vector<Message> sent = {message_of(0, {10}), message_of(1, {65536}),
                                     message_of(2, {300'001, 70'000}), message_of(3, {500})};
  for (const auto& message : sent) a.mesh().send(peer, kWorker0, kShard0, message);
  const auto received = b.received(sent.size());
  REQUIRE(received.size() == sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) CHECK(same_bytes(received[i].message, sent[i]));
}

TEST_CASE("a second call in either direction gives the same peer") {
  Station a, b;
  const PeerId peer = a.must_call(b.mesh().port());
  CHECK(a.must_call(b.mesh().port()) == peer);
  REQUIRE(b.logged("up 0"));
  CHECK(b.must_call(a.mesh().port()) == PeerId(0));
  a.mesh().send(peer, kWorker0, kShard0, message_of(5));
  b.mesh().send(PeerId(0), kShard0, kWorker0, message_of(6));
  CHECK(b.received(1).size() == 1);
  CHECK(a.received(1).size() == 1);
  CHECK(a.log_of_peers() == std::vector<std::string>{"up 0"});
  CHECK(b.log_of_peers() == std::vector<std::string>{"up 0"});
}

TEST_CASE("processes that call each other at the same time have one connection") {
  for (int round = 0; round < 20; ++round) {
    Station a, b;
    std::thread other([&] { b.must_call(a.mesh().port()); });
    const PeerId peer = a.must_call(b.mesh().port());
    other.join();
    a.mesh().send(peer, kWorker0, kShard0, message_of(1, {100'000}));
    b.mesh().send(PeerId(0), kShard0, kWorker0, message_of(2, {100'000}));
    CHECK(b.received(1).size() == 1);
    CHECK(a.received(1).size() == 1);
    CHECK(a.log_of_peers() == std::vector<std::string>{"up 0"});
    CHECK(b.log_of_peers() == std::vector<std::string>{"up 0"});
  }
}

TEST_CASE("calls that cross over connections that are cut end in one connection") {
  Rng random(11);
  for (int round = 0; round < 30; ++round) {
    INFO("round " << round);
    Station a, b;
    TcpProxy to_b(b.mesh().port()), to_a(a.mesh().port());
    std::thread other([&] { (void)b.call(to_a.port()); });
    std::thread cuts([&] {
      for (int i = 0; i < 3; ++i) {
        std::this_thread::sleep_for(std::chrono::microseconds(random.next() % 2000));
        (random.next() % 2 == 0 ? to_a : to_b).cut();
      }
    });
    while (!a.call(to_b.port())) continue;
    other.join();
    cuts.join();
    for (Station* each : {&a, &b}) {
      each->mesh().send(PeerId(0), kWorker0, kShard0, message_of(1, {100'000}));
      CHECK((each == &a ? b : a).received(1).size() == 1);
    }
    CHECK_FALSE(a.logged("gone", std::chrono::milliseconds(1)));
    CHECK_FALSE(b.logged("gone", std::chrono::milliseconds(1)));
  }
}

TEST_CASE("a peer that has left gets a new id when it is called again") {
  Station a, b;
  const PeerId first = a.must_call(b.mesh().port());
  a.mesh().leave(first);
  REQUIRE(b.gone(0) == "left");
  const PeerId second = a.must_call(b.mesh().port());
  CHECK(second == PeerId(1));
  REQUIRE(b.logged("up 1"));
  a.mesh().send(second, kWorker0, kShard0, message_of(5));
  a.mesh().send(first, kWorker0, kShard0, message_of(6));  // lost
  const auto received = b.received(1);
  REQUIRE(received.size() == 1);
  CHECK(received[0].peer == PeerId(1));
  CHECK(number_of(received[0].message) == 5);
  CHECK(a.log_of_peers() == std::vector<std::string>{"up 0", "up 1"});
}

TEST_CASE("processes of different protocols refuse each other, and the error names both") {
  Station a, b({}, false, {.number = 9, .version = "9.8.7"});
  const auto forth = a.call(b.mesh().port()), back = b.call(a.mesh().port());
  REQUIRE_FALSE(forth);
  REQUIRE_FALSE(back);
  const transport::Protocol protocol = transport::own_protocol();
  const std::string own = "Leeway " + protocol.version;
  const std::string number = "protocol " + std::to_string(protocol.number);
  CHECK(forth.error().text.find("Leeway 9.8.7 there speaks protocol 9, and " + own +
                                " here speaks " + number + "; run the same release") !=
        std::string::npos);
  CHECK(back.error().text.find(own + " there speaks " + number + ", and Leeway 9.8.7") !=
        std::string::npos);
  CHECK(a.logged("note: refused a call"));
  CHECK(b.logged("note: refused a call"));
  CHECK_FALSE(a.logged("up", std::chrono::milliseconds(1)));
}

TEST_CASE("the error of a failed call gives the cause and a remedy") {
  Station a;
  const auto self = a.call(a.mesh().port());
  REQUIRE_FALSE(self);
  CHECK(self.error().text.find("this process itself") != std::string::npos);

  std::uint16_t free_port = 0;
  {
    Station b;
    free_port = b.mesh().port();
  }
  const auto no_listener = a.call(free_port);
  REQUIRE_FALSE(no_listener);
  CHECK(no_listener.error().text.find("no process listens there") != std::string::npos);
  CHECK(no_listener.error().text.find(kCheckAddress) != std::string::npos);
  const auto advised = a.mesh().connect("127.0.0.1", free_port, seconds(60), "start it");
  REQUIRE_FALSE(advised);
  CHECK(advised.error().text ==
        concat("127.0.0.1:", free_port, ": no process listens there; start it"));

  const auto unknown = a.mesh().connect("no-such-host.invalid", 1, seconds(60));
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().text.find("no-such-host.invalid:1: ") == 0);
}

TEST_CASE("a port in use, and an address that needs TLS, are refused with a remedy") {
  Station a;
  const Station taken({.port = a.mesh().port()});
  CHECK(taken.error.find("cannot listen on 127.0.0.1:") == 0);
  CHECK(taken.error.find("another port") != std::string::npos);
  for (const std::string address : {"0.0.0.0", "10.0.0.1", "::"}) {
    const Station plain({.address = address});
    CHECK(plain.error.find("leeway cert DIR") != std::string::npos);
    CHECK(plain.error.find("give it --tls") != std::string::npos);
  }
}

}  // namespace
}  // namespace leeway::test
