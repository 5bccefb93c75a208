// Runs that must give equal weights: the differential oracles of docs/staleness.md.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>

#include "tests/support/bits.hpp"
#include "tests/support/checkers.hpp"
#include "tests/support/text_task.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {
namespace {

std::vector<float> weights_of(const RunTotals& totals) {
  return floats_of(totals.weights);
}

RunTotals run_plan(const Plan& plan, std::uint64_t interleaving) {
  TestHost host(job_of(plan), interleaving);
  return host.run();
}

Plan bsp_plan(std::uint32_t workers, std::uint32_t batch) {
  Plan plan = tiny_plan();
  plan.consistency = plan::Bsp{};
  plan.workers = workers;
  plan.batch = batch;
  plan.optimizer = {0.05, 1e-3, plan::Momentum{0.9}};
  return plan;
}

/// Records a run: the leases of each round, its contributors, and the snapshots.
struct Rounds final : sim::Observer {
  void on_event(Instant, Address, const Event& event) override {
    if (const auto* lease = event.as<event::LeaseGranted>())
      leases[{lease->iteration, lease->worker}] = *lease;
  }
  void on_delivered(Instant, const sim::Letter& letter) override {
    if (const auto* close = letter.as<msg::CloseRound>())
      contributors[close->round] = close->contributors;
    if (const auto* state = letter.as<msg::SnapshotState>(); state && !state->final)
      for (const auto& block : state->blocks) snapshots[state->iteration][block.block] = block.data;
  }
  std::map<std::pair<Iteration, WorkerId>, event::LeaseGranted> leases;
  std::map<Iteration, std::vector<WorkerId>> contributors;
  std::map<Iteration, std::map<BlockId, Blob>> snapshots;
};

/// Another data set with its samples in another order.
class Reordered final : public Dataset {
 public:
  Reordered(std::shared_ptr<const Dataset> of, std::vector<std::int64_t> sample)
      : of_(std::move(of)), sample_(std::move(sample)) {}
  std::int64_t size() const override { return of_->size(); }
  Shape sample_shape() const override { return of_->sample_shape(); }
  int classes() const override { return of_->classes(); }
  std::int64_t target_count() const override { return of_->target_count(); }
  void gather(std::span<const std::int64_t> samples, float* x, std::int32_t* labels,
              float* targets) const override {
    std::vector<std::int64_t> originals;
    for (const std::int64_t i : samples) originals.push_back(sample_[static_cast<std::size_t>(i)]);
    of_->gather(originals, x, labels, targets);
  }

 private:
  std::shared_ptr<const Dataset> of_;
  std::vector<std::int64_t> sample_;
};

/// The weights after one worker has trained `rounds` iterations of `micro_batches` micro-batches.
std::vector<Blob> trained_by_one(const Job& job, const std::vector<std::int64_t>& samples,
                                 std::uint32_t micro_batches, std::int64_t rounds) {
  Plan plan = bsp_plan(1, micro_batches * job.plan.batch);
  plan.micro_batches = micro_batches;
  plan.stop = {.iterations = static_cast<std::uint64_t>(rounds)};
  const auto order = job.orders->of(Epoch(0));
  std::vector<std::int64_t> sample(order->size());
  for (std::size_t i = 0; i < samples.size(); ++i)
    sample[static_cast<std::size_t>((*order)[i])] = samples[i];
  auto single =
      make_job(plan, {std::make_shared<Reordered>(job.data.train, sample), job.data.test});
  LW_CHECK(bool(single));
  TestHost host(*single, 1);
  return host.run().weights;
}

}  // namespace

