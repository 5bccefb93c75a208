#include "actors/shard/round_norms.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/actors/shard_components.hpp"

namespace leeway::test {
namespace {

/// Shards that exchange norms through their outboxes, as long as links work.
class Shards {
 public:
  Shards(std::uint32_t count, double most) {
    for (std::uint32_t i = 0; i < count; ++i) norms_.emplace_back(ShardId(i), count, most);
    outboxes_.resize(count);
    read_.assign(count, std::vector<std::size_t>(count));
  }
  RoundNorms& operator[](std::uint32_t shard) { return norms_[shard]; }
  RecordingOutbox& out(std::uint32_t shard) { return outboxes_[shard]; }

  /// A round with one bucket, which is measured at once.
  void measure(std::uint32_t shard, std::int64_t round, double squares) {
    norms_[shard].expect(Iteration(round));
    norms_[shard].close(Iteration(round), outboxes_[shard]);
    norms_[shard].measured(Iteration(round), 0, squares, outboxes_[shard]);
    norms_[shard].passed(Iteration(round + 1), outboxes_[shard]);
  }
  /// Delivers everything that has been sent, or loses it.
  void deliver(bool lose = false) {
    for (bool more = true; more;) {
      more = false;
      for (std::uint32_t from = 0; from < norms_.size(); ++from)
        for (std::uint32_t to = 0; to < norms_.size(); ++to) {
          const auto sent = outboxes_[from].sent<msg::RoundNorm>(address_of(ShardId(to)));
          for (auto& next = read_[from][to]; next < sent.size(); ++next) {
            more = true;
            if (!lose) norms_[to].received(ShardId(from), sent[next], outboxes_[to]);
          }
        }
    }
  }

 private:
  std::vector<RoundNorms> norms_;
  std::vector<RecordingOutbox> outboxes_;
  std::vector<std::vector<std::size_t>> read_;
};

}  // namespace

TEST_CASE("all shards scale a round by the norm of all parts") {
  Shards shards(3, 1);
  shards.measure(0, 0, 4);
  shards.measure(1, 0, 0);
  shards.deliver();
  CHECK(shards[0].take_ready().empty());  // one part is missing
  shards.measure(2, 0, 5);
  shards.deliver();
  for (std::uint32_t shard = 0; shard < 3; ++shard) {
    const auto ready = shards[shard].take_ready();
    REQUIRE(ready.size() == 1);
    CHECK(ready[0].scale == static_cast<float>(1 / (3 + 1e-6)));
  }
}

TEST_CASE("a norm within the limit leaves the gradients as they are") {
  Shards shards(1, 3);
  shards.measure(0, 0, 4);
  const auto ready = shards[0].take_ready();
  REQUIRE(ready.size() == 1);
  CHECK(ready[0].scale == 1);
}

TEST_CASE("a norm that is not finite reaches the weights") {
  Shards shards(1, 3);
  shards.measure(0, 0, NAN);
  CHECK(std::isnan(shards[0].take_ready().at(0).scale));
}

TEST_CASE("an update waits for all buckets of its round") {
  RecordingOutbox out;
  RoundNorms norms(ShardId(0), 1, 1);
  norms.expect(Iteration(0));
  norms.expect(Iteration(0));
  norms.measured(Iteration(0), 1, 9, out);
  norms.close(Iteration(0), out);
  CHECK(norms.take_ready().empty());
  norms.measured(Iteration(0), 0, 16, out);
  const auto ready = norms.take_ready();
  REQUIRE(ready.size() == 2);
  CHECK(ready[0].bucket == 0);
  CHECK(ready[1].scale == static_cast<float>(1 / (5 + 1e-6)));
}

TEST_CASE("a shard that a round has passed without pushes has the part 0") {
  Shards shards(2, 1);
  shards.measure(0, 3, 4);
  shards.deliver();
  CHECK(shards[0].take_ready().empty());
  shards[1].passed(Iteration(3), shards.out(1));  // may still get pushes of round 3
  shards.deliver();
  CHECK(shards[0].take_ready().empty());
  shards[1].passed(Iteration(4), shards.out(1));
  shards.deliver();
  CHECK(shards[0].take_ready().at(0).scale == static_cast<float>(1 / (2 + 1e-6)));
  // Also if the round passed before the other shard's part arrived.
  shards[1].passed(Iteration(9), shards.out(1));
  shards.measure(0, 5, 4);
  shards.deliver();
  CHECK(shards[0].take_ready().size() == 1);
}

TEST_CASE("a shard without further pushes still sends its parts to the others") {
  Shards shards(2, 1);
  shards[1].end(shards.out(1));
  shards.measure(0, 8, 4);
  shards.deliver();
  CHECK(shards[0].take_ready().size() == 1);
}

TEST_CASE("lost parts are asked for, and repeats change nothing") {
  Shards shards(3, 1);
  for (std::uint32_t shard = 0; shard < 3; ++shard) shards.measure(shard, 0, 3);
  shards.deliver(true);
  for (std::uint32_t shard = 0; shard < 3; ++shard) CHECK(shards[shard].take_ready().empty());
  shards[1].ask(shards.out(1));
  shards.deliver();
  CHECK(shards[1].take_ready().size() == 1);
  shards[0].ask(shards.out(0));
  shards[2].ask(shards.out(2));
  shards.deliver();
  CHECK(shards[0].take_ready().size() == 1);
  CHECK(shards[2].take_ready().size() == 1);
  shards[0].ask(shards.out(0));
  shards.deliver();
  for (std::uint32_t shard = 0; shard < 3; ++shard) CHECK(shards[shard].take_ready().empty());
}

TEST_CASE("parts that no shard needs are discarded, and late repeats are ignored") {
  Shards shards(2, 1);
  for (std::int64_t round = 0; round < 100; ++round) {
    shards.measure(0, round, 4);
    shards.measure(1, round, 4);
    shards.deliver();
    CHECK(shards[0].take_ready().size() == 1);
    CHECK(shards[1].take_ready().size() == 1);
    CHECK(shards[0].kept() <= 2);
  }
  const auto before = shards.out(0).sent<msg::RoundNorm>(address_of(ShardId(1))).size();
  shards[0].received(ShardId(1), {.round = Iteration(0), .squares = 1, .asks = true},
                     shards.out(0));
  CHECK(shards.out(0).sent<msg::RoundNorm>(address_of(ShardId(1))).size() == before);
}

}  // namespace leeway::test
