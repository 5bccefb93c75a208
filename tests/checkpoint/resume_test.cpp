// A run that is resumed from a checkpoint, in simulation: bit for bit under bsp, and with every
// sample of the epoch trained once in all cases.
#include <catch2/catch.hpp>

#include "tests/checkpoint/resumed_run.hpp"
#include "tests/support/bits.hpp"
#include "tests/support/text_task.hpp"

namespace leeway::test {
namespace {

Plan plan_with(plan::Consistency consistency, plan::OptimizerKind optimizer = plan::Adam{}) {
  Plan plan = tiny_plan();
  plan.consistency = consistency;
  plan.optimizer.learning_rate = 0.01;
  plan.optimizer.kind = optimizer;
  plan.lr_schedule.kind = plan::Cosine{};
  plan.evaluate_every = 0.5;
  compute_slowly(plan);
  return plan;
}

}  // namespace

TEST_CASE("under bsp, a run resumed from any checkpoint equals the uninterrupted one") {
  for (const bool piped : {false, true}) {
    Plan plan = piped ? text_plan() : plan_with(plan::Bsp{});
    plan.consistency = plan::Bsp{};
    compute_slowly(plan);
    if (piped) {
      plan.workers = 4;
      plan.pipeline.stages = 2;
      plan.shards = 2;
    }
    const Disk disk;
    const RunTotals whole = run(plan, disk, 6);
    const auto numbers = *disk.store->numbers();
    INFO((piped ? "pipelined" : "plain") << ", " << numbers.size() << " checkpoints");
    REQUIRE(numbers.size() > 3);
    for (const std::uint64_t number : numbers) {
      const RunTotals resumed = run(plan, disk, 1'000'000, number);
      INFO("checkpoint " << number);
      CHECK(floats_of(resumed.weights) == floats_of(whole.weights));
      CHECK(resumed.end.samples_trained == whole.end.samples_trained);
      CHECK(resumed.evaluations.back().loss == whole.evaluations.back().loss);
    }
  }
}

TEST_CASE("under bsp, every optimizer resumes exactly, with its variants, groups and limits") {
  const std::vector<plan::OptimizerKind> kinds = {
      plan::Momentum{.dampening = 0.4}, plan::Nesterov{}, plan::Adam{.amsgrad = true},
      plan::AdamW{.amsgrad = true}, plan::AdaGrad{.initial = 0.5}};
  for (std::size_t i = 0; i < 2 * kinds.size(); ++i) {
    const auto& kind = kinds[i / 2];
    if (i % 2 == 1 && std::holds_alternative<plan::AdaGrad>(kind)) continue;  // refused
    Plan plan = plan_with(plan::Bsp{}, kind);
    plan.optimizer.eight_bit_state = i % 2 == 1;
    plan.optimizer.weight_decay = 0.01;
    plan.optimizer.no_decay_on_biases = true;
    plan.optimizer.clip_norm = 0.2;
    plan.optimizer.clip_value = 0.1;
    plan.optimizer.groups = {{"0.*", 0.5, 2}};
    plan.lr_schedule = {0.5, plan::Cosine{0.1, 0.5, 2}, 0.2};
    const Disk disk;
    const RunTotals whole = run(plan, disk, 6);
    const auto numbers = *disk.store->numbers();
    REQUIRE(numbers.size() > 3);
    for (const std::uint64_t number : numbers) {
      INFO("optimizer " << kind.index() << (i % 2 == 1 ? " in 8 bits" : "") << ", checkpoint "
                        << number);
      CHECK(floats_of(run(plan, disk, 1'000'000, number).weights) == floats_of(whole.weights));
    }
  }
}

TEST_CASE("under any policy, a resumed run trains every sample once") {
  for (const plan::Consistency& policy :
       {plan::Consistency(plan::Ssp{2}), plan::Consistency(plan::Asp{}),
        plan::Consistency(plan::Backup{1}), plan::Consistency(plan::Adaptive{1, 4})}) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      Plan plan = plan_with(policy);
      plan.seed = seed;
      plan.stragglers = {{.worker = 2, .kind = plan::ConstantFactor{5}}};
      if (seed % 2 == 0) plan.split_data = plan::DirichletSplit{2};
      const Disk disk;
      run(plan, disk, 10);
      const auto numbers = *disk.store->numbers();
      INFO("policy " << policy.index() << ", seed " << seed);
      REQUIRE_FALSE(numbers.empty());
      for (const std::uint64_t number : numbers) {
        CHECK_FALSE(disk.store->manifest(number)->lacks_residuals);
        run(plan, disk, 1'000'000, number);
      }
    }
  }
}

TEST_CASE("workers that compute iterations again do not prevent checkpoints") {
  Plan plan = plan_with(plan::Asp{});
  plan.delay_policy = plan::DelayThreshold{1};
  plan.stragglers = {{.worker = 2, .kind = plan::ConstantFactor{8}}};
  const Disk disk;
  run(plan, disk, 10);
  CHECK(disk.store->numbers()->size() > 2);
}

