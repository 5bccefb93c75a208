// Workers with samples of their own, and rounds of some workers, in whole runs.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <set>

#include "tests/support/checkers.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {
namespace {

Plan divided_plan(plan::Consistency consistency) {
  Plan plan = tiny_plan();
  plan.consistency = consistency;
  plan.split_data = plan::DirichletSplit{1};
  return plan;
}

/// The parts of the data that each worker has trained samples of.
class TrainedParts final : public sim::Observer {
 public:
  explicit TrainedParts(const Job& job) : begins_(job.split->begins) {}
  void on_event(Instant, Address, const Event& event) override {
    const auto* trained = event.as<event::Trained>();
    if (!trained) return;
    for (std::uint32_t part = 0; part + 1 < begins_.size(); ++part)
      if (trained->begin < begins_[part + 1] && trained->end > begins_[part])
        parts_[trained->worker].insert(part);
  }
  const std::set<std::uint32_t>& of(std::uint32_t worker) { return parts_[WorkerId(worker)]; }

 private:
  std::vector<std::int64_t> begins_;
  std::map<WorkerId, std::set<std::uint32_t>> parts_;
};

const plan::Consistency kBounds[] = {plan::Bsp{}, plan::Ssp{1}, plan::Asp{}, plan::Backup{1}};

}  // namespace

TEST_CASE("without faults a worker trains its own samples only, each once per epoch", "[split]") {
  for (const plan::Consistency& bound :
       {plan::Consistency(plan::Bsp{}), plan::Consistency(plan::Asp{})}) {
    const auto job = job_of(divided_plan(bound));
    TestHost host(job, 3);
    observe_all(host, job);
    const auto trained = std::make_shared<TrainedParts>(*job);
    host.observe(trained);
    CHECK(host.run().end.samples_trained == 120);
    if (std::holds_alternative<plan::Bsp>(bound))
      for (std::uint32_t worker = 0; worker < 3; ++worker)
        CHECK(trained->of(worker) == std::set{worker});
  }
}

TEST_CASE("samples of lost workers are trained by others, with every bound", "[split]") {
  for (const plan::Consistency& bound : kBounds)
    for (std::uint64_t seed = 500; seed < 530; ++seed) {
      CAPTURE(bound.index(), seed);
      const auto job = job_of(divided_plan(bound));
      TestHost host(job, seed, {.kill_one_in = 600, .break_link_one_in = 80});
      observe_all(host, job);
      CHECK(host.run().end.samples_trained == 120);
    }
}

TEST_CASE("with partial participation each sample is trained once, in more rounds", "[split]") {
  const auto rounds_of = [](const Plan& plan, std::uint64_t seed) {
    struct Rounds final : sim::Observer {
      void on_event(Instant, Address, const Event& event) override {
        if (const auto* moved = event.as<event::ClockMoved>()) last = std::max(last, moved->clock);
      }
      Clock last;
    };
    const auto job = job_of(plan);
    TestHost host(job, seed, {.kill_one_in = 900});
    observe_all(host, job);
    const auto rounds = std::make_shared<Rounds>();
    host.observe(rounds);
    CHECK(host.run().end.samples_trained == 120);
    return rounds->last;
  };
  for (std::uint64_t seed = 700; seed < 715; ++seed) {
    CAPTURE(seed);
    Plan plan = divided_plan(plan::Bsp{});
    if (seed % 2 == 0) plan.split_data = plan::SharedData{};
    const Clock all = rounds_of(plan, seed);
    plan.participation = 0.3;
    CHECK(rounds_of(plan, seed) > all);
  }
}

TEST_CASE("a first stage without weights goes on after rounds in which it has no samples",
          "[split]") {
  Plan plan = divided_plan(plan::Bsp{});
  plan.model = {plan::Relu{}, plan::Linear{6}, plan::Relu{}, plan::Linear{3}};
  plan.pipeline.stages = 2;
  plan.pipeline.split = "0-0,1-3";
  plan.workers = 6;
  plan.participation = 0.3;
  for (std::uint64_t seed = 800; seed < 830; ++seed) {
    CAPTURE(seed);
    const auto job = job_of(plan);
    TestHost host(job, seed, {.kill_one_in = seed % 2 == 0 ? 900u : 0u});
    observe_all(host, job);
    const RunTotals totals = host.run();
    // A pipeline that has lost a stage does not come back here.
    if (totals.end.reason == msg::RunEnded::Reason::finished)
      CHECK(totals.end.samples_trained == 120);
  }
}

}  // namespace leeway::test
