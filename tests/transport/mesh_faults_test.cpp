// Faults of the mesh: stopped and killed processes, cut connections, unknown callers.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <catch2/catch.hpp>

#include "tests/support/process.hpp"
#include "tests/transport/mesh_recorder.hpp"
#include "tests/transport/tcp_proxy.hpp"
#include "transport/certificates.hpp"

namespace leeway::test {
namespace {

constexpr Address kWorker0{RoleKind::worker, 0}, kWorker1{RoleKind::worker, 1};
constexpr Address kShard0{RoleKind::shard, 0};
/// Longer than any test runs.
constexpr Duration kLongSilence = seconds(100);

/// Another process whose mesh returns all messages.
class EchoProcess {
 public:
  explicit EchoProcess(std::vector<std::string> arguments = {})
      : process_([&] {
          arguments.insert(arguments.begin(), MESH_ECHO);
          return arguments;
        }()) {
    LW_CHECK(comes_true([&] { return port() != 0; }), process_.err());
  }
  std::uint16_t port() const {
    const std::string text = process_.out();
    return text.ends_with('\n') ? static_cast<std::uint16_t>(std::stoi(text)) : 0;
  }
  /// The log of its mesh.
  std::string log() const { return process_.err(); }
  void signal(int number) { process_.signal(number); }
  void stop() { process_.stop(); }
  void kill() {
    signal(SIGKILL);
    process_.wait();
  }

