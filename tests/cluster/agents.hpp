#pragma once
// Agents and a program with a job for them, in one process, on in-memory meshes.
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <thread>

#include "cluster/agent_process.hpp"
#include "cluster/driver.hpp"
#include "tests/support/memory_mesh.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {

inline OpenMesh on(const std::shared_ptr<MemoryNet>& net) {
  return [net](const MeshOptions& options, MeshEvents events) -> Expected<std::unique_ptr<Mesh>> {
    return std::unique_ptr<Mesh>(new MemoryMesh(net, options, std::move(events)));
  };
}

/// An agent on its own thread.
class RunningAgent {
 public:
  explicit RunningAgent(const std::shared_ptr<MemoryNet>& net, const std::string& join = {},
                        std::shared_ptr<Files> its_disk = shared_disk(),
                        AgentProcessOptions options = {}) {
    options.disk = std::move(its_disk);
    options.open = on(net);
    options.agent.join = join;
    options.agent.join_wait = leeway::milliseconds(100);
    options.agent.program_silence = leeway::milliseconds(300);
    options.agent.leave_limit = seconds(60);
    options.log = [this](LogLevel, const std::string& line) {
      std::lock_guard lock(mutex_);
      log_ += line + '\n';
    };
    auto agent = AgentProcess::open(std::move(options));
    REQUIRE(agent);
    name_ = (*agent)->name();
    ended_ = std::async(std::launch::async, [this, agent = std::move(*agent)] {
      return agent->run([this] { return interrupted_.load(); });
    });
  }
  ~RunningAgent() {
    interrupt();
    if (ended_.valid()) ended_.wait();
  }
  const std::string& name() const { return name_; }
  void interrupt() { interrupted_ = true; }
  bool has_ended() const {
    return ended_.wait_for(std::chrono::milliseconds(0)) == std::future_status::ready;
  }
  Status outcome() { return ended_.get(); }
  std::string log() const {
    std::lock_guard lock(mutex_);
    return log_;
  }
  bool logs(const std::string& text) const {
    return comes_true([&] { return log().find(text) != std::string::npos; });
  }

 private:
  std::string name_;
  std::atomic<bool> interrupted_ = false;
  mutable std::mutex mutex_;
  std::string log_;
  std::future<Status> ended_;
};

class End final : public Audience {
 public:
  void ended(const RunTotals& totals) override {
    std::lock_guard lock(mutex_);
    totals_ = totals;
  }
  bool has_come() const {
    std::lock_guard lock(mutex_);
    return totals_.has_value();
  }
  const RunTotals& totals() const { return *totals_; }

 private:
  mutable std::mutex mutex_;
  std::optional<RunTotals> totals_;
};

/// A program with a job for agents.
class Program {
 public:
  Program(const std::shared_ptr<MemoryNet>& net, std::vector<std::string> nodes, Plan plan,
          const std::string& place = {})
      : Program(net, std::move(nodes), job_of(plan), place) {}
  Program(const std::shared_ptr<MemoryNet>& net, std::vector<std::string> nodes,
          std::shared_ptr<const Job> job, const std::string& place = {})
      : job_(std::move(job)) {
    DriverOptions options;
    options.nodes = std::move(nodes);
    options.place = place;
    options.who = "the test";
    options.trace = true;
    options.say = [this](const std::string& line) { log += line + '\n'; };
    options.call_limit = options.answer_limit = options.end_limit = seconds(60);
    options.open = on(net);
    auto driver = Driver::open(std::move(options), job_->plan);
    INFO((driver ? "" : driver.error().text));
    REQUIRE(driver);
    driver_ = std::move(*driver);
  }

  std::string prepare() {
    const auto prepared = driver_->prepare(*job_);
    return prepared ? "" : prepared.error().text;
  }
  std::string start() {
    const auto started =
        driver_->start(job_, {&end_},
                       {[this](Address actor, Instant, const Event& event, std::uint64_t) {
                          if (actor.kind == RoleKind::worker) ++handled;
                          if (const auto* range = event.as<event::Trained>())
                            trained += range->end - range->begin;
                          if (!event.as<event::StepFinished>()) return;
                          ++steps;
                          ++steps_of.at(actor.index);
                        },
                        {},
                        [this](std::uint64_t count) { lost += count; }});
    return started ? "" : started.error().text;
  }
  bool poll_until(const std::function<bool()>& condition) {
    return comes_true([&] {
      driver_->poll({});
      return condition();
    });
  }
  const RunTotals& run_to_end() {
    REQUIRE(poll_until([&] { return end_.has_come(); }));
    driver_->finish();
    return end_.totals();
  }
  const RunTotals& run() {
    REQUIRE(prepare() == "");
    REQUIRE(start() == "");
    return run_to_end();
  }
  Driver& driver() { return *driver_; }
  const Job& job() const { return *job_; }
  void vanish() { driver_.reset(); }

  std::atomic<std::int64_t> trained = 0;
  std::atomic<int> steps = 0;
  std::atomic<std::uint64_t> handled = 0, lost = 0;  // events of workers, of all actors
  std::array<std::atomic<int>, 8> steps_of{};        // by worker
  std::string log;

 private:
  std::shared_ptr<const Job> job_;
  End end_;
  std::unique_ptr<Driver> driver_;
};

}  // namespace leeway::test