TEST_CASE("backup equals bsp over the samples of each round's contributors, bit for bit") {
  std::int64_t compared = 0;
  std::set<std::vector<WorkerId>> contributors;
  for (std::uint64_t interleaving = 1; interleaving <= 10; ++interleaving) {
    Plan plan = bsp_plan(4, 2);
    plan.consistency = plan::Backup{1};
    plan.stop.epochs = 1;
    plan.evaluate_every = 0.2;
    const auto job = job_of(plan);
    TestHost host(job, interleaving);
    const auto rounds = std::make_shared<Rounds>();
    host.observe(rounds);
    host.run();
    std::vector<std::int64_t> samples;
    // Compares full rounds only; in the last rounds some workers have no samples.
    for (Iteration round; samples.size() == static_cast<std::size_t>(round.value()) * 6; ++round) {
      if (const auto snapshot = rounds->snapshots.find(round);
          snapshot != rounds->snapshots.end() && round.value()) {
        const auto expected = trained_by_one(*job, samples, 3, round.value());
        for (const auto& [block, weights] : snapshot->second)
          CHECK(same_bits(floats_of({weights}), floats_of({expected[block.value()]})));
        ++compared;
      }
      if (!rounds->contributors.contains(round)) break;
      contributors.insert(rounds->contributors[round]);
      for (const WorkerId worker : rounds->contributors[round]) {
        const auto& lease = rounds->leases.at({round, worker});
        const auto order = job->orders->of(Epoch(0));
        for (std::int64_t i = lease.begin; i < lease.end; ++i)
          samples.push_back((*order)[static_cast<std::size_t>(i)]);
      }
    }
  }
  CHECK(compared >= 15);
  CHECK(contributors.size() >= 4);
}

TEST_CASE("the weights of bsp depend on the seed, not on the interleaving") {
  const auto first = weights_of(run_plan(bsp_plan(4, 3), 1));
  for (std::uint64_t interleaving = 2; interleaving < 12; ++interleaving)
    CHECK(same_bits(first, weights_of(run_plan(bsp_plan(4, 3), interleaving))));
  Plan other = bsp_plan(4, 3);
  other.seed = 2;
  CHECK_FALSE(same_bits(first, weights_of(run_plan(other, 1))));
}

TEST_CASE("bsp with N workers equals one worker with N micro-batches, bit for bit") {
  // With 4 workers, 60 samples end with a round of 12, in which one worker has no samples.
  for (const std::uint32_t workers : {2u, 3u, 4u, 5u}) {
    const std::uint32_t batch = 4;
    Plan one = bsp_plan(1, workers * batch);
    one.micro_batches = workers;
    INFO(workers << " workers");
    CHECK(
        same_bits(weights_of(run_plan(bsp_plan(workers, batch), 1)), weights_of(run_plan(one, 1))));
  }
}

TEST_CASE("bf16 and fp16 round the same for every number of workers, and stay close to fp32") {
  const std::string precision = GENERATE("bf16", "fp16");
  INFO(precision);
  for (Plan plan : {bsp_plan(3, 4), text_plan()}) {
    plan.workers = 3;
    plan.batch = 4;
    const auto exact = weights_of(run_plan(plan, 1));
    plan.precision = precision;
    const auto rounded = weights_of(run_plan(plan, 1));
    Plan one = plan;
    one.workers = 1;
    one.batch = 12;
    one.micro_batches = 3;
    CHECK(same_bits(rounded, weights_of(run_plan(one, 1))));
    CHECK_FALSE(same_bits(rounded, exact));
    REQUIRE(rounded.size() == exact.size());
    for (std::size_t i = 0; i < exact.size(); ++i)
      CHECK(std::abs(rounded[i] - exact[i]) < 0.02 * (1 + std::abs(exact[i])));
  }
}

TEST_CASE("with codecs of pushes and pulls, bsp does not depend on the interleaving") {
  Plan plan = bsp_plan(3, 4);
  plan.stop.epochs = 6;
  const auto exact = weights_of(run_plan(plan, 1));
  for (const auto& push : {plan::Codec(plan::Bf16{}), plan::Codec(plan::Int8{}),
                           plan::Codec(plan::OneBit{}), plan::Codec(plan::TopK{0.5})}) {
    plan.compress = {.push = push, .pull = plan::Bf16{}};
    const auto weights = weights_of(run_plan(plan, 1));
    for (std::uint64_t interleaving = 2; interleaving < 5; ++interleaving)
      CHECK(same_bits(weights, weights_of(run_plan(plan, interleaving))));
    CHECK_FALSE(same_bits(weights, exact));
    REQUIRE(weights.size() == exact.size());
    if (id_of(push) > CodecId::int8) continue;
    for (std::size_t i = 0; i < exact.size(); ++i)
      CHECK(std::abs(weights[i] - exact[i]) < 0.1 * (1 + std::abs(exact[i])));
  }
}

