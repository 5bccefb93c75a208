// Jobs on simulated node agents: what each fault of a node does to a run.
#include "sim/cluster/simulation.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "sim/cluster/node.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::sim {
namespace {

using Catch::Contains;
using test::job_of;
using test::tiny_plan;

constexpr WorkerId kWorker0{0}, kWorker1{1}, kWorker3{3};

constexpr Address node(std::uint32_t number) {
  return {RoleKind::node, number};
}

/// Four workers whose iterations take about a millisecond, for about a second. All shards are on
/// node 1, and workers 1 and 3 on node 2. Silence is noticed after 5 ms, and lasts after 30 ms.
Plan plan_with(std::vector<plan::Fault> faults) {
  Plan plan = tiny_plan();
  plan.workers = 4;
  plan.consistency = plan::Ssp{2};
  plan.stop.epochs = 120;
  plan.simulated = plan::World{.speed = 3e-3, .noise = 0, .jitter = 0.2, .detection_ms = 5};
  plan.simulated->agents = 2;
  plan.simulated->place = "shards=1,workers=1+2";
  plan.faults = std::move(faults);
  return plan;
}

struct Observed {
  RunTotals totals;
  std::string stuck;
  bool is_cut_short = false;
  std::map<WorkerId, std::string> evicted;
  std::map<std::pair<WorkerId, std::size_t>, int> events;  // of workers, by index of the type
  std::map<WorkerId, Instant> first;                       // event of each worker
  std::uint64_t protocol = 0;

  template <class T>
  int count(WorkerId worker) const {
    const auto found = events.find({worker, Event(T{}).index()});
    return found == events.end() ? 0 : found->second;
  }
};

struct Listener final : Audience {
  explicit Listener(Observed& to) : observed(to) {}
  void evicted(WorkerId worker, const msg::Evicted& evicted) override {
    observed.evicted[worker] = evicted.reason;
  }
  void ended(const RunTotals&) override {}
  Observed& observed;
};

Observed run(const Plan& plan) {
  const Status valid = validate(plan);
  REQUIRE((valid ? "" : valid.error().text) == "");
  Observed observed;
  Listener listener(observed);
  ClusterSimulation simulation(job_of(plan), {&listener},
                               {.on_event = [&](Address actor, Instant at, const Event& event) {
                                 if (actor.kind != RoleKind::worker) return;
                                 observed.first.try_emplace(WorkerId(actor.index), at);
                                 ++observed.events[{WorkerId(actor.index), event.index()}];
                               }});
  observed.stuck = simulation.run();
  observed.is_cut_short = simulation.is_cut_short();
  observed.protocol = simulation.trace().protocol();
  if (simulation.ended()) observed.totals = simulation.totals();
  return observed;
}

/// Runs to the end, with every sample trained once; the checkers watch.
Observed run_well(const Plan& plan) {
  Observed observed = run(plan);
  INFO(observed.totals.end.text);
  CHECK(observed.stuck == "");
  CHECK(observed.totals.end.reason == msg::RunEnded::Reason::finished);
  CHECK(observed.totals.end.samples_trained == static_cast<std::uint64_t>(plan.stop.epochs * 60));
  return observed;
}

std::string refusal(plan::Fault fault) {
  const Status valid = validate(plan_with({std::move(fault)}));
  return valid ? "" : valid.error().text;
}

}  // namespace

TEST_CASE("a bsp run on simulated nodes gives the weights of one process, bit for bit") {
  Plan plan = plan_with({});
  plan.consistency = plan::Bsp{};
  plan.batch = 3;
  plan.stop.epochs = 10;
  const auto there = run_well(plan);
  plan.simulated = plan::World{};
  Simulation here(job_of(plan), {});
  REQUIRE(here.run() == "");
  REQUIRE(there.totals.weights.size() == here.totals().weights.size());
  for (std::size_t i = 0; i < there.totals.weights.size(); ++i)
    CHECK(std::ranges::equal(there.totals.weights[i].bytes(), here.totals().weights[i].bytes()));
}