 private:
  Process process_;
};

TEST_CASE("a killed process is gone without waiting for the silence limit") {
  Station a({.silence = kLongSilence});
  const bool calls = GENERATE(true, false);
  INFO((calls ? "this process called" : "the other process called"));
  EchoProcess echo(calls ? std::vector<std::string>{}
                         : std::vector<std::string>{std::to_string(a.mesh().port())});
  if (calls) a.must_call(echo.port());
  REQUIRE(a.logged("up 0"));
  echo.signal(SIGKILL);
  REQUIRE(a.logged("gone 0"));
  CHECK(a.log().back().find("its process has ended") != std::string::npos);
}

TEST_CASE(
    "at most the window is in flight to a stopped process, and the rest follows when it "
    "continues") {
  constexpr std::size_t kWindow = 4u << 20;
  const Duration silence = seconds(2);
  Station a({.silence = silence, .transport = Transport::tcp, .window_bytes = kWindow});
  EchoProcess echo({"--silence", std::to_string(silence.ns / 1'000'000)});
  const PeerId peer = a.must_call(echo.port());
  echo.stop();
  const Message message = message_of(7, {4 << 20});
  for (int i = 0; i < 40; ++i) a.mesh().send(peer, kWorker0, kShard0, message);
  REQUIRE(a.logged("silent 0"));
  const PeerCounts stopped = a.mesh().counts(peer);
  CHECK(stopped.bytes_out <= kWindow);
  CHECK(stopped.waiting >= 39);
  std::this_thread::sleep_for(std::chrono::milliseconds(800));
  CHECK(a.mesh().counts(peer).bytes_out == stopped.bytes_out);

  echo.signal(SIGCONT);
  REQUIRE(a.logged("heard 0"));
  const auto received = a.received(40);
  REQUIRE(received.size() == 40);
  CHECK(same_bytes(received.back().message, message));
  CHECK(a.log_of_peers() == std::vector<std::string>{"up 0", "silent 0", "heard 0"});
  // The stopped process does not report the other as silent.
  CHECK(echo.log() == "up 0\n");
}

TEST_CASE("an idle peer is not silent, also one that is more patient") {
  Station a({.silence = seconds(1)}), b({.silence = seconds(GENERATE(1, 60))});
  a.must_call(b.mesh().port());
  CHECK_FALSE(a.logged("silent", std::chrono::seconds(3)));
  CHECK_FALSE(b.logged("silent", std::chrono::milliseconds(1)));
}

TEST_CASE("a lost connection is made again, and each message arrives once and in order") {
  Station a, b;
  TcpProxy proxy(b.mesh().port());
  const PeerId peer = a.must_call(proxy.port());
  constexpr std::uint64_t kCount = 300;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    if (i == 100) proxy.cut();
    a.mesh().send(peer, kWorker0, kShard0, message_of(i, {1 << 20}));
    a.mesh().send(peer, kWorker1, kShard0, message_of(i));
  }
  REQUIRE(a.logged("reconnected 0"));
  REQUIRE(b.logged("reconnected 0"));
  const auto received = b.received(2 * kCount);
  REQUIRE(received.size() == 2 * kCount);
  std::map<Address, std::uint64_t> next;
  for (const auto& [from_peer, from, to, message] : received) {
    const std::uint64_t number = next[from]++;
    const bool large = from == kWorker0;
    REQUIRE(same_bytes(message, large ? message_of(number, {1 << 20}) : message_of(number)));
  }
  b.mesh().send(PeerId(0), kShard0, kWorker0, message_of(1, {200'000}));
  CHECK(a.received(1).size() == 1);
  CHECK_FALSE(a.logged("gone", std::chrono::milliseconds(1)));
}

TEST_CASE("a peer that leaves sends everything, although its connection is lost meanwhile") {
  const bool ends = GENERATE(false, true);
  Station a, b;
  TcpProxy proxy(b.mesh().port());
  const PeerId peer = a.must_call(proxy.port());
  REQUIRE(b.logged("up 0"));
  proxy.hold();
  for (std::uint64_t i = 0; i < 10; ++i)
    a.mesh().send(peer, kWorker0, kShard0, message_of(i, {1 << 20}));
  a.mesh().leave(peer);
  std::thread cuts([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    proxy.cut();
  });
  if (ends) a.close();
  cuts.join();
  REQUIRE(b.gone(0) == "left");
  const auto received = b.received(1);
  REQUIRE(received.size() == 10);
  for (std::uint64_t i = 0; i < 10; ++i)
    REQUIRE(same_bytes(received[i].message, message_of(i, {1 << 20})));
}

TEST_CASE("a connection that is lost repeatedly is made again each time") {
  Station a, b;
  TcpProxy proxy(b.mesh().port());
  const PeerId peer = a.must_call(proxy.port());
  for (std::uint64_t round = 0; round < 5; ++round) {
    proxy.cut();
    const auto reconnections = [&] { return std::ranges::count(a.log(), "reconnected 0"); };
    comes_true([&] { return reconnections() > static_cast<int>(round); });
    CAPTURE(a.log(), b.log());
    REQUIRE(reconnections() == static_cast<int>(round + 1));
    a.mesh().send(peer, kWorker0, kShard0, message_of(round, {70'000}));
    REQUIRE(b.received(round + 1).size() == round + 1);
  }
}

TEST_CASE("a peer is gone if another process listens at its address") {
  Station a({.silence = kLongSilence}), b({.silence = milliseconds(300)}), c;
  TcpProxy proxy(b.mesh().port());
  a.must_call(proxy.port());
  REQUIRE(b.logged("up 0"));
  proxy.turn_to(c.mesh().port());
  proxy.cut();
  REQUIRE(a.gone(0) == "the connection was lost, and another process listens there now");
  REQUIRE(b.logged("gone 0: the connection was lost"));
  CHECK_FALSE(c.logged("up", std::chrono::milliseconds(1)));
}

TEST_CASE("a killed caller is gone, although another process takes its port at once") {
  Station a({.silence = kLongSilence});
  EchoProcess echo({std::to_string(a.mesh().port())});
  REQUIRE(a.logged("up 0"));
  const std::uint16_t port = echo.port();
  echo.kill();
  Station next({.port = port});
  CHECK(next.mesh().port() == port);
  REQUIRE(a.logged("gone 0: "));
  CHECK_FALSE(next.logged("up", std::chrono::milliseconds(1)));
}

/// A certificate authority with one node.
class Authority {
 public:
  Authority() {
    const auto made = make_certificates({.folder = folder_ / ""});
    LW_CHECK(made, made.error().text);
    tls_ = made->nodes[0].folder / "";
  }
  /// Ends with a slash.
  const std::string& folder() const { return tls_; }

 private:
  TemporaryFolder folder_;
  std::string tls_;
};

TEST_CASE("over TLS any address may listen, and a process of the same cluster is a peer") {
  Authority authority;
  const MeshOptions options{.address = "0.0.0.0", .tls = authority.folder()};
  Station a(options);
  EchoProcess echo({"--tls", authority.folder()});
  const PeerId peer = a.must_call(echo.port());
  CHECK(a.mesh().name(peer) == concat("127.0.0.1:", echo.port()));
  const Message message = message_of(1, {30 << 20, 5});
  a.mesh().send(peer, kWorker0, kShard0, message);
  const auto received = a.received(1);
  REQUIRE(received.size() == 1);
  CHECK(same_bytes(received[0].message, message));
}

TEST_CASE("over TLS, unknown callers are refused and other connections continue") {
  Authority authority, other;
  Station a({.tls = authority.folder()});
  const std::uint16_t port = a.mesh().port();

  std::vector<Socket> idle;
  for (int i = 0; i < 100; ++i) idle.push_back(connect_to(port));
  Rng random(3);
  for (int i = 0; i < 50; ++i) {
    std::string garbage(1 + random.next() % 5000, '\0');
    for (char& byte : garbage) byte = static_cast<char>(random.next());
    if (i == 0) garbage.assign(32, '\0');  // both kinds end a process with a plain port
    if (i == 1) garbage.assign(32, '\xff');
    Socket unknown_caller = connect_to(port);
    unknown_caller.write(garbage);
    if (i % 2 == 0) idle.push_back(std::move(unknown_caller));
  }
  Station foreign({.tls = other.folder()}), plain;
  for (Station* unknown_caller : {&foreign, &plain}) {
    const auto peer = unknown_caller->call(port, seconds(60));
    REQUIRE_FALSE(peer);
    INFO(peer.error().text);
    CHECK(peer.error().text.find("certificates of the same cluster") != std::string::npos);
  }
  // Later changes of the folder do not affect the process.
  std::filesystem::remove(authority.folder() + "ca.pem");
  Station late({.tls = authority.folder()});
  CHECK(late.error.find("ca.pem") != std::string::npos);
  CHECK(a.logged("note: refused a call: its TLS handshake failed (wrong version number)"));
  for (const std::string& piece : a.log()) CHECK(piece.starts_with("note: refused a call"));
}

TEST_CASE("failed handshakes of unknown callers do not end other connections") {
  Authority authority;
  Station a({.tls = authority.folder()}),
      b({.tls = authority.folder(), .transport = Transport::tcp});
  const PeerId peer = b.must_call(a.mesh().port());
  // Large messages arrive in pieces; unknown callers are read between two of them.
  constexpr std::size_t kMessages = 40;
  for (std::size_t i = 0; i < kMessages; ++i) {
    b.mesh().send(peer, kWorker0, kShard0, message_of(i, {4'000'000}));
    for (int unknown_caller = 0; unknown_caller < 10; ++unknown_caller)
      connect_to(a.mesh().port()).write("not a word of TLS, and then nothing");
  }
  CHECK(a.received(kMessages).size() == kMessages);
  CHECK(a.logged("up 0"));
  for (const std::string& piece : a.log())
    CHECK((piece == "up 0" || piece.starts_with("note: refused a call")));
  CHECK(b.logged("up 0"));
}

TEST_CASE("a process of the cluster can connect over TLS while unknown callers hold connections") {
  Authority authority;
  Station a({.tls = authority.folder()}), b({.tls = authority.folder()});
  std::filesystem::remove(authority.folder() + "ca.pem");
  std::vector<Socket> idle;
  for (int i = 0; i < 100; ++i) idle.push_back(connect_to(a.mesh().port()));
  const PeerId peer = b.must_call(a.mesh().port());
  b.mesh().send(peer, kWorker0, kShard0, message_of(4, {100'000}));
  CHECK(a.received(1).size() == 1);
}

TEST_CASE("a process that accepts calls and does not answer is reported after the limit") {
  Station a;
  EchoProcess echo;
  echo.stop();
  const auto peer = a.call(echo.port(), milliseconds(700));
  REQUIRE_FALSE(peer);
  CHECK(peer.error().text.find("stopped?") != std::string::npos);
}

TEST_CASE("a mesh ends even when a peer is stopped") {
  EchoProcess echo;
  Station a({.silence = kLongSilence});
  const PeerId peer = a.must_call(echo.port());
  echo.stop();
  for (int i = 0; i < 20; ++i) a.mesh().send(peer, kWorker0, kShard0, message_of(7, {4 << 20}));
  const auto began = std::chrono::steady_clock::now();
  a.close();
  CHECK(std::chrono::steady_clock::now() - began < kPatience);
}

}  // namespace
}  // namespace leeway::test
