// Bytes between the nodes of a simulation, beside those of a ring all-reduce.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "sim/simulation.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::sim {
namespace {

constexpr std::uint32_t kLayers = 8, kWidth = 64;
constexpr std::uint64_t kGradientBytes = kLayers * kWidth * kWidth * sizeof(float);

/// Bytes that each node sends to others. Worker i and shard i are on node i.
class Counter final : public Observer {
 public:
  void on_sent(Instant, const Letter& letter) override {
    const Address from = letter.from(), to = letter.to();
    const auto is_on_node = [](Address actor) {
      return actor.kind == RoleKind::worker || actor.kind == RoleKind::shard;
    };
    if (!is_on_node(from) || !is_on_node(to) || from.index == to.index) return;
    headers[from.index] += letter.message().header().size_bytes();
    for (const Blob& blob : letter.message().blobs()) payload[from.index] += blob.size();
  }
  std::map<std::uint32_t, std::uint64_t> headers, payload;
};

Counter bytes_of(std::uint32_t workers, std::uint64_t rounds) {
  Plan plan = test::tiny_plan();
  plan.data = plan::Synthetic{1000, 20, plan::Clusters{kWidth, kWidth, 3}};
  plan.model.assign(kLayers, plan::Linear{.outputs = kWidth, .bias = false});
  plan.consistency = plan::Bsp{};
  plan.workers = plan.shards = workers;
  plan.batch = 1;
  plan.stop = {.epochs = 0, .iterations = rounds * workers};
  plan.simulated = plan::World{.nodes = plan::World::Nodes::pairs, .cost_only = true};
  const auto counter = std::make_shared<Counter>();
  Simulation simulation(test::job_of(plan), {}, {.observers = {counter}});
  REQUIRE(simulation.run() == "");
  REQUIRE(counter->payload.size() == workers);
  return *counter;
}

}  // namespace

TEST_CASE("under bsp with a shard beside each worker, nodes send the bytes of a ring all-reduce") {
  const auto workers = GENERATE(2u, 4u, 8u);
  constexpr std::uint64_t kRounds = 5;
  // Workers have the first weights already, so the first round has no pull.
  Counter few = bytes_of(workers, kRounds), twice = bytes_of(workers, 2 * kRounds);
  // Each of N nodes sends 2 (N - 1) / N gradients in a round (Patarasu and Yuan 2009).
  const std::uint64_t ring = kRounds * 2 * (workers - 1) * kGradientBytes / workers;
  for (const auto& [node, bytes] : twice.payload) {
    INFO("node " << node << " of " << workers);
    CHECK(bytes - few.payload[node] == ring);
    CHECK(twice.headers[node] - few.headers[node] < ring / 10);  // of small gradients
  }
}

}  // namespace leeway::sim
