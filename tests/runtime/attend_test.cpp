// Waiting for the end of a run that loses its monitor.
#include "runtime/attend.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "tests/checkpoint/resumed_run.hpp"

namespace leeway::test {
namespace {

using Catch::Contains;

struct FullTerminal final : Audience {
  void progress(const Progress& progress) override {
    if (progress.samples_trained > 0) throw std::runtime_error("no space left on the terminal");
  }
  void ended(const RunTotals&) override {}
};

}  // namespace

TEST_CASE("a run that loses its monitor stops with a checkpoint") {
  const bool saves = GENERATE(true, false);
  const Disk disk;
  Plan plan = tiny_plan();
  plan.stop.epochs = 1e6;
  const auto job = saves ? job_with(plan, disk, 1'000'000'000) : job_of(plan);
  std::atomic<std::uint64_t> last{0};
  FullTerminal terminal;
  LocalNode::Options options;
  options.node.placement = *place_actors(0, plan, "");
  options.observers.on_event = [&](Address, Instant, const Event& event, std::uint64_t) {
    if (const auto* written = event.as<event::CheckpointWritten>()) last = written->number;
  };
  LocalNode host(job, {&terminal}, std::move(options));
  host.start();
  StopRequest stop{[] { return false; }, [] {}, {}};
  if (saves) stop.last_checkpoint = [&] { return last.load(); };
  const auto pause = [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return false;
  };
  const Status outcome = wait_for_end(host, pause, stop);
  REQUIRE_FALSE(outcome);
  CHECK_THAT(outcome.error().text, Contains("the monitor ended: no space left on the terminal"));
  CHECK((outcome.error().text.find("checkpoint") != std::string::npos) == saves);
  if (!saves) return;
  CHECK_THAT(outcome.error().text, Contains("; its state is saved in checkpoint 1"));
  CHECK(disk.store->load(1, *job->model));
}

}  // namespace leeway::test