TEST_CASE("two simulations of one cluster take the same steps") {
  const Plan plan = plan_with({{node(2), 0.05, 0, plan::Crash{0.02}}});
  CHECK(run_well(plan).protocol == run_well(plan).protocol);
}

TEST_CASE("when a simulated node dies, its workers are evicted and the others finish") {
  const auto observed = run_well(plan_with({{node(2), 0.05, 0, plan::Crash{}}}));
  CHECK_THAT(observed.evicted.at(kWorker1), Contains("node2:4242 is gone: its process has ended"));
  CHECK(observed.evicted.contains(kWorker3));
  CHECK_FALSE(observed.evicted.contains(kWorker0));
}

TEST_CASE("a node that starts again takes its former workers") {
  const auto lost = run_well(plan_with({{node(2), 0.05, 0, plan::Crash{}}}));
  const auto back = run_well(plan_with({{node(2), 0.05, 0, plan::Crash{0.02}}}));
  CHECK(back.count<event::StepFinished>(kWorker1) > 2 * lost.count<event::StepFinished>(kWorker1));
}

TEST_CASE("a node that joins replaces one that has lost power") {
  // It is frozen far beyond the end of the run, and found free afterwards.
  const plan::Fault power{node(2), 0.05, 0, plan::Freeze{2}};
  const auto lost = run_well(plan_with({power}));
  const auto replaced = run_well(plan_with({power, {node(3), 0.06, 0, plan::Joins{}}}));
  CHECK_THAT(lost.evicted.at(kWorker1), Contains("no sign of life"));
  CHECK(replaced.count<event::StepFinished>(kWorker1) >
        2 * lost.count<event::StepFinished>(kWorker1));
}

TEST_CASE("workers of a node that is frozen for a while rejoin") {
  const auto observed = run_well(plan_with({{node(2), 0.05, 0, plan::Freeze{0.015}}}));
  CHECK(observed.evicted.contains(kWorker1));
  CHECK(observed.count<event::StepFinished>(kWorker1) > 200);
}

TEST_CASE("two nodes that lose each other for good find each other again") {
  const auto observed = run_well(plan_with({{node(2), 0.05, 0, plan::Breaks{node(1), 0.1}}}));
  CHECK_THAT(observed.evicted.at(kWorker1), Contains("shard 0 on node node1:4242 cannot be reached "
                                                     "from node node2:4242"));
  CHECK(observed.count<event::StepFinished>(kWorker1) > 200);
}

TEST_CASE("a short break of a connection goes unnoticed") {
  const auto observed = run_well(plan_with({{node(2), 0.05, 0, plan::Breaks{node(1), 0.003}},
                                            {node(2), 0.1, 0, plan::Breaks{node(0), 0.003}}}));
  CHECK(observed.evicted.empty());
  CHECK(observed.protocol != run_well(plan_with({})).protocol);
}

TEST_CASE("packets lost in one direction beyond the silence limit end no worker for good") {
  const bool from = GENERATE(false, true);
  const auto observed =
      run_well(plan_with({{node(from ? 2 : 0), 0.05, 0, plan::Silence{node(from ? 0 : 2), 0.03}}}));
  CHECK(observed.evicted.contains(kWorker1) == from);
  CHECK(observed.count<event::StepFinished>(kWorker1) > 200);
}

TEST_CASE("a node that does not hear the program for too long ends the job, and is called again") {
  const auto lost = run_well(plan_with({{node(0), 0.05, 0, plan::Silence{node(2), 10}}}));
  const auto back = run_well(plan_with({{node(0), 0.05, 0, plan::Silence{node(2), 0.1}}}));
  CHECK(lost.evicted.contains(kWorker1));
  CHECK(back.count<event::StepFinished>(kWorker1) > 2 * lost.count<event::StepFinished>(kWorker1));
}

TEST_CASE("the workers of a node that leaves finish their iterations") {
  const auto observed = run_well(plan_with({{node(2), 0.05, 0, plan::Leaves{}}}));
  CHECK(observed.evicted.at(kWorker1) == "it was asked to leave");
  CHECK(observed.totals.end.partial_pushes == 0);
  CHECK(observed.count<event::StepStarted>(kWorker1) ==
        observed.count<event::StepFinished>(kWorker1));
}

