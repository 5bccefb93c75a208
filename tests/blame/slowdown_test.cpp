#include "blame/slowdown.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "blame/replay.hpp"
#include "core/text.hpp"
#include "tests/models/datasets/files.hpp"

namespace leeway::blame {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using test::TemporaryFolder;

/// Builds a trace of two stages: each step has forward, transfer, forward on stage 1, backward,
/// transfer back, backward on stage 0, and at last a collective of all ranks.
class Job {
 public:
  explicit Job(int replicas) {
    trace_.replicas = replicas;
    trace_.stages = 2;
  }
  /// `forward`, `backward`: seconds of a rank.
  template <class Forward>
  void add_step(std::int64_t step, Forward forward) {
    double last = 0;
    std::map<int, double> begin, end;
    for (int replica = 0; replica < trace_.replicas; ++replica) {
      const double f0 = forward(Rank{replica, 0}), f1 = forward(Rank{replica, 1});
      const double sent = f0 + kTransfer, turned = sent + f1 + 2 * f1, back = turned + kTransfer;
      add({replica, 0}, step, "forward-compute", 0, f0);
      add({replica, 0}, step, "forward-send", f0, kTransfer);
      add({replica, 1}, step, "forward-recv", 0, sent);  // waits for the activation
      add({replica, 1}, step, "forward-compute", sent, f1);
      add({replica, 1}, step, "backward-compute", sent + f1, 2 * f1);
      add({replica, 1}, step, "backward-send", turned, kTransfer);
      add({replica, 0}, step, "backward-recv", sent, back - sent);
      add({replica, 0}, step, "backward-compute", back, 2 * f0);
      begin[replica] = back + 2 * f0;
      end[replica] = back;
      last = std::max(last, back + 2 * f0);
    }
    for (int replica = 0; replica < trace_.replicas; ++replica) {
      add({replica, 0}, step, "optimizer-clip-main-grad", begin[replica],
          last + kCollective - begin[replica]);
      add({replica, 1}, step, "optimizer-clip-main-grad", end[replica],
          last + kCollective - end[replica]);
    }
  }
  /// A step in which all ranks compute at the same time, before a collective.
  template <class Forward>
  void add_parallel_step(std::int64_t step, Forward forward) {
    double last = 0;
    for (int replica = 0; replica < trace_.replicas; ++replica)
      for (int stage = 0; stage < 2; ++stage) last = std::max(last, forward(Rank{replica, stage}));
    for (int replica = 0; replica < trace_.replicas; ++replica)
      for (int stage = 0; stage < 2; ++stage) {
        const double seconds = forward(Rank{replica, stage});
        add({replica, stage}, step, "forward-compute", 0, seconds);
        add({replica, stage}, step, "optimizer-clip-main-grad", seconds,
            last + kCollective - seconds);
      }
  }
  const OperationTrace& trace() const { return trace_; }

  static constexpr double kTransfer = 0.01, kCollective = 0.05;

 private:
  void add(Rank rank, std::int64_t step, const std::string& kind, double start, double duration) {
    auto found = std::ranges::find(trace_.kinds, kind);
    if (found == trace_.kinds.end()) found = trace_.kinds.insert(found, kind);
    trace_.operations.push_back({.rank = rank,
                                 .step = step,
                                 .kind = static_cast<std::size_t>(found - trace_.kinds.begin()),
                                 .start = start,
                                 .duration = duration});
  }
  OperationTrace trace_;
};

Slowdown slowdown_of(const OperationTrace& trace) {
  const auto found = find_slowdown(trace);
  REQUIRE(found);
  return *found;
}

}  // namespace

TEST_CASE("a replay of the measured durations takes as long as the step") {
  Job job(3);
  job.add_step(7, [](Rank rank) { return 1 + 0.1 * rank.replica + 0.3 * rank.stage; });
  const Slowdown found = slowdown_of(job.trace());
  CHECK(found.steps == 1);
  // Replica 2: 3 x 1.2 + 3 x 1.5, two transfers and the collective.
  CHECK(found.measured == Approx(8.1 + 2 * Job::kTransfer + Job::kCollective));
  CHECK(found.replayed == Approx(found.measured));
}

TEST_CASE("without stragglers, operations take the mean of their kind, and transfers the median") {
  Job job(4);
  for (int step = 0; step < 3; ++step)
    job.add_step(step, [](Rank rank) { return rank == Rank{1, 0} ? 2.0 : 1.0; });
  const Slowdown found = slowdown_of(job.trace());
  // A forward takes 9/8 s on average.
  CHECK(found.without_stragglers == Approx(6 * 9.0 / 8 + 2 * Job::kTransfer + Job::kCollective));
  CHECK(found.factor() == Approx(found.measured / found.without_stragglers));
}

TEST_CASE("a slow rank, a slow stage and scattered delays have different explanations") {
  Job rank(4), stage(4), scattered(4), none(4);
  for (int step = 0; step < 8; ++step) {
    rank.add_step(step, [](Rank one) { return one == Rank{2, 0} ? 3.0 : 1.0; });
    stage.add_parallel_step(step, [](Rank one) { return one.stage == 1 ? 3.0 : 1.0; });
    scattered.add_step(
        step, [&](Rank one) { return (one.replica + one.stage) % 8 == step % 5 ? 3.0 : 1.0; });
    none.add_step(step, [](Rank) { return 1.0; });
  }
  const Slowdown by_rank = slowdown_of(rank.trace());
  CHECK(by_rank.slowest == std::vector{Rank{2, 0}});
  CHECK(by_rank.share(by_rank.without_slowest) > 0.9);
  CHECK_THAT(explain(by_rank, rank.trace()),
             Contains("One rank explains") && Contains("replica 2, stage 0"));
  const Slowdown by_stage = slowdown_of(stage.trace());
  CHECK(by_stage.share(by_stage.without_stage[1]) > 0.9);
  CHECK(by_stage.share(by_stage.without_slowest) < 0.5);
  CHECK_THAT(explain(by_stage, stage.trace()), Contains("Stage 1 explains"));
  CHECK_THAT(explain(slowdown_of(scattered.trace()), scattered.trace()), Contains("scattered"));
  CHECK_THAT(explain(slowdown_of(none.trace()), none.trace()), Contains("No stragglers"));
}