TEST_CASE("stages that send each other encodings train nearly the same weights") {
  for (Plan plan : {bsp_plan(2, 4), text_plan()}) {
    plan.workers = plan.pipeline.stages = 2;
    plan.batch = 4;
    plan.micro_batches = 2;
    const auto exact = weights_of(run_plan(plan, 1));
    for (const auto& codec : {plan::Codec(plan::Bf16{}), plan::Codec(plan::Int8{})}) {
      plan.compress = {.activations = codec, .activation_gradients = codec};
      const auto weights = weights_of(run_plan(plan, 1));
      CHECK(same_bits(weights, weights_of(run_plan(plan, 2))));
      CHECK_FALSE(same_bits(weights, exact));
      REQUIRE(weights.size() == exact.size());
      for (std::size_t i = 0; i < exact.size(); ++i)
        CHECK(std::abs(weights[i] - exact[i]) < 0.05 * (1 + std::abs(exact[i])));
    }
  }
}

TEST_CASE("precisions of single layers: fp32 in all layers is fp32") {
  Plan plan = bsp_plan(2, 4);
  const auto exact = weights_of(run_plan(plan, 1));
  plan.precision = "bf16,0-4=fp32";
  CHECK(same_bits(exact, weights_of(run_plan(plan, 1))));
  plan.precision = "bf16,0=fp32";
  CHECK_FALSE(same_bits(exact, weights_of(run_plan(plan, 1))));
}

TEST_CASE("with tied weights, bsp with N workers equals one worker with N micro-batches") {
  const auto plan_of = [](std::uint32_t workers, std::uint32_t batch) {
    Plan plan = text_plan();
    plan.workers = workers;
    plan.batch = batch;
    return plan;
  };
  Plan one = plan_of(1, 12);
  one.micro_batches = 3;
  CHECK(same_bits(weights_of(run_plan(plan_of(3, 4), 1)), weights_of(run_plan(one, 1))));
}

TEST_CASE("bsp with N workers equals one worker with N times the batch, to rounding") {
  const auto many = weights_of(run_plan(bsp_plan(3, 4), 1));
  const auto one = weights_of(run_plan(bsp_plan(1, 12), 1));
  REQUIRE(many.size() == one.size());
  for (std::size_t i = 0; i < many.size(); ++i)
    CHECK(std::abs(many[i] - one[i]) < 1e-5 * (1 + std::abs(one[i])));
}

TEST_CASE("bsp with unequal batches gives the weights of equal batches, to rounding") {
  struct Sizes final : sim::Observer {
    void on_delivered(Instant, const sim::Letter& letter) override {
      const auto* lease = letter.from() == kScheduler ? letter.as<msg::Lease>() : nullptr;
      if (!lease) return;
      largest = std::max(largest, lease->batch);
      least = std::min(least, lease->batch);
    }
    std::uint32_t largest = 0, least = 100;
  };
  Plan plan = bsp_plan(3, 8);
  plan.stop.epochs = 8;
  const auto equal = weights_of(run_plan(plan, 1));
  plan.balance = plan::Balance::by_speed;
  const auto sizes = std::make_shared<Sizes>();
  for (std::uint64_t interleaving = 1; interleaving < 10; ++interleaving) {
    TestHost host(job_of(plan), interleaving);
    host.observe(sizes);
    const auto unequal = weights_of(host.run());
    REQUIRE(unequal.size() == equal.size());
    for (std::size_t i = 0; i < equal.size(); ++i)
      CHECK(std::abs(unequal[i] - equal[i]) < 1e-4 * (1 + std::abs(equal[i])));
  }
  CHECK(sizes->largest > plan.batch);
  CHECK(sizes->least < plan.batch);
}

TEST_CASE("the number of shards does not change the result of bsp") {
  Plan one = bsp_plan(3, 4);
  one.shards = 1;
  Plan three = bsp_plan(3, 4);
  three.shards = 3;
  // Blocks are the same, so weights can be compared one by one.
  CHECK(same_bits(weights_of(run_plan(one, 1)), weights_of(run_plan(three, 2))));
}