TEST_CASE("a worker that is placed later waits for a node that joins") {
  Plan plan = plan_with({{node(3), 0.05, 0, plan::Joins{}}});
  plan.simulated->place += ",worker3=later";
  const auto observed = run_well(plan);
  CHECK(observed.first.at(kWorker3) - observed.first.at(kWorker1) > milliseconds(50));
  CHECK(observed.count<event::StepFinished>(kWorker3) > 100);
}

TEST_CASE("a node joins although it cannot reach another node, which is stopped") {
  const double stopped_for = GENERATE(0.06, 2.);
  Plan plan =
      plan_with({{node(3), 0.05, 0, plan::Freeze{stopped_for}}, {node(4), 0.06, 0, plan::Joins{}}});
  plan.simulated->agents = 3;
  plan.simulated->place += ",worker3=later";
  const auto observed = run_well(plan);
  CHECK(observed.count<event::StepFinished>(kWorker3) > 50);
}

TEST_CASE("the loss of a simulated node with a shard fails the run, and the nodes are free") {
  const auto observed = run(plan_with({{node(1), 0.05, 0, plan::Crash{}}}));
  CHECK(observed.stuck == "");
  CHECK(observed.totals.end.reason == msg::RunEnded::Reason::failed);
  CHECK_THAT(observed.totals.end.text, Contains("shard 0 ended: node node1:4242 is gone"));
}

TEST_CASE("when the program of a simulated cluster is killed, its nodes become free") {
  const auto observed = run(plan_with({{node(0), 0.05, 0, plan::Crash{}}}));
  CHECK_THAT(observed.stuck, Contains("its job has ended on all nodes"));
  CHECK(observed.is_cut_short);
}

TEST_CASE("a node that is lost before the start keeps the job from starting, unless it is spared") {
  Plan plan = plan_with({{node(2), 1e-5, 0, plan::Crash{0.02}}});
  plan.simulated->faults_from = plan::World::FaultsFrom::call;
  const auto observed = run(plan);
  CHECK_THAT(observed.stuck, Contains("1 of 2 nodes cannot take part\n  node2:4242: "));
  CHECK(observed.is_cut_short);
  CHECK(observed.count<event::StepStarted>(kWorker0) == 0);
  plan.simulated->at_least = 1;
  CHECK(run_well(plan).count<event::StepFinished>(kWorker1) > 100);
}

TEST_CASE("two programs call the same nodes: only one of them gets them") {
  Plan plan = plan_with({{node(3), 0., 0, plan::Competes{0.05}}});
  SECTION("a program whose nodes another one has reserved does not start") {
    plan.simulated->faults_from = plan::World::FaultsFrom::call;
    plan.faults.push_back({node(0), 0., 0, plan::Freeze{0.002}});  // the other one is faster
    const auto observed = run(plan);
    CHECK_THAT(observed.stuck, Contains("is busy: it has been hosting"));
    CHECK(observed.is_cut_short);
  }
  SECTION("nodes refuse another program, and no worker is evicted") {
    const auto observed = run_well(plan);
    CHECK(observed.evicted.empty());
  }
  SECTION("a program takes a lost node back that another one has reserved meanwhile") {
    // The program does not call the node while it is stopped.
    plan.faults = {{node(2), 0.05, 0, plan::Crash{0.001}},
                   {node(0), 0.0505, 0, plan::Freeze{0.003}},
                   {node(3), 0.0515, 0, plan::Competes{0.02}}};
    int reserved = 0;  // by the other program before this one
    for (plan.seed = 1; plan.seed <= 8; ++plan.seed) {
      ClusterSimulation simulation(job_of(plan), {});
      CHECK(simulation.run() == "");
      CHECK(simulation.node(2).jobs_since(Instant{}) >= 1);
      reserved += simulation.node(2).jobs_since(Instant{}) == 2 ? 1 : 0;
      CHECK(run_well(plan).count<event::StepFinished>(kWorker1) > 100);
    }
    CHECK(reserved > 0);
  }
}

