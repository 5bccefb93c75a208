// Arrival times in the simulated network.
#include <catch2/catch.hpp>

#include "sim/network.hpp"

namespace leeway::sim {
namespace {

World steady_world() {
  World world;
  world.jitter = 0;
  world.latency = microseconds(100);
  world.local_latency = microseconds(1);
  world.link_bytes_per_second = 1e9;
  return world;
}

Network network_of(const World& world, int nodes, std::uint64_t seed = 1) {
  Network network(world, seed);
  for (int i = 0; i < nodes; ++i) network.add_node();
  return network;
}

}  // namespace

TEST_CASE("a message takes its latency plus the transfer time of its bytes") {
  auto network = network_of(steady_world(), 2);
  CHECK(network.arrival(0, 0, 1, 1, 1000000, {}) ==
        Instant{} + milliseconds(1) + microseconds(100));
}

TEST_CASE("a message within a node uses no link") {
  auto network = network_of(steady_world(), 2);
  CHECK(network.arrival(0, 0, 1, 0, 1000000, {}) == Instant{} + microseconds(1));
}

TEST_CASE("concurrent messages from one node share its link") {
  auto network = network_of(steady_world(), 3);
  const Instant first = network.arrival(0, 0, 1, 1, 1000000, {});
  const Instant second = network.arrival(0, 0, 2, 2, 1000000, {});
  CHECK(second - first == milliseconds(1));
}

TEST_CASE("concurrent messages to one node share its link") {
  auto network = network_of(steady_world(), 5);
  Instant last{};
  for (std::uint32_t sender = 1; sender < 5; ++sender)
    last = network.arrival(sender, sender, 0, 0, 1000000, {});
  CHECK(last == Instant{} + milliseconds(4) + microseconds(100));
}

TEST_CASE("the two directions of a link do not wait for each other") {
  auto network = network_of(steady_world(), 2);
  const Instant there = network.arrival(0, 0, 1, 1, 1000000, {});
  CHECK(network.arrival(1, 1, 0, 0, 1000000, {}) == there);
}

TEST_CASE("messages between two actors stay in order with any jitter") {
  World world = steady_world();
  world.jitter = 10;
  for (const double link : {1e9, 0.0}) {
    world.link_bytes_per_second = link;
    for (const MachineIndex to_node : {0u, 1u}) {
      auto network = network_of(world, 2);
      Instant last{};
      for (int i = 0; i < 1000; ++i) {
        const Instant at = network.arrival(0, 0, 1, to_node, 8, Instant{} + nanoseconds(i));
        REQUIRE(at > last);
        last = at;
      }
    }
  }
}

TEST_CASE("without a bandwidth limit the size does not matter") {
  World world = steady_world();
  world.link_bytes_per_second = 0;
  auto network = network_of(world, 2);
  CHECK(network.arrival(0, 0, 1, 1, 1u << 30, {}) == Instant{} + microseconds(100));
}

TEST_CASE("jitter adds at most its share to the latency, and depends on the seed") {
  World world = steady_world();
  world.jitter = 0.5;
  world.link_bytes_per_second = 0;
  auto one = network_of(world, 2, 7), same = network_of(world, 2, 7),
       other = network_of(world, 2, 8);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const Instant sent = Instant{} + milliseconds(i);
    const Instant at = one.arrival(0, 0, 1, 1, 8, sent);
    CHECK(at - sent >= microseconds(100));
    CHECK(at - sent <= microseconds(150));
    CHECK(same.arrival(0, 0, 1, 1, 8, sent) == at);
    differs |= other.arrival(0, 0, 1, 1, 8, sent) != at;
  }
  CHECK(differs);
}

}  // namespace leeway::sim
