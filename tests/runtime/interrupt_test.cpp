// Ctrl-C, with one run and with concurrent runs.
#include "runtime/interrupt.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <optional>
#include <thread>
#include <vector>

#include "leeway.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {
namespace {

/// Ignores SIGINT while it lives, so that the signals of these tests cannot end the test program.
class IgnoredInterrupt {
 public:
  IgnoredInterrupt() { std::signal(SIGINT, SIG_IGN); }
  ~IgnoredInterrupt() { std::signal(SIGINT, SIG_DFL); }
  /// True if no guard has replaced the handler.
  bool is_installed() const {
    struct sigaction now = {};
    sigaction(SIGINT, nullptr, &now);
    return now.sa_handler == SIG_IGN;
  }
};

}  // namespace

TEST_CASE("a signal interrupts all overlapping guards, including later ones, and no others") {
  const IgnoredInterrupt ignored;
  std::optional<InterruptGuard> first, second, third;
  first.emplace();
  second.emplace();
  CHECK_FALSE(first->interrupted());
  CHECK_FALSE(ignored.is_installed());
  std::raise(SIGINT);
  CHECK(first->interrupted());
  CHECK(second->interrupted());
  first.reset();
  third.emplace();
  CHECK(second->interrupted());
  CHECK(third->interrupted());
  second.reset();
  third.reset();
  CHECK(ignored.is_installed());
  const InterruptGuard next;
  CHECK_FALSE(next.interrupted());
}

TEST_CASE("the first guard may be destroyed first") {
  const IgnoredInterrupt ignored;
  std::optional<InterruptGuard> first, second;
  first.emplace();
  second.emplace();
  first.reset();
  CHECK_FALSE(ignored.is_installed());
  std::raise(SIGINT);
  CHECK(second->interrupted());
  second.reset();
  CHECK(ignored.is_installed());
}

TEST_CASE("one signal interrupts all concurrent runs") {
  const IgnoredInterrupt ignored;
  Plan plan = tiny_plan();
  plan.stop.epochs = 1e6;
  for (const bool simulated : {true, false}) {
    if (simulated) plan.simulated = plan::World{};
    if (!simulated) plan.simulated.reset();
    std::vector<Result> results(3);
    {
      const InterruptGuard guard;  // keeps a signal that arrives before the runs' guards exist
      std::vector<std::jthread> threads;
      for (auto& result : results)
        threads.emplace_back([&] { result = run(plan, {.quiet = true}); });
      std::raise(SIGINT);
    }
    for (const auto& result : results) {
      INFO(result.error);
      CHECK(result.exit_code == 130);
    }
    CHECK(ignored.is_installed());
  }
}

TEST_CASE("a signal while the data are loaded ends the run before it starts") {
  const IgnoredInterrupt ignored;
  Plan plan = tiny_plan();
  const plan::DataSource source = plan.data;
  register_data("interrupting", [source](std::uint64_t seed) {
    std::raise(SIGINT);
    return load_data(source, seed);
  });
  plan.data = plan::CustomData{"interrupting"};
  const Result result = run(plan, {.quiet = true});
  CHECK(result.exit_code == 130);
  CHECK(result.error == "interrupted before the start");
  CHECK_FALSE(result.ran);
  CHECK(ignored.is_installed());
}

TEST_CASE("a signal after the end of a run sets the exit code, and the result is complete") {
  const IgnoredInterrupt ignored;
  const Result result = run(tiny_plan(), {.print = [](const std::string&) { std::raise(SIGINT); }});
  CHECK(result.exit_code == 130);
  CHECK(result.totals.end.reason == msg::RunEnded::Reason::finished);
  CHECK(result.samples_trained == 120);
  CHECK(ignored.is_installed());
}

TEST_CASE("concurrent simulated runs take the same steps as single ones") {
  std::vector<Plan> plans;
  for (const auto& policy : {plan::Consistency(plan::Bsp{}), plan::Consistency(plan::Ssp{2}),
                             plan::Consistency(plan::Asp{}), plan::Consistency(plan::Backup{1})}) {
    Plan plan = tiny_plan();
    plan.consistency = policy;
    plan.simulated = plan::World{};
    plan.stop.epochs = 20;
    plans.push_back(plan);
  }
  std::vector<Result> concurrent(plans.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < plans.size(); ++i)
      threads.emplace_back([&, i] { concurrent[i] = run(plans[i], {.quiet = true}); });
  }
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Result single = run(plans[i], {.quiet = true});
    REQUIRE(single.ok());
    REQUIRE(concurrent[i].ok());
    CHECK(concurrent[i].protocol_hash == single.protocol_hash);
    CHECK(concurrent[i].test_loss == single.test_loss);
  }
}

}  // namespace leeway::test