TEST_CASE("faults of workers happen on their simulated nodes") {
  const auto observed = run_well(plan_with({{address_of(kWorker1), 0.05, 0, plan::Crash{0.01}},
                                            {address_of(kWorker3), 0.05, 0, plan::Leaves{}}}));
  CHECK(observed.evicted.at(kWorker1) == "fault of the plan: crash");
  CHECK(observed.evicted.at(kWorker3) == "it was asked to leave");
  CHECK(observed.count<event::StepFinished>(kWorker1) > 200);
}

TEST_CASE(
    "in a simulated cluster, nodes with the replicas of a shard are lost one after the other") {
  Plan plan = plan_with({{node(1), 0.05, 0, plan::Crash{0.01}},
                         {node(2), 0.2, 0, plan::Crash{0.01}},
                         {node(3), 0.35, 0, plan::Freeze{0.1}}});
  plan.replicas = 2;
  plan.simulated->agents = 3;
  plan.simulated->place = "shards=1,standbys=2,workers=0";
  run_well(plan);
}

TEST_CASE("in a simulated cluster, a node with a shard leaves when its standby has taken over") {
  Plan plan = plan_with({{node(1), 0.05, 0, plan::Leaves{}}});
  plan.replicas = 2;
  plan.simulated->agents = 3;
  plan.simulated->place = "shards=1,standbys=2,workers=0";
  run_well(plan);
}

TEST_CASE(
    "a node leaves only when its standby, which is taking over slowly, has handed the shard on") {
  // The workers keep the one core of node 2 busy for longer than a leaving node waits for them.
  Plan plan = plan_with({{node(1), 0.5, 0, plan::Crash{0.2}}, {node(2), 0.502, 0, plan::Leaves{}}});
  plan.replicas = 2;
  plan.stop.epochs = 6;
  plan.simulated->speed = 5e-5;
  plan.simulated->agents = 3;
  plan.simulated->place = "shards=1,standbys=2,workers=2,worker0=0";
  run_well(plan);
}

TEST_CASE("a launch that happens twice is a violation") {
  const auto observers = std::make_shared<Observers>();
  Launches launches(observers);
  launches.start(worker(1), 1);
  launches.begin(worker(1), 2, 1, {});
  CHECK_THROWS_WITH(launches.begin(worker(1), 2, 2, {}), Contains("launch 2 follows launch 2"));
}

TEST_CASE("faults of nodes name nodes, and only those of a simulated cluster") {
  CHECK_THAT(
      refusal({node(7), 1.0, 0, plan::Crash{}}),
      Contains("faults[0].actor: there is no node 7; give node0 for the program, or node1 to "
               "node2"));
  CHECK_THAT(refusal({node(2), 1.0, 0, plan::Joins{}}), Contains("give node3 to node"));
  CHECK_THAT(refusal({node(0), 1.0, 0, plan::Leaves{}}), Contains("node 0 cannot have this fault"));
  CHECK_THAT(refusal({node(0), 1.0, 0, plan::Crash{1}}), Contains("node 0 cannot be restarted"));
  CHECK_THAT(refusal({node(2), 1.0, 0, plan::Competes{1}}), Contains("give node3 to node"));
  CHECK_THAT(refusal({address_of(kWorker1), 1.0, 0, plan::Competes{1}}),
             Contains("worker 1 is no program"));
  CHECK_THAT(refusal({address_of(kWorker1), 1.0, 0, plan::Breaks{shard(0), 1}}),
             Contains("worker 1 has no network of its own"));
  CHECK_THAT(refusal({node(2), 1.0, 0, plan::Breaks{shard(0), 1}}),
             Contains("give two nodes or two actors"));
  CHECK_THAT(refusal({kScheduler, 1.0, 0, plan::Slow{1, 1}}),
             Contains("a simulated cluster cannot have this fault"));
  Plan plan = plan_with({{node(1), 1.0, 0, plan::Crash{}}});
  plan.simulated->agents = 0;
  const Status valid = validate(plan);
  REQUIRE_FALSE(valid);
  CHECK_THAT(valid.error().text, Contains("give it some, as in --world agents=3"));
  CHECK_THAT(check_place(plan).error().text, Contains("needs node agents"));
}

}  // namespace leeway::sim
