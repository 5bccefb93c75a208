// Bytes and time of one bsp round, beside a ring all-reduce of the same gradient: simulated nodes,
// of which each has a worker, or several, and with `pairs` also a shard.
//
//   allreduce_bench [--workers 8,32,128] [--per-node 8] [--world link=10,latency=50us] [--rounds 4]
//
// "sent" are the bytes that the busiest node sends in a round, relative to the gradient; every
// message counts with its header. The model has 1,024 layers of 128 x 128 weights, 64 MiB. The ring
// of N nodes is computed: 2 (N - 1) steps, each of which sends 1/N of the gradient to the next node
// (Patarasu and Yuan, J. Parallel Distrib. Comput. 2009). With several workers per node, each node
// first sums the gradients of its workers. Computing takes no time in either case, and messages
// within a node take no time in the ring.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>

#include "models/datasets/load.hpp"
#include "sim/simulation.hpp"
#include "sim/world.hpp"

namespace {

using namespace leeway;

constexpr std::int64_t kLayers = 1024, kWidth = 128;
constexpr double kGradientBytes = kLayers * kWidth * kWidth * sizeof(float);

class Blank final : public Dataset {
 public:
  std::int64_t size() const override { return 1 << 20; }
  Shape sample_shape() const override { return {kWidth}; }
  int classes() const override { return kWidth; }
  std::int64_t target_count() const override { return 0; }
  void gather(std::span<const std::int64_t> samples, float* x, std::int32_t* labels,
              float*) const override {
    std::fill_n(x, samples.size() * kWidth, 0.0f);
    std::fill_n(labels, samples.size(), 0);
  }
};

/// How workers and shards share nodes.
struct Nodes {
  bool pairs = false;  // each node of workers has a shard
  std::uint32_t workers_per_node = 1;
  bool groups = false;  // the workers of a node are a host group
};

/// Bytes that workers and shards send to other nodes.
class Counter final : public sim::Observer {
 public:
  explicit Counter(const Nodes& nodes) : nodes_(nodes) {}
  void on_sent(Instant, const sim::Letter& letter) override {
    const Address from = letter.from(), to = letter.to();
    if (!counts(from) || !counts(to) || node_of(from) == node_of(to)) return;
    std::uint64_t bytes = letter.message().header().size_bytes();
    for (const Blob& blob : letter.message().blobs()) bytes += blob.size();
    sent_[node_of(from)] += bytes;
  }
  /// Of the busiest node.
  double most() const {
    std::uint64_t most = 0;
    for (const auto& [node, bytes] : sent_) most = std::max(most, bytes);
    return static_cast<double>(most);
  }

 private:
  static bool counts(Address actor) {
    return actor.kind == RoleKind::worker || actor.kind == RoleKind::shard;
  }
  /// The first actor of the node.
  Address node_of(Address actor) const {
    if (actor.kind == RoleKind::worker) actor.index /= nodes_.workers_per_node;
    if (nodes_.pairs) actor.kind = RoleKind::shard;
    return actor;
  }
  const Nodes nodes_;
  std::map<Address, std::uint64_t> sent_;
};

struct Round {
  double sent = 0;  // gradients
  double seconds = 0;
};

Round simulate(std::uint32_t workers, std::uint32_t shards, const Nodes& nodes, std::int64_t rounds,
               plan::World world) {
  Plan plan;
  plan.name = "allreduce-bench";
  plan.data = plan::CustomData{"blank"};
  plan.model.assign(kLayers, plan::Linear{.outputs = kWidth, .bias = false});
  plan.optimizer = {0.01, 0, plan::Sgd{}};
  plan.consistency = plan::Bsp{};
  plan.workers = workers;
  plan.shards = shards;
  plan.batch = 1;
  plan.evaluate_every = 0;
  const std::uint32_t members = nodes.groups ? workers / nodes.workers_per_node : workers;
  if (nodes.groups) plan.aggregate = plan::HostGroups{};
  plan.stop = {.epochs = 0, .iterations = static_cast<std::uint64_t>(rounds * members)};
  world.nodes = nodes.pairs ? plan::World::Nodes::pairs : plan::World::Nodes::each;
  world.workers_per_node = nodes.workers_per_node;
  plan.simulated = world;
  auto job = make_job(plan, {std::make_shared<Blank>(), std::make_shared<Blank>()});
  if (!job) throw std::runtime_error(job.error().text);
  const auto counter = std::make_shared<Counter>(nodes);
  sim::Simulation simulation(*job, {}, {.checkers = false, .observers = {counter}});
  if (const auto stuck = simulation.run(); !stuck.empty()) throw std::runtime_error(stuck);
  const auto count = static_cast<double>(rounds);
  return {counter->most() / count / kGradientBytes,
          (simulation.now() - Instant{}).seconds() / count};
}

void print(std::uint32_t workers, const char* name, const Round& round, const Round& ring) {
  std::printf("%8u  %-26s %8.3f %11.1f ms %8.2f\n", workers, name, round.sent, round.seconds * 1e3,
              round.seconds / ring.seconds);
  std::fflush(stdout);
}

/// `workers`: of all nodes.
void compare(std::uint32_t workers, std::uint32_t per_node, std::int64_t rounds,
             const plan::World& world) {
  const std::uint32_t nodes = workers / per_node;
  const double n = nodes, bytes_per_second = world.link * 1e9 / 8;
  Round ring{2 * (n - 1) / n, 0};
  ring.seconds =
      ring.sent * kGradientBytes / bytes_per_second + 2 * (n - 1) * world.latency_us * 1e-6;
  print(workers, "ring of nodes", ring, ring);
  if (per_node > 1)
    print(workers, "host groups, a shard each",
          simulate(workers, nodes, {true, per_node, true}, rounds, world), ring);
  print(workers, "a shard on each node", simulate(workers, nodes, {true, per_node}, rounds, world),
        ring);
  for (const std::uint32_t shards : {1u, 8u})
    print(workers, shards == 1 ? "1 shard" : "8 shards",
          simulate(workers, shards, {false, per_node}, rounds, world), ring);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::uint32_t> workers{8, 32, 128};
  std::uint32_t per_node = 1;
  std::int64_t rounds = 4;
  plan::World world{.speed = 1e6, .memory = 1e6, .noise = 0, .jitter = 0, .cost_only = true};
  std::string settings;
  CLI::App app("Bytes and time of one bsp round, beside a ring all-reduce.");
  app.add_option("--workers", workers, "numbers of workers, up to 1024")
      ->delimiter(',')
      ->check(CLI::Range(2, 1024));
  app.add_option("--per-node", per_node, "workers of each node")->check(CLI::Range(1, 512));
  app.add_option("--world", settings, "as for --simulate, such as link=1,latency=1ms");
  app.add_option("--rounds", rounds, "rounds of each run")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  try {
    if (!settings.empty()) {
      const auto read = sim::parse_world(settings, world);
      if (!read) throw std::runtime_error(read.error().text);
      world = *read;
    }
    std::printf("gradient %.1f MB, links %.1f Gbit/s, latency %.0f us\n", kGradientBytes * 1e-6,
                world.link, world.latency_us);
    std::printf("%8s  %-26s %8s %14s %8s\n", "workers", "", "sent", "round", "by ring");
    for (const std::uint32_t count : workers) {
      if (count % per_node != 0 || count / per_node < 2)
        throw std::runtime_error(std::to_string(count) + " workers are no " +
                                 std::to_string(per_node) + " on each of several nodes");
      compare(count, per_node, rounds, world);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "allreduce_bench: %s\n", error.what());
    return 1;
  }
}
