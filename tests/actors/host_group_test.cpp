// Host groups: equal weights, faults, refused messages, and the gradients of a group.
#include <catch2/catch.hpp>

#include "actors/group/group_gradients.hpp"
#include "tests/support/bits.hpp"
#include "tests/support/checkers.hpp"
#include "tests/support/text_task.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {
namespace {

/// `groups` groups of `group` workers.
Plan grouped_plan(std::uint32_t groups, std::uint32_t group, std::uint32_t batch) {
  Plan plan = tiny_plan();
  plan.consistency = plan::Bsp{};
  plan.workers = groups * group;
  plan.aggregate = plan::GroupsOf{group};
  plan.batch = batch;
  plan.optimizer = {0.05, 1e-3, plan::Momentum{0.9}};
  return plan;
}

/// One worker per group, whose micro-batches are the batches of the group's workers.
Plan ungrouped(Plan plan) {
  const std::uint32_t group = std::get<plan::GroupsOf>(plan.aggregate).count;
  plan.aggregate = plan::NoGroups{};
  plan.workers /= group;
  plan.batch *= group;
  plan.micro_batches *= group;
  return plan;
}

std::vector<float> weights_after(const Plan& plan, std::uint64_t interleaving) {
  const auto job = job_of(plan);
  TestHost host(job, interleaving);
  observe_all(host, job);
  return floats_of(host.run().weights);
}

/// The samples that each worker has computed.
struct Computed final : sim::Observer {
  void on_event(Instant, Address, const Event& event) override {
    if (const auto* done = event.as<event::StepFinished>()) samples[done->worker] += done->samples;
  }
  std::map<WorkerId, std::int64_t> samples;
};

/// Messages of one kind to an address.
template <class T>
struct CountedMessages final : sim::Observer {
  void on_sent(Instant, const sim::Letter& letter) override {
    if (letter.as<T>()) ++to[letter.to()];
  }
  std::map<Address, int> to;
};

}  // namespace

TEST_CASE("a host group equals one worker with its batches as micro-batches, bit for bit",
          "[group]") {
  // Each round has whole batches: a short share is divided evenly among the workers of the group,
  // and into micro-batches of the usual size by one worker.
  for (const auto& [group, batch] : {std::pair(2u, 5u), std::pair(3u, 4u), std::pair(5u, 4u)})
    for (const std::uint32_t groups : {1u, 2u}) {
      const Plan plan = grouped_plan(groups, group, batch);
      CAPTURE(group, groups);
      const auto weights = weights_after(ungrouped(plan), 1);
      for (std::uint64_t interleaving = 1; interleaving < 4; ++interleaving)
        CHECK(same_bits(weights_after(plan, interleaving), weights));
    }
}

TEST_CASE("a transformer with tied weights trains the same in a host group", "[group]") {
  Plan plan = text_plan();
  plan.consistency = plan::Bsp{};
  plan.workers = 3;
  plan.batch = 4;
  plan.aggregate = plan::GroupsOf{3};
  CHECK(same_bits(weights_after(plan, 1), weights_after(ungrouped(plan), 1)));
}

TEST_CASE("a group whose workers have micro-batches trains nearly the same weights", "[group]") {
  Plan plan = grouped_plan(2, 2, 6);
  plan.micro_batches = 3;
  const auto weights = weights_after(plan, 1), expected = weights_after(ungrouped(plan), 1);
  REQUIRE(weights.size() == expected.size());
  for (std::size_t i = 0; i < weights.size(); ++i)
    CHECK(weights[i] == Approx(expected[i]).margin(1e-5));
}

