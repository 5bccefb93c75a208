// Random streams of a resumed run: slow-downs continue by iteration; epoch orders, dropout and
// augmentation by epoch.
#include <catch2/catch.hpp>
#include <map>

#include "tests/checkpoint/resumed_run.hpp"
#include "tests/support/bits.hpp"
#include "tests/support/images.hpp"

namespace leeway::test {
namespace {

/// The duration of each worker's iterations.
struct Durations {
  using Key = std::pair<WorkerId, Iteration>;

  void add(Instant at, const Event& event) {
    if (const auto* started = event.as<event::StepStarted>())
      began[{started->worker, started->iteration}] = at;
    if (const auto* finished = event.as<event::StepFinished>(); finished && finished->samples > 0)
      took[{finished->worker, finished->iteration}] =
          at - began.at({finished->worker, finished->iteration});
  }

  std::map<Key, Instant> began;
  std::map<Key, Duration> took;
};

/// Three workers; every computation of one takes the same time, apart from its slow-down.
Plan slowed_plan(plan::StragglerKind kind) {
  Plan plan = tiny_plan();
  plan.consistency = plan::Bsp{};
  compute_slowly(plan);
  plan.simulated->noise = 0;
  plan.stragglers = {{.all = true, .kind = std::move(kind)}};
  return plan;
}

}  // namespace

TEST_CASE("the slow-downs of a resumed run are those of the uninterrupted one") {
  for (const plan::StragglerKind& kind :
       {plan::StragglerKind(plan::Bursts{4, 0.4, 3}), plan::StragglerKind(plan::Pareto{1.1, 50}),
        plan::StragglerKind(plan::Pauses{2000, std::uint32_t{3}}),
        plan::StragglerKind(plan::Decay{9, 15}), plan::StragglerKind(plan::Sharing{3, 2, 3})}) {
    const Plan plan = slowed_plan(kind);
    const Disk disk;
    Durations whole;
    run(plan, disk, 8, std::nullopt,
        [&](Address, Instant at, const Event& event) { whole.add(at, event); });
    auto numbers = *disk.store->numbers();
    numbers.pop_back();  // at the end of the run
    REQUIRE(numbers.size() > 1);
    for (const std::uint64_t number : numbers) {
      INFO("kind " << kind.index() << ", checkpoint " << number);
      Durations resumed;
      run(plan, disk, 1'000'000, number,
          [&](Address, Instant at, const Event& event) { resumed.add(at, event); });
      REQUIRE_FALSE(resumed.took.empty());
      for (const auto& [step, duration] : resumed.took) {
        INFO("worker " << step.first << ", iteration " << step.second);
        CHECK(duration.ns == whole.took.at(step).ns);
      }
    }
  }
}

TEST_CASE("epoch orders, dropout and augmentation of a resumed run continue") {
  Plan plan = tiny_plan();
  plan.data = images_of("resumed images", plan::Synthetic{60, 20, plan::Clusters{3, 16, 3}},
                        Shape{1, 4, 4});
  plan.augment = {.flip = true, .shift = 1};
  plan.model = {plan::Flatten{}, plan::Linear{6}, plan::Relu{}, plan::Dropout{0.4},
                plan::Linear{3}};
  plan.consistency = plan::Bsp{};
  plan.stop.epochs = 3;
  compute_slowly(plan);
  const Disk disk;
  const RunTotals whole = run(plan, disk, 7);
  const auto numbers = *disk.store->numbers();
  REQUIRE(numbers.size() > 8);  // in each epoch
  for (const std::uint64_t number : numbers) {
    INFO("checkpoint " << number);
    CHECK(floats_of(run(plan, disk, 1'000'000, number).weights) == floats_of(whole.weights));
  }
}

}  // namespace leeway::test