TEST_CASE("communication that overlaps computations does not let them overlap each other") {
  // A collective of 3 s runs beside three computations of 1 s. Without its excess it takes 1 s.
  OperationTrace trace;
  trace.replicas = 3;
  trace.stages = 1;
  trace.kinds = {"backward-compute", "grads-reduce-scatter", "optimizer"};
  for (int step = 0; step < 3; ++step)
    for (int replica = 0; replica < 3; ++replica) {
      const Rank rank{replica, 0};
      for (int i = 0; i < 3; ++i)
        trace.operations.push_back({rank, step, 0, i, static_cast<double>(i), 1});
      trace.operations.push_back({rank, step, 1, 0, 0, step == 0 ? 3.0 : 1.0});
      trace.operations.push_back({rank, step, 2, 0, 3, 0.5});
    }
  const Slowdown found = slowdown_of(trace);
  CHECK(found.replayed == Approx(3.5));
  CHECK(found.without_stragglers == Approx(3.5));
}

TEST_CASE("a trace whose transfers have one end, or wait for each other, is refused") {
  Job job(1);
  job.add_step(0, [](Rank) { return 1.0; });
  OperationTrace broken = job.trace();
  std::erase_if(broken.operations,
                [&](const Operation& one) { return broken.kinds[one.kind] == "backward-send"; });
  CHECK_THAT(find_slowdown(broken).error().text,
             Contains("step 0: backward-recv 0 of replica 0, stage 0 has no backward-send"));
  // Two stages whose operations are in opposite orders.
  OperationTrace crossed;
  crossed.replicas = 1;
  crossed.stages = 2;
  crossed.kinds = {"forward-send", "forward-recv", "backward-send", "backward-recv"};
  crossed.operations = {{{0, 0}, 0, 0, 0, 0, 1},
                        {{0, 0}, 0, 3, 0, 2, 1},
                        {{0, 1}, 0, 2, 0, 0, 1},
                        {{0, 1}, 0, 1, 0, 2, 1}};
  CHECK_THAT(find_slowdown(crossed).error().text,
             Contains("step 0") && Contains("wait for each other"));
  OperationTrace idle;
  idle.replicas = idle.stages = 1;
  idle.kinds = {"gc"};
  idle.operations = {{{0, 0}, 0, 0, 0, 1, 0}};
  CHECK_THAT(find_slowdown(idle).error().text, Contains("take no time"));
}

TEST_CASE("a CSV file of operations is read, and errors name the line and the column") {
  const TemporaryFolder folder;
  const std::string header = "stage,dp_rank,rank,step,optype,start_ts,duration,seq_id\r\n";
  const auto read = [&](const std::string& text) {
    return read_operations(folder.write("trace.csv", text));
  };
  const auto error = [&](const std::string& text) {
    const auto trace = read(text);
    REQUIRE_FALSE(trace);
    return trace.error().text;
  };
  const auto trace =
      read(header + "1,0,3,16,\"forward-compute\",0.5,0.25,2\n\n0,1,3,16,gc,1e-3,0,0");
  REQUIRE(trace);
  CHECK(trace->stages == 2);
  CHECK(trace->replicas == 2);
  CHECK(trace->kinds == std::vector<std::string>{"forward-compute", "gc"});
  REQUIRE(trace->operations.size() == 2);
  const Operation& first = trace->operations[0];
  CHECK(first.rank == Rank{0, 1});
  CHECK(first.step == 16);
  CHECK(first.number == 2);
  CHECK(first.start == 0.5);
  CHECK(first.end() == 0.75);
  CHECK_THAT(error(""), EndsWith("trace.csv\", line 1: the file is empty"));
  CHECK_THAT(error(header), EndsWith("the file has no operation below its header"));
  CHECK_THAT(error("a,b\n"), Contains("line 1: no column \"dp_rank\""));
  CHECK_THAT(error(header + "1,0\n"), EndsWith("line 2: found 2 columns, the header has 8"));
  CHECK_THAT(
      error(header + "x,0,3,16,gc,0,0,0\n"),
      EndsWith("line 2: column stage: expected a whole number from 0 to 65535, found \"x\""));
  CHECK_THAT(error(header + "0,-1,3,16,gc,0,0,0\n"), Contains("column dp_rank"));
  CHECK_THAT(error(header + "0,0,3,16,gc,0,-1,0\n"),
             EndsWith("column duration: expected seconds from 0, found \"-1\""));
  CHECK_THAT(error(header + "0,0,3,16,gc,nan,1,0\n"), Contains("column start_ts"));
  CHECK_THAT(error(header + "0,0,3,16,,0,1,0\n"), Contains("column optype: expected a name"));
  CHECK_THAT(error(header + "0,0,3,16,gc,0,1,0\n2,0,3,16,gc,0,1,0\n"),
             EndsWith("column stage has 2, but no 1; number them from 0"));
  CHECK_FALSE(read_operations(folder.path("missing.csv")));
}

}  // namespace leeway::blame