TEST_CASE("only the lead of a group pulls and pushes, and every worker computes", "[group]") {
  const auto job = job_of(grouped_plan(2, 3, 2));
  TestHost host(job, 4);
  const auto computed = std::make_shared<Computed>();
  const auto weights = std::make_shared<CountedMessages<msg::Weights>>();
  host.observe(computed);
  host.observe(weights);
  const RunTotals totals = host.run();
  CHECK(totals.end.samples_trained == 120);
  std::int64_t samples = 0;
  for (std::uint32_t i = 0; i < 6; ++i) {
    CHECK(computed->samples[WorkerId(i)] >= 15);
    CHECK(totals.workers[i].samples == static_cast<std::uint64_t>(computed->samples[WorkerId(i)]));
    CHECK((weights->to[worker(i)] > 0) == (i % 3 == 0));
    samples += computed->samples[WorkerId(i)];
  }
  CHECK(samples == 120);
  CHECK(totals.last.samples == 120);
  CHECK(totals.last.iterations == 20);
}

TEST_CASE("codecs, limits of norms and batches by speed work in groups", "[group]") {
  for (const bool limits_norm : {false, true})
    for (const auto& codec :
         {plan::Codec(plan::NoCodec{}), plan::Codec(plan::Int8{}), plan::Codec(plan::TopK{0.3})}) {
      Plan plan = grouped_plan(2, 2, 3);
      plan.compress.push = codec;
      plan.balance = plan::Balance::by_speed;
      if (limits_norm) plan.optimizer.clip_norm = 0.3;
      CAPTURE(limits_norm, codec.index());
      const auto job = job_of(plan);
      TestHost host(job, 5);
      observe_all(host, job);
      CHECK(host.run().end.samples_trained == 120);
    }
}

TEST_CASE("a limited norm is that of the group's gradient", "[group]") {
  Plan plan = grouped_plan(2, 3, 2);
  plan.compress.push = plan::TopK{1};  // pushes are limited before the encoding
  plan.optimizer.clip_norm = 0.1;
  CHECK(same_bits(weights_after(plan, 1), weights_after(ungrouped(plan), 1)));
}

TEST_CASE("every sample is trained once when workers of groups are lost", "[group]") {
  for (std::uint64_t seed = 100; seed < 160; ++seed) {
    CAPTURE(seed);
    const auto job = job_of(grouped_plan(3, 2, 2));
    TestHost host(
        job, seed,
        {.kill_one_in = 900, .suspect_one_in = 700, .break_link_one_in = 90, .workers_to_keep = 6});
    observe_all(host, job);
    CHECK(host.run().end.samples_trained == 120);
  }
}

TEST_CASE("the loss of a worker ends its group, and the samples go to the others", "[group]") {
  for (const std::uint32_t lost : {2u, 3u}) {
    CAPTURE(lost);
    const auto job = job_of(grouped_plan(2, 2, 2));
    TestHost host(job, 7);
    observe_all(host, job);
    REQUIRE(host.run_some(150));
    host.kill(worker(lost));
    const RunTotals totals = host.run();
    CHECK(totals.end.samples_trained == 120);
    CHECK(totals.workers[2].end.find(concat("worker ", lost)) != std::string::npos);
    CHECK(totals.workers[0].end.empty());
  }
}

TEST_CASE("a lost connection in a group begins a new session", "[group]") {
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    CAPTURE(seed);
    const auto job = job_of(grouped_plan(1, 3, 2));
    TestHost host(job, seed);
    observe_all(host, job);
    REQUIRE(host.run_some(60 + static_cast<int>(seed)));
    const auto starts = std::make_shared<CountedMessages<msg::Start>>();
    host.observe(starts);
    host.break_link(worker(0), worker(2));
    CHECK(host.run().end.samples_trained == 120);
    for (std::uint32_t i = 0; i < 3; ++i) CHECK(starts->to[worker(i)] > 0);
  }
}