TEST_CASE("a checkpoint loads onto other numbers of workers and shards and other policies") {
  Plan plan = plan_with(plan::Asp{});
  plan.stragglers = {{.worker = 1, .kind = plan::ConstantFactor{3}}};
  const Disk disk;
  run(plan, disk, 10);
  REQUIRE_FALSE(disk.store->numbers()->empty());
  const auto number = disk.store->numbers()->back();
  for (const auto& [workers, shards] : {std::pair{1u, 1u}, {2u, 3u}, {5u, 2u}})
    for (const plan::Consistency& policy :
         {plan::Consistency(plan::Bsp{}), plan::Consistency(plan::Ssp{1}),
          plan::Consistency(plan::Asp{})}) {
      Plan other = plan;
      other.workers = workers;
      other.shards = shards;
      other.consistency = policy;
      other.stragglers.clear();
      INFO(workers << " workers, " << shards << " shards, policy " << policy.index());
      run(other, disk, 1'000'000, number);
    }
}

TEST_CASE("checkpoints of a run that a time limit stops lack the samples that it did not train") {
  // The limit falls before, into and after the snapshots.
  std::size_t resumed = 0;
  for (int i = 1; i <= 60; ++i) {
    Plan plan = plan_with(plan::Ssp{2});
    plan.stop.seconds = 0.05 * i;
    const Disk disk;
    sim::Simulation simulation(job_with(plan, disk, 3), {});
    INFO("stops after " << plan.stop.seconds << " s");
    REQUIRE(simulation.run() == "");
    plan.stop.seconds = 0;
    const auto numbers = *disk.store->numbers();
    if (!numbers.empty()) run(plan, disk, 1'000'000, numbers.back());
    resumed += numbers.empty() ? 0 : 1;
  }
  CHECK(resumed > 20);
}

TEST_CASE("auto keeps its implied settings out of checkpoints, and its bound in them") {
  const auto resumed = [](const plan::Consistency& began, const plan::Consistency& policy,
                          std::optional<std::uint32_t> stored) {
    const Disk disk;
    Plan plan = plan_with(began, plan::Momentum{});
    run(plan, disk, 10);
    plan.consistency = policy;
    const auto number = disk.store->numbers()->front();
    auto job = std::make_shared<Job>(*job_with(plan, disk, 1'000'000, number));
    if (stored) job->resumed->manifest.scheduler.bound.staleness = *stored;
    return job;
  };
  const auto barrier = resumed(plan::Automatic{}, plan::Bsp{}, std::nullopt);
  CHECK(barrier->resumed->plan.balance == plan::Balance::equal);
  CHECK(barrier->resumed->plan.delay_policy == plan::DelayPolicy(plan::PlainPush{}));
  CHECK_FALSE(barrier->delay_policy);
  const auto again = resumed(plan::Automatic{}, plan::Automatic{}, 5);
  CHECK(again->plan.balance == plan::Balance::by_speed);
  CHECK(again->given.balance == plan::Balance::equal);
  CHECK(again->first_bound() == 5);
  CHECK(resumed(plan::Ssp{2}, plan::Automatic{}, std::nullopt)->first_bound() == 16);
  CHECK(resumed(plan::Ssp{2}, plan::Adaptive{1, 8}, std::nullopt)->first_bound() == 1);
}

TEST_CASE("a checkpoint is refused by an optimizer with other state") {
  const Disk disk;
  const Plan plan = plan_with(plan::Bsp{});
  run(plan, disk, 10);
  Plan other = plan;
  for (const plan::OptimizerKind& kind :
       {plan::OptimizerKind(plan::Sgd{}), plan::OptimizerKind(plan::NAdam{})}) {
    other.optimizer.kind = kind;
    CHECK_THROWS_WITH(run(other, disk, 10, disk.store->numbers()->front()),
                      Catch::Contains("resume with the optimizer that the run began with"));
  }
}

TEST_CASE("under bsp, host groups and losses with a factor resume exactly") {
  for (const bool has_fp16 : {false, true}) {
    Plan plan = plan_with(plan::Bsp{});
    plan.workers = 4;
    plan.aggregate = plan::GroupsOf{2};
    if (has_fp16) {
      plan.precision = "fp16";
      plan.loss_scale = 16777216;  // the first rounds overflow
    }
    const Disk disk;
    const RunTotals whole = run(plan, disk, 6);
    const auto numbers = *disk.store->numbers();
    INFO((has_fp16 ? "fp16, " : "fp32, ") << numbers.size() << " checkpoints");
    REQUIRE(numbers.size() > 3);
    CHECK((whole.last.skipped_updates > 0) == has_fp16);
    for (const std::uint64_t number : numbers) {
      INFO("checkpoint " << number);
      const RunTotals resumed = run(plan, disk, 1'000'000, number);
      CHECK(floats_of(resumed.weights) == floats_of(whole.weights));
      CHECK(resumed.last.loss_scale == whole.last.loss_scale);
    }
    const auto& last = *disk.store->manifest(numbers.back());
    CHECK((last.loss_scale > 0) == has_fp16);
  }
}

