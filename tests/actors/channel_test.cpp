// Channel: numbers, acknowledgements, and messages that are lost or repeated.
#include "actors/channel.hpp"

#include <catch2/catch.hpp>
#include <deque>
#include <vector>

#include "core/rng.hpp"

namespace leeway::test {
namespace {

constexpr Address kShard0 = address_of(ShardId(0));

/// Keeps the messages of one end until the test delivers or loses them.
class Line final : public Outbox {
 public:
  std::deque<Envelope> sent;

 private:
  Instant now() const override { return {}; }
  Rng& random() override { return rng_; }
  void send(Address, Message message) override {
    auto envelope = decode(message);
    REQUIRE(envelope);
    sent.push_back(std::move(*envelope));
  }
  void after(Duration, TimerToken) override {}
  void compute(std::shared_ptr<Work>) override {}
  void watch(Address) override {}
  void emit(const Event&) override {}

  Rng rng_{1};
};

/// One end, and what it has received from the other.
struct End {
  explicit End(Address peer) : channel(peer) {}

  void send(std::uint32_t worker) { channel.send(msg::Remove{WorkerId(worker), {}}, line); }
  void receive(const Envelope& envelope) {
    if (!channel.receive(envelope)) return;
    if (const auto* body = std::get_if<msg::Remove>(&envelope.body))
      received.push_back(body->worker.value());
  }

  Channel channel;
  Line line;
  std::vector<std::uint32_t> received;
};

void deliver_all(End& from, End& to) {
  for (; !from.line.sent.empty(); from.line.sent.pop_front()) to.receive(from.line.sent.front());
}

}  // namespace

TEST_CASE("a channel delivers in order, and keeps a message until it is acknowledged") {
  End scheduler(kShard0), shard(kScheduler);
  scheduler.send(1);
  scheduler.send(2);
  deliver_all(scheduler, shard);
  CHECK(shard.received == std::vector<std::uint32_t>{1, 2});
  CHECK(scheduler.channel.unacknowledged() == 2);
  shard.send(3);  // acknowledges both
  deliver_all(shard, scheduler);
  CHECK(scheduler.channel.unacknowledged() == 0);
  CHECK(shard.channel.unacknowledged() == 1);
  scheduler.channel.acknowledge(scheduler.line);
  scheduler.channel.acknowledge(scheduler.line);  // nothing new
  CHECK(scheduler.line.sent.size() == 1);
  deliver_all(scheduler, shard);
  CHECK(shard.channel.unacknowledged() == 0);
}

TEST_CASE("messages that a broken link has lost are repeated, and known ones are ignored") {
  End scheduler(kShard0), shard(kScheduler);
  scheduler.send(1);
  deliver_all(scheduler, shard);
  scheduler.send(2);
  scheduler.line.sent.clear();
  scheduler.send(3);
  deliver_all(scheduler, shard);
  CHECK(shard.received == std::vector<std::uint32_t>{1});  // 2 is missing
  scheduler.channel.send_again(scheduler.line);
  CHECK(scheduler.line.sent.size() == 3);
  deliver_all(scheduler, shard);
  CHECK(shard.received == std::vector<std::uint32_t>{1, 2, 3});
}

TEST_CASE("messages outside of the channel are always accepted") {
  Channel channel(kScheduler);
  CHECK(channel.receive({.body = msg::Finish{}}));
  CHECK(channel.receive({.body = msg::Finish{}}));
}

TEST_CASE("under random losses both ends receive everything once and in order") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    Rng rng(seed);
    End ends[] = {End(kShard0), End(kScheduler)};
    std::uint32_t sent[] = {0, 0};
    for (int i = 0; i < 200; ++i) {
      const std::size_t at = rng.below(2);
      End& from = ends[at];
      switch (rng.below(8)) {
        case 0:  // the link breaks
          for (End& end : ends) end.line.sent.clear();
          for (End& end : ends) end.channel.send_again(end.line);
          break;
        case 1:
          from.channel.acknowledge(from.line);
          break;
        case 2:
        case 3:
          from.send(sent[at]++);
          break;
        default:
          if (from.line.sent.empty()) break;
          ends[1 - at].receive(from.line.sent.front());
          from.line.sent.pop_front();
      }
    }
    for (int i = 0; i < 3; ++i) {
      for (const std::size_t at : {0u, 1u}) {
        ends[at].channel.send_again(ends[at].line);
        deliver_all(ends[at], ends[1 - at]);
        ends[1 - at].channel.acknowledge(ends[1 - at].line);
      }
    }
    for (const std::size_t at : {0u, 1u}) {
      deliver_all(ends[at], ends[1 - at]);
      std::vector<std::uint32_t> expected(sent[at]);
      for (std::uint32_t number = 0; number < sent[at]; ++number) expected[number] = number;
      CHECK(ends[1 - at].received == expected);
      CHECK(ends[at].channel.unacknowledged() == 0);
    }
  }
}

}  // namespace leeway::test