TEST_CASE("messages of other groups, and gradients that do not fit, are refused", "[group]") {
  const auto job = job_of(grouped_plan(2, 2, 2));
  struct Refusals final : sim::Observer {
    void on_sent(Instant, const sim::Letter& letter) override {
      if (const auto* refused = letter.as<msg::Refused>())
        if (refused->reason == msg::Refused::Reason::malformed) texts.push_back(refused->text);
    }
    std::vector<std::string> texts;
  };
  const auto refusals_of = [&](Address from, Address to, Body body) {
    TestHost host(job, 7);
    const auto refusals = std::make_shared<Refusals>();
    host.observe(refusals);
    REQUIRE(host.run_some(120));
    host.inject(from, to, encode({.session = Session(1), .body = std::move(body)}));
    try {
      while (host.run_some(100)) {
      }
    } catch (const std::exception&) {  // the refused sender may be the only worker of its group
    }
    return refusals->texts;
  };
  const auto other = refusals_of(worker(2), worker(1), msg::GroupEnd{Iteration(3)});
  REQUIRE_FALSE(other.empty());
  CHECK(other.front().find("which is not the lead of this host group") != std::string::npos);
  const auto stranger = refusals_of(worker(3), worker(0), msg::GroupGradient{Iteration(3), 0, {}});
  REQUIRE_FALSE(stranger.empty());
  CHECK(stranger.front().find("which is not in this host group") != std::string::npos);
  const auto early = refusals_of(worker(1), worker(0), msg::GroupGradient{Iteration(900), 0, {}});
  REQUIRE_FALSE(early.empty());
  CHECK(early.front().find("not the next part") != std::string::npos);
  msg::GroupShare share{.iteration = Iteration(900), .begin = 0, .end = 2};
  const auto late = refusals_of(worker(1), worker(0), msg::GroupDiverged{Iteration(900), 0, ""});
  REQUIRE_FALSE(late.empty());
  CHECK(late.front().find("group diverged: not expected") != std::string::npos);
  const auto lacking = refusals_of(worker(0), worker(1), share);
  REQUIRE_FALSE(lacking.empty());
  CHECK(lacking.front().find("group share") != std::string::npos);
  for (const Block& block : job->layout->blocks())
    share.blocks.push_back(
        {block.id, Version(0), DType::f32, Shape{block.floats}, Blob::floats(block.floats)});
  share.end = 3;  // a group has four samples, and a worker two of them
  const auto oversized = refusals_of(worker(0), worker(1), share);
  REQUIRE_FALSE(oversized.empty());
  CHECK(oversized.front().find("beyond what the plan allows") != std::string::npos);
  share.end = 2;
  share.loss_scale = 1024;
  const auto scaled = refusals_of(worker(0), worker(1), share);
  REQUIRE_FALSE(scaled.empty());
  CHECK(scaled.front().find("beyond what the plan allows") != std::string::npos);
}

TEST_CASE("a part is complete when every worker has sent it, in order", "[group]") {
  const auto job = job_of(grouped_plan(1, 2, 2));
  const std::vector<std::vector<int>> layers = {{4}, {2}};
  GroupGradients gradients(*job, WorkerId(0), layers, 2);
  const auto part = [&](std::uint32_t number) {
    std::vector<msg::BlockData> blocks;
    for (const BlockId id : gradients.blocks(number)) {
      const std::int64_t floats = job->layout->block(id).floats;
      blocks.push_back({id, Version(1), DType::f32, Shape{floats}, Blob::floats(floats)});
    }
    return blocks;
  };
  REQUIRE_FALSE(part(0).empty());
  CHECK_FALSE(gradients.add(1, 1, part(1)));  // part 0 comes first
  CHECK_FALSE(gradients.add(1, 0, part(1)));  // blocks of another part
  CHECK(gradients.add(1, 0, part(0)));
  CHECK_FALSE(gradients.add(1, 0, part(0)));
  CHECK_FALSE(gradients.take());
  CHECK(gradients.add(0, 0, part(0)));
  REQUIRE(gradients.take());
  CHECK_FALSE(gradients.take());
  CHECK(gradients.add(0, 1, part(1)));
  CHECK_FALSE(gradients.is_complete());
  CHECK(gradients.add(1, 1, part(1)));
  CHECK(gradients.is_complete());
  CHECK(gradients.take());
  CHECK_FALSE(gradients.take());
  CHECK_FALSE(gradients.add(0, 2, {}));
}

}  // namespace leeway::test
