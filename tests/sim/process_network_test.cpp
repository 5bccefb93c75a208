// Links between simulated processes under faults.
#include "sim/cluster/process_network.hpp"

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "messages/envelope.hpp"

namespace leeway::sim {
namespace {

using Catch::Contains;

constexpr Address kFirst{RoleKind::worker, 0}, kSecond{RoleKind::worker, 1},
    kReceiver{RoleKind::shard, 0};
constexpr Duration kSilence = milliseconds(100);

World calm_world() {
  World world;
  world.jitter = 0;
  return world;
}

struct Receiver final : ProcessNetwork::Process {
  void on_message(PeerId, Address from, Address, Message message) override {
    log.push_back(concat(from, ' ', message.header().size()));
  }
  void on_silent(PeerId) override { log.emplace_back("silent"); }
  void on_heard(PeerId) override { log.emplace_back("heard"); }
  void on_gone(PeerId, const std::string& reason) override { log.push_back("gone: " + reason); }
  std::vector<std::string> take() { return std::exchange(log, {}); }
  std::vector<std::string> log;
};

using Log = std::vector<std::string>;

/// Two connected processes, a and b.
struct Pair {
  Pair() {
    network.connect(a_id, "b", seconds(1), [this](const Expected<PeerId>& peer) {
      if (peer) to_b = *peer;
    });
    pass(milliseconds(1));
    REQUIRE(to_b);
  }
  void pass(Duration time) {
    const Instant until = timeline.now() + time;
    while (timeline.next_at() && *timeline.next_at() <= until) timeline.run_next();
    timeline.advance(until);
  }
  /// A message of `words` words from worker 0 or 1 on process a.
  void send(std::size_t words, Address from = kFirst, bool tensor = false) {
    std::vector<Blob> blobs;
    if (tensor) blobs.push_back(Blob::floats(1000));
    network.send(*to_b, from, kReceiver, Message(std::vector<std::uint64_t>(words), blobs));
  }

  Timeline timeline;
  ProcessNetwork network{timeline, calm_world(), 1, kSilence};
  Receiver a, b;
  const ProcessId a_id = network.add("a", a), b_id = network.add("b", b);
  std::optional<PeerId> to_b;
};

}  // namespace

TEST_CASE("messages between two actors arrive in order, although tensors take longer") {
  Pair pair;
  pair.send(1, kFirst, true);
  pair.send(2);
  pair.send(3, kSecond);
  pair.pass(milliseconds(10));
  Log from_worker0;
  for (const auto& line : pair.b.take())
    if (line.starts_with("worker 0")) from_worker0.push_back(line);
  CHECK(from_worker0 == Log{"worker 0 1", "worker 0 2"});
}

TEST_CASE("no message is lost while a connection is broken, and a short break goes unnoticed") {
  Pair pair;
  pair.send(1);
  pair.network.cut(pair.a_id, pair.b_id);
  CHECK_FALSE(pair.network.is_connected(*pair.to_b));
  pair.send(2);
  pair.pass(milliseconds(50));
  pair.network.mend(pair.a_id, pair.b_id);
  CHECK(pair.network.is_connected(*pair.to_b));
  pair.send(3);
  pair.pass(milliseconds(10));
  CHECK(pair.b.take() == Log{"worker 0 1", "worker 0 2", "worker 0 3"});
  CHECK(pair.a.take().empty());
}

TEST_CASE("a broken connection is silent at both ends, then given up") {
  Pair pair;
  pair.network.cut(pair.a_id, pair.b_id);
  pair.pass(milliseconds(150));
  CHECK(pair.a.take() == Log{"silent"});
  CHECK(pair.b.take() == Log{"silent"});
  pair.pass(milliseconds(450));
  const Log a = pair.a.take(), b = pair.b.take();
  REQUIRE(a.size() == 1);
  REQUIRE(b.size() == 1);
  CHECK_THAT(a[0], Contains("gone: it could not be reached for 0.5 s"));
  CHECK_THAT(b[0], Contains("gone"));
  pair.network.mend(pair.a_id, pair.b_id);
  pair.send(1);
  pair.pass(milliseconds(10));
  CHECK(pair.b.take().empty());
}

TEST_CASE("packets that are lost in one direction leave the other one alone") {
  Pair pair;
  pair.network.block(pair.b_id, pair.a_id);
  pair.send(1);
  pair.pass(milliseconds(150));
  CHECK(pair.a.take() == Log{"silent"});
  CHECK(pair.b.take() == Log{"worker 0 1"});
  pair.network.unblock(pair.b_id, pair.a_id);
  pair.pass(milliseconds(10));
  CHECK(pair.a.take() == Log{"heard"});
}

TEST_CASE("the last messages of a process that ends arrive before its end") {
  Pair pair;
  pair.send(1, kFirst, true);
  pair.network.end(pair.a_id, false);
  pair.pass(milliseconds(10));
  CHECK(pair.b.take() == Log{"worker 0 1", "gone: its process has ended"});
}

TEST_CASE("a process that continues after a pause does not report the pause as silence") {
  Pair pair;
  pair.network.freeze(pair.a_id);
  pair.network.freeze(pair.b_id);
  pair.pass(milliseconds(300));
  CHECK(pair.b.take().empty());
  pair.network.thaw(pair.b_id);
  pair.pass(milliseconds(50));
  CHECK(pair.b.take().empty());
  pair.pass(milliseconds(100));
  CHECK(pair.b.take() == Log{"silent"});
  pair.network.thaw(pair.a_id);
  pair.pass(milliseconds(10));
  CHECK(pair.b.take() == Log{"heard"});
}

TEST_CASE("a call names a process that does not listen, and one that does not answer") {
  Pair pair;
  std::vector<std::string> errors;
  const auto note = [&](const Expected<PeerId>& peer) {
    errors.push_back(peer ? "connected" : peer.error().text);
  };
  pair.network.connect(pair.a_id, "c", seconds(1), note);
  pair.network.freeze(pair.b_id);
  pair.network.leave(*pair.to_b);
  pair.network.connect(pair.a_id, "b", seconds(1), note);
  pair.pass(seconds(2));
  CHECK(errors == Log{"c: no process listens there", "b: no answer in time"});
  pair.network.thaw(pair.b_id);
  pair.network.connect(pair.a_id, "b", seconds(1), note);
  pair.pass(seconds(1));
  CHECK(errors.back() == "connected");
}

}  // namespace leeway::sim
