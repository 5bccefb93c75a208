// compare_runs() finds the first step at which two runs differ.
#include "sim/determinism.hpp"

#include <catch2/catch.hpp>

#include "messages/envelope.hpp"
#include "sim/simulator.hpp"

namespace leeway::sim {
namespace {

/// Sends ten messages to the monitor, one per second. A function gives the content of the sixth.
class Sender final : public Role {
 public:
  using Sixth = std::function<Iteration()>;
  explicit Sender(Sixth sixth) : sixth_(std::move(sixth)) {}
  void on_start(Outbox& out) override { out.after(seconds(1), 0); }
  void on_message(Address, const Message&, Outbox&) override {}
  void on_timer(TimerToken token, Outbox& out) override {
    const Iteration iteration = token == 5 ? sixth_() : Iteration(static_cast<std::int64_t>(token));
    out.send(kMonitor, encode({.body = msg::NoData{iteration}}));
    if (token < 9) out.after(seconds(1), token + 1);
  }

 private:
  Sixth sixth_;
};

class Receiver final : public Role {
 public:
  void on_message(Address, const Message&, Outbox&) override {}
};

TracedRun run_with(Sender::Sixth sixth) {
  return [sixth = std::move(sixth)](const Trace::Options& trace) {
    Simulator simulator({.trace = trace});
    simulator.add(kMonitor, std::make_shared<Receiver>());
    simulator.add(kScheduler, std::make_shared<Sender>(sixth));
    simulator.start();
    while (simulator.step()) {
    }
    return simulator.trace();
  };
}

}  // namespace

TEST_CASE("runs that depend only on their seed do not differ") {
  CHECK_FALSE(compare_runs(run_with([] { return Iteration(5); })));
}

TEST_CASE("a counter shared by runs is found, with the step in words") {
  std::int64_t counter = 0;
  const auto difference = compare_runs(run_with([&] { return Iteration(++counter); }));
  REQUIRE(difference);
  CHECK(difference->step == 11);  // a timer and a delivery per message, counted from 0
  CHECK(difference->first != difference->second);
  CHECK(difference->first.find("scheduler -> monitor: no data") != std::string::npos);
}

TEST_CASE("a dependence on a pointer value is found") {
  std::vector<std::unique_ptr<int>> kept;  // keeps all addresses distinct
  const auto difference = compare_runs(run_with([&] {
    kept.push_back(std::make_unique<int>());
    return Iteration(
        static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(kept.back().get())));
  }));
  REQUIRE(difference);
  CHECK(difference->step == 11);
}

TEST_CASE("a run that ends early differs at its end") {
  int runs = 0;
  const auto difference = compare_runs([&](const Trace::Options& options) {
    Trace trace(options);
    trace.timer({1}, kScheduler, 1);
    if (++runs % 2 == 0) trace.timer({2}, kMonitor, 7);
    return trace;
  });
  REQUIRE(difference);
  CHECK(difference->step == 1);
  CHECK(difference->first == "the run has ended");
  CHECK(difference->second == "0.000000002 s  monitor: timer 7");
}

TEST_CASE("a difference that moves is followed, and one that disappears is reported") {
  const auto differing_at = [](std::vector<int> places) {
    int runs = 0;
    return [places, runs](const Trace::Options& options) mutable {
      Trace trace(options);
      const int pair = runs++ / 2;
      for (int step = 0; step < 8; ++step) {
        const bool here = pair < static_cast<int>(places.size()) &&
                          step == places[static_cast<std::size_t>(pair)] && runs % 2 == 0;
        trace.timer({step}, kScheduler, here ? 99 : 0);
      }
      return trace;
    };
  };
  const auto moved = compare_runs(differing_at({2, 4, 4}));
  REQUIRE(moved);
  CHECK(moved->step == 4);
  CHECK(moved->second == "0.000000004 s  scheduler: timer 99");
  const auto once = compare_runs(differing_at({3}));
  REQUIRE(once);
  CHECK(once->step == 3);
  CHECK(once->first == "the first difference moved each time the runs were repeated");
}

}  // namespace leeway::sim