TEST_CASE("every optimizer trains the small task under every policy") {
  const std::vector<plan::Optimizer> optimizers = {
      {0.1, 0, plan::Sgd{}},    {0.05, 0, plan::Momentum{}}, {0.05, 0, plan::Nesterov{}},
      {0.02, 0, plan::Adam{}},  {0.02, 0.01, plan::AdamW{}}, {0.1, 0, plan::AdaGrad{}},
      {0.02, 0, plan::NAdam{}}, {0.01, 0, plan::Lion{}},     {0.02, 0, plan::Muon{}}};
  const std::vector<plan::Consistency> policies = {
      plan::Bsp{},     plan::Ssp{2},       plan::Asp{},       plan::Adaptive{1, 3},
      plan::Backup{1}, plan::Quorum{2, 1}, plan::Automatic{3}};
  for (const auto& optimizer : optimizers) {
    for (const auto& policy : policies) {
      Plan plan = tiny_plan();
      plan.optimizer = optimizer;
      plan.consistency = policy;
      plan.stop.epochs = 12;
      const auto totals = run_plan(plan, 3);
      INFO("optimizer " << optimizer.kind.index() << ", policy " << policy.index());
      CHECK(totals.evaluations.back().accuracy > 0.9);
    }
  }
}

TEST_CASE("workers share one copy of the weights, which a pull does not copy") {
  struct Sharing final : sim::Observer {
    void on_delivered(Instant, const sim::Letter& letter) override {
      const Address from = letter.from(), to = letter.to();
      const auto* weights = letter.as<msg::Weights>();
      if (!weights) return;
      for (const auto& block : weights->blocks) {
        auto& [version, held] = newest[{from, block.block}];
        if (held && version == block.version && last[{from, block.block}] != to) {
          ++compared;
          shared += held.same_as(block.data) ? 1 : 0;
        }
        version = block.version;
        held = block.data;
        last[{from, block.block}] = to;
      }
    }
    std::map<std::pair<Address, BlockId>, std::pair<Version, Blob>> newest;
    std::map<std::pair<Address, BlockId>, Address> last;
    int compared = 0;
    int shared = 0;
  };
  const auto sharing = std::make_shared<Sharing>();
  TestHost host(job_of(bsp_plan(3, 4)), 1);
  host.observe(sharing);
  host.run();
  CHECK(sharing->compared > 20);
  CHECK(sharing->shared == sharing->compared);
}

TEST_CASE("a run fails when no worker is left, and keeps its weights") {
  Plan plan = tiny_plan();
  plan.workers = 2;
  plan.faults = {{address_of(WorkerId(0)), std::int64_t{3}, 0, plan::Throws{}},
                 {address_of(WorkerId(1)), std::int64_t{5}, 0, plan::Killed{}}};
  const auto totals = run_plan(plan, 1);
  CHECK(totals.end.reason == msg::RunEnded::Reason::failed);
  CHECK(totals.end.text.find("no worker is left") != std::string::npos);
  CHECK(totals.weights.size() == 3);
  CHECK(totals.end.samples_trained > 0);
}

TEST_CASE("a loss that is not finite ends the run; the error names worker, iteration and layer") {
  Plan plan = tiny_plan();
  plan.optimizer.learning_rate = 1e6;
  const auto totals = run_plan(plan, 1);
  CHECK(totals.end.reason == msg::RunEnded::Reason::failed);
  CHECK(totals.end.text.find("worker ") != std::string::npos);
  CHECK(totals.end.text.find("in iteration ") != std::string::npos);
  CHECK(totals.end.text.find("layer ") != std::string::npos);
}

TEST_CASE("an interrupted run has no partial pushes and keeps its weights") {
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    Plan plan = tiny_plan();
    plan.stop.epochs = 100;
    TestHost host(job_of(plan), seed);
    host.run_some(200 + static_cast<int>(seed) * 17);
    host.inject(kHost, kScheduler, encode({.body = msg::Interrupt{}}));
    const auto totals = host.run();
    CHECK(totals.end.reason == msg::RunEnded::Reason::interrupted);
    CHECK(totals.end.partial_pushes == 0);
    CHECK(totals.weights.size() == 3);
  }
}

}  // namespace leeway::test