TEST_CASE("with a codec for pushes, a run resumes from any checkpoint but the last exactly") {
  struct {
    plan::Codec codec;
    plan::OptimizerKind optimizer;
    std::uint32_t stages;
  } const runs[] = {{plan::Int8{}, plan::Adam{}, 1},
                    {plan::TopK{0.1}, plan::Momentum{0.5}, 1},  // with velocities
                    {plan::OneBit{}, plan::Sgd{}, 3}};
  for (const auto& [codec, optimizer, stages] : runs) {
    Plan plan = plan_with(plan::Bsp{}, optimizer);
    plan.compress.push = codec;
    plan.pipeline.stages = stages;
    plan.workers = 3;
    plan.optimizer.learning_rate = 0.001;
    const Disk disk;
    const RunTotals whole = run(plan, disk, 12);
    const auto numbers = *disk.store->numbers();
    INFO("codec " << codec.index() << ", " << numbers.size() << " checkpoints");
    REQUIRE(numbers.size() > 3);
    for (const std::uint64_t number : numbers) {
      INFO("checkpoint " << number);
      const bool is_last = number == numbers.back();
      CHECK(disk.store->manifest(number)->lacks_residuals == is_last);
      if (!is_last)
        CHECK(floats_of(run(plan, disk, 12, number).weights) == floats_of(whole.weights));
    }
  }
}

TEST_CASE("a run that resumes from the end of another without its residuals says so") {
  const Disk disk;
  Plan plan = plan_with(plan::Bsp{}, plan::Sgd{});
  plan.compress.push = plan::Int8{};
  run(plan, disk, 10);
  CHECK(job_with(plan, disk, 10, disk.store->numbers()->front())->notes.empty());
  const auto job = job_with(plan, disk, 10, disk.store->numbers()->back());
  REQUIRE(job->notes.size() == 1);
  CHECK_THAT(job->notes[0], Catch::Contains("lacks residuals"));
}

TEST_CASE("a checkpoint is refused by a delay policy whose running mean it lacks") {
  const Disk disk;
  Plan plan = plan_with(plan::Asp{}, plan::Sgd{});
  plan.delay_policy = plan::DelayCompensated{2, true};
  run(plan, disk, 10);
  plan.delay_policy = plan::GapAware{};
  CHECK_THROWS_WITH(run(plan, disk, 10, disk.store->numbers()->front()),
                    Catch::Contains("resume with the policy that the run began with"));
}

TEST_CASE("a checkpoint is refused by workers with other shares of the data") {
  const Disk disk;
  Plan plan = plan_with(plan::Asp{}, plan::Sgd{});
  plan.split_data = plan::IidSplit{};
  run(plan, disk, 10);
  const auto number = disk.store->numbers()->front();
  Plan fewer = plan, shared = plan;
  fewer.workers -= 1;
  shared.split_data = plan::SharedData{};
  for (const Plan& other : {fewer, shared})
    CHECK_THROWS_WITH(
        run(other, disk, 10, number),
        Catch::Contains("resume with the same, because each worker has its share of the data"));
}

TEST_CASE("under bsp, local steps of sgd resume exactly") {
  Plan plan = plan_with(plan::Bsp{}, plan::Sgd{});
  plan.local_steps = {2, {0.7, plan::Nesterov{}}};
  compute_slowly(plan);
  const Disk disk;
  const RunTotals whole = run(plan, disk, 6);
  const auto numbers = *disk.store->numbers();
  REQUIRE(numbers.size() > 1);
  for (const std::uint64_t number : numbers)
    CHECK(floats_of(run(plan, disk, 1'000'000, number).weights) == floats_of(whole.weights));
}

TEST_CASE("a disk that fails is reported, and the run goes on without a checkpoint") {
  struct Reports final : Audience {
    void checkpointed(const CheckpointResult& sent) override { errors.push_back(sent.error); }
    void ended(const RunTotals&) override {}
    std::vector<std::string> errors;
  } reports;
  Plan plan = plan_with(plan::Ssp{1});
  plan.checkpoints.every = plan::EveryIterations{10};
  auto data = load_data(plan.data, plan.seed);
  JobOptions options;
  options.checkpoints = std::make_shared<const Store>(disk(), "/proc/none/checkpoints");
  const auto job = *make_job(plan, std::move(*data), std::move(options));
  sim::Simulation simulation(job, {&reports});
  CHECK(simulation.run() == "");
  CHECK(simulation.totals().end.reason == msg::RunEnded::Reason::finished);
  REQUIRE(reports.errors.size() > 1);
  for (const std::string& error : reports.errors)
    CHECK_THAT(error, Catch::Contains("/proc/none/checkpoints/"));
}

}  // namespace leeway::test
