// A pipeline trains the same weights as workers with the whole model.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/support/bits.hpp"
#include "tests/support/checkers.hpp"
#include "tests/support/text_task.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {
namespace {

RunTotals run_plan(const Plan& plan, std::uint64_t interleaving, FaultRates faults = {}) {
  const auto job = job_of(plan);
  TestHost host(job, interleaving, faults);
  observe_all(host, job);
  return host.run();
}

std::vector<float> trained(const Plan& plan, std::uint64_t interleaving = 1) {
  const auto totals = run_plan(plan, interleaving);
  LW_CHECK(totals.end.reason == msg::RunEnded::Reason::finished, totals.end.text);
  return floats_of(totals.weights);
}

/// Enough layers for several stages.
Plan deep_plan(std::uint32_t pipelines, std::uint32_t stages) {
  Plan plan = tiny_plan();
  plan.model = {plan::Linear{7}, plan::Relu{},       plan::Linear{6}, plan::Tanh{},
                plan::Linear{5}, plan::Relu{},       plan::Linear{6}, plan::Gelu{},
                plan::Linear{4}, plan::Dropout{0.2}, plan::Linear{3}};
  plan.consistency = plan::Bsp{};
  plan.optimizer = {0.05, 1e-3, plan::Momentum{0.9}};
  plan.pipeline.stages = stages;
  plan.workers = pipelines * stages;
  plan.batch = 12;
  return plan;
}

/// The same plan for workers with the whole model and the same samples per iteration.
Plan without_stages(Plan plan) {
  plan.workers /= plan.pipeline.stages;
  plan.pipeline = {};
  if (!std::holds_alternative<plan::Bsp>(plan.consistency)) plan.consistency = plan::Bsp{};
  return plan;
}

struct Form {
  const char* schedule;
  std::uint32_t stages, chunks, micro_batches;
};

const std::vector<Form> kFlushed = {
    {"gpipe", 2, 1, 1},          {"gpipe", 3, 1, 4},       {"1f1b", 2, 1, 2},
    {"1f1b", 3, 1, 6},           {"1f1b", 5, 1, 3},        {"interleaved", 2, 2, 4},
    {"interleaved", 3, 2, 3},    {"interleaved", 3, 2, 4}, {"interleaved", 3, 2, 2},
    {"zb_h1", 2, 1, 4},          {"zb_h1", 4, 1, 6},       {"interleaved_zb", 2, 2, 4},
    {"interleaved_zb", 3, 2, 5}, {"zb_v", 2, 2, 1},        {"zb_v", 2, 2, 4},
    {"zb_v", 3, 2, 6},           {"dualpipe_v", 2, 2, 4},  {"dualpipe_v", 3, 2, 6}};

Plan with(Plan plan, const Form& form) {
  plan.pipeline.schedule = form.schedule;
  plan.pipeline.chunks = form.chunks;
  plan.micro_batches = form.micro_batches;
  return plan;
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  float largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

}  // namespace

TEST_CASE("a flushed pipeline trains the same weights as one worker, bit for bit") {
  for (const Form& form : kFlushed) {
    INFO(form.schedule << ", " << form.stages << " stages, " << form.micro_batches);
    const Plan plan = with(deep_plan(1, form.stages), form);
    const auto single = trained(without_stages(plan));
    for (std::uint64_t interleaving = 1; interleaving < 6; ++interleaving)
      CHECK(same_bits(trained(plan, interleaving), single));
  }
}

TEST_CASE("N flushed pipelines train the same weights as N workers, bit for bit") {
  for (const Form& form : kFlushed) {
    INFO(form.schedule << ", " << form.stages << " stages, " << form.micro_batches);
    const Plan plan = with(deep_plan(3, form.stages), form);
    const auto workers = trained(without_stages(plan));
    for (std::uint64_t interleaving = 1; interleaving < 4; ++interleaving)
      CHECK(same_bits(trained(plan, interleaving), workers));
  }
}

TEST_CASE("stages with recompute give the same bits") {
  Plan plan = with(deep_plan(2, 3), {"1f1b", 3, 1, 4});
  const auto kept = trained(plan);
  plan.pipeline.recompute = {0, 2};
  CHECK(same_bits(trained(plan, 2), kept));
}

TEST_CASE("tied weights get the sum of the gradients of the first and the last stage") {
  for (const std::uint32_t micro_batches : {1u, 3u}) {
    Plan plan = text_plan();
    plan.pipeline.stages = 2;
    plan.workers = 2;
    plan.batch = 6;
    plan.micro_batches = micro_batches;
    const auto single = trained(without_stages(plan));
    for (const plan::Consistency& policy :
         {plan::Consistency(plan::Bsp{}), plan::Consistency(plan::Ssp{2})}) {
      plan.consistency = policy;
      const auto piped = trained(plan);
      REQUIRE(piped.size() == single.size());
      if (micro_batches == 1) CHECK(same_bits(piped, single));
      for (std::size_t i = 0; i < piped.size(); ++i)
        REQUIRE(std::abs(piped[i] - single[i]) < 1e-5f * (1 + std::abs(single[i])));
    }
  }
}

TEST_CASE("tied weights on one stage get the sum of the gradients of both chunks") {
  for (const Form& form : {Form{"zb_v", 2, 2, 1}, Form{"zb_v", 2, 2, 3}, Form{"zb_v", 3, 2, 3},
                           Form{"dualpipe_v", 2, 2, 4}}) {
    INFO(form.schedule << ", " << form.stages << " stages, " << form.micro_batches);
    Plan plan = text_plan();
    plan.model = gpt({.layers = 3, .width = 8, .heads = 2});
    plan.batch = 8;
    plan.pipeline.stages = plan.workers = form.stages;
    plan = with(plan, form);
    const auto single = trained(without_stages(plan));
    Plan others = with(plan, {"1f1b", form.stages, 1, form.micro_batches});
    const auto on_two_stages = trained(others);
    for (const double clip_norm : {0.0, 0.1}) {
      plan.optimizer.clip_norm = clip_norm;
      plan.consistency = plan::Ssp{0};
      const auto piped = trained(plan);
      if (clip_norm == 0) {
        CHECK(same_bits(piped, on_two_stages));
        if (form.micro_batches == 1) CHECK(same_bits(piped, single));
      }
      Plan whole = without_stages(plan);
      const auto expected = trained(whole);
      REQUIRE(piped.size() == expected.size());
      for (std::size_t i = 0; i < piped.size(); ++i)
        REQUIRE(std::abs(piped[i] - expected[i]) < 1e-5f * (1 + std::abs(expected[i])));
    }
  }
}

TEST_CASE("the norm of a push includes all stages of its pipeline") {
  for (const Form& form : kFlushed) {
    INFO(form.schedule << ", " << form.stages << " stages, " << form.micro_batches);
    Plan plan = with(deep_plan(1, form.stages), form);
    const auto unlimited = trained(plan);
    plan.optimizer.clip_norm = 0.1;
    const auto single = trained(without_stages(plan));
    REQUIRE(largest_difference(unlimited, single) > 0.01f);
    plan.consistency = plan::Ssp{0};
    for (std::uint64_t interleaving = 1; interleaving < 4; ++interleaving)
      CHECK(largest_difference(trained(plan, interleaving), single) < 1e-5f);
  }
}

TEST_CASE("an asynchronous pipeline learns within the staleness bound that it requires") {
  const bool limited = GENERATE(false, true);
  for (const char* schedule : {"weight_stashing", "2bw"}) {
    INFO(schedule << (limited ? ", limited norm" : ""));
    Plan plan = with(deep_plan(2, 3), {schedule, 3, 1, 2});
    plan.consistency = plan::Ssp{3};
    plan.optimizer = {0.1, 0, plan::Sgd{}};
    plan.stop.epochs = 100;
    if (limited) plan.optimizer.clip_norm = 1;
    for (std::uint64_t interleaving = 1; interleaving < 6; ++interleaving)
      CHECK(run_plan(plan, interleaving).evaluations.back().accuracy > 0.85);
  }
}

TEST_CASE("pipelines continue when stages die, and train each sample once") {
  std::uint64_t died = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    const Form& form = kFlushed[seed % kFlushed.size()];
    Plan plan = with(deep_plan(3, form.stages), form);
    if (seed % 2) plan.consistency = plan::Ssp{2};
    if (seed % 5 < 2) plan.optimizer.clip_norm = 0.1;
    const auto totals =
        run_plan(plan, seed, {.kill_one_in = 600, .suspect_one_in = 300, .break_link_one_in = 200});
    for (const auto& worker : totals.workers) {
      died += worker.end.empty() ? 0 : 1;
      CHECK(worker.wait_before + worker.wait_after <= worker.wait);
    }
  }
  CHECK(died > 30);
}

TEST_CASE("a loss that is not finite ends the run of a pipeline") {
  auto forms = kFlushed;
  forms.push_back({"2bw", 3, 1, 4});
  for (const Form& form : forms) {
    CAPTURE(form.schedule);
    Plan plan = with(deep_plan(1, form.stages), form);
    plan.optimizer = {1e18, 0, plan::Sgd{}};
    plan.consistency = plan::Ssp{3};
    const auto totals = run_plan(plan, 1);
    CHECK(totals.end.reason == msg::RunEnded::Reason::failed);
    CHECK(totals.end.text.find("loss became") != std::string::npos);
  }
}

}  // namespace leeway::test
