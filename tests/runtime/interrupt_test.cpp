// Ctrl-C, with one run under way and with many.
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

/// Ignores SIGINT while it lives, so that nothing here can end the tests.
class Ignored {
 public:
  Ignored() { std::signal(SIGINT, SIG_IGN); }
  ~Ignored() { std::signal(SIGINT, SIG_DFL); }
  /// Whether it is still ignored: all guards are gone.
  bool there() const {
    struct sigaction now = {};
    sigaction(SIGINT, nullptr, &now);
    return now.sa_handler == SIG_IGN;
  }
};

}  // namespace

TEST_CASE("a signal interrupts all guards that overlap, later ones as well, and no others") {
  const Ignored ignored;
  std::optional<InterruptGuard> first, second, third;
  first.emplace();
  second.emplace();
  CHECK_FALSE(first->interrupted());
  CHECK_FALSE(ignored.there());
  std::raise(SIGINT);
  CHECK(first->interrupted());
  CHECK(second->interrupted());
  first.reset();
  third.emplace();
  CHECK(second->interrupted());
  CHECK(third->interrupted());
  second.reset();
  third.reset();
  CHECK(ignored.there());
  const InterruptGuard next;
  CHECK_FALSE(next.interrupted());
}

TEST_CASE("the guard that is made first may go first") {
  const Ignored ignored;
  std::optional<InterruptGuard> first, second;
  first.emplace();
  second.emplace();
  first.reset();
  CHECK_FALSE(ignored.there());
  std::raise(SIGINT);
  CHECK(second->interrupted());
  second.reset();
  CHECK(ignored.there());
}

TEST_CASE("one signal ends all runs that are under way, in several threads") {
  const Ignored ignored;
  Plan plan = tiny_plan();
  plan.stop.epochs = 1e6;
  for (const bool simulated : {true, false}) {
    if (simulated) plan.simulated = plan::World{};
    if (!simulated) plan.simulated.reset();
    std::vector<Result> results(3);
    {
      const InterruptGuard guard;  // so that the signal cannot come too early
      std::vector<std::jthread> threads;
      for (auto& result : results)
        threads.emplace_back([&] { result = run(plan, {.quiet = true}); });
      std::raise(SIGINT);
    }
    for (const auto& result : results) {
      INFO(result.error);
      CHECK(result.exit_code == 130);
    }
    CHECK(ignored.there());
  }
}

TEST_CASE("a signal that comes when a run is over is passed on, and the result is whole") {
  const Ignored ignored;
  const Result result = run(tiny_plan(), {.print = [](const std::string&) { std::raise(SIGINT); }});
  CHECK(result.exit_code == 130);
  CHECK(result.totals.end.reason == msg::RunEnded::Reason::finished);
  CHECK(result.samples_trained == 120);
  CHECK(ignored.there());
}

TEST_CASE("simulated runs in several threads at once take the steps that they take alone") {
  std::vector<Plan> plans;
  for (const auto& policy : {plan::Consistency(plan::Bsp{}), plan::Consistency(plan::Ssp{2}),
                             plan::Consistency(plan::Asp{}), plan::Consistency(plan::Backup{1})}) {
    Plan plan = tiny_plan();
    plan.consistency = policy;
    plan.simulated = plan::World{};
    plan.stop.epochs = 20;
    plans.push_back(plan);
  }
  std::vector<Result> together(plans.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < plans.size(); ++i)
      threads.emplace_back([&, i] { together[i] = run(plans[i], {.quiet = true}); });
  }
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Result alone = run(plans[i], {.quiet = true});
    REQUIRE(alone.ok());
    REQUIRE(together[i].ok());
    CHECK(together[i].protocol_hash == alone.protocol_hash);
    CHECK(together[i].test_loss == alone.test_loss);
  }
}

}  // namespace leeway::test
