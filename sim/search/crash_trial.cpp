#include "sim/search/crash_trial.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "checkpoint/store.hpp"
#include "core/check.hpp"
#include "core/text.hpp"
#include "plan/groups.hpp"
#include "sim/checkers/checkpoints.hpp"
#include "sim/cluster/simulation.hpp"
#include "sim/disk.hpp"
#include "sim/search/dice.hpp"
#include "sim/simulation.hpp"

namespace leeway::sim {
namespace {

constexpr std::uint64_t kCrashStream = 0x6372617368;
constexpr const char* kFolder = "run/checkpoints";

using checkpoint::Store;

struct RunDisk : SimulatedDisk {
  RunDisk() { LW_CHECK(make_folder("run") && flush_folder(".")); }
};

/// A run from its begin or a checkpoint to its end or a crash.
struct Segment {
  Trial trial;
  bool crashed = false;
  RunTotals totals;
  Instant end;
  std::uint64_t written = 0;  // number of the last checkpoint reported; 0: none
  bool same_workers = true;   // throughout
};

/// Weights of different runs are equal only if the same workers take part throughout.
bool changes_workers(const plan::Fault& fault) {
  return std::holds_alternative<plan::Joins>(fault.kind) ||
         std::holds_alternative<plan::Leaves>(fault.kind);
}

bool equal(const std::vector<Blob>& some, const std::vector<Blob>& others) {
  return std::equal(some.begin(), some.end(), others.begin(), others.end(),
                    [](const Blob& one, const Blob& other) {
                      return one.size() == other.size() &&
                             std::memcmp(one.data(), other.data(), one.size()) == 0;
                    });
}

class CrashTrial {
 public:
  CrashTrial(const Plan& plan, const MakeJob& make)
      : plan_(plan), make_(make), rng_(Rng::stream(plan.seed, kCrashStream)) {
    plan_.checkpoints.every = plan::EveryIterations{between(rng_, 4, 60)};
    plan_.checkpoints.keep = between(rng_, 1, 3);
  }

  Trial run() {
    RunDisk whole_disk;
    Segment whole = run_segment(plan_, whole_disk);
    if (!whole.trial.property.empty()) return std::move(whole.trial);
    RunDisk disk;
    Plan plan = plan_;
    const std::uint64_t crashes = between(rng_, 1, 2);
    for (std::uint64_t i = 0; i < crashes; ++i) {
      const auto at = nanoseconds(
          static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(whole.end.ns) + 1)));
      const std::uint64_t operation = disk.operations() + rng_.below(whole_disk.operations() + 1);
      const bool by_disk = !rng_.one_in(3);
      if (by_disk) disk.fail_at(operation);
      const Segment segment =
          run_segment(plan, disk, by_disk ? std::nullopt : std::optional(Instant() + at));
      if (!segment.crashed) return end(plan, whole, segment);
      ++total_.crashes;
      disk.restart(rng_);
      if (Status intact = check_disk(disk, segment.written); !intact)
        return fail("no checkpoint is lost or damaged by a power failure", intact.error().text);
      if (rng_.one_in(2)) plan = changed(plan);
    }
    return end(plan, whole, run_segment(plan, disk));
  }

 private:
  /// Runs from the latest checkpoint of the disk, or from the begin, until the power fails at `at`
  /// or by the disk.
  Segment run_segment(const Plan& plan, RunDisk& disk, std::optional<Instant> at = std::nullopt) {
    const auto store = std::make_shared<const Store>(disk, kFolder);
    Segment segment;
    const auto job = make_(plan, options(plan, store));
    if (!job) {
      segment.trial = {.property = "the plan is valid", .report = job.error().text};
      return segment;
    }
    Simulation simulation(*job, {}, {.on_event = [&](Address, Instant, const Event& event) {
      note(segment, event);
    }});
    if (at) simulation.host().at(*at, [] { throw PowerFailure(); });
    try {
      segment.trial = watch(simulation);
      if (simulation.ended()) segment.totals = simulation.totals();
    } catch (const PowerFailure&) {
      segment.crashed = true;
    }
    segment.end = simulation.host().now();
    total_.events += simulation.trace().steps();
    return segment;
  }

  JobOptions options(const Plan& plan, const std::shared_ptr<const Store>& store) const {
    JobOptions options;
    options.checkpoints = store;
    options.run = "trial";
    const auto numbers = store->numbers();
    if (!numbers || numbers->empty()) return options;
    const auto job = make_(plan, {});
    if (!job) return options;  // reported by run_segment()
    auto loaded = store->load(numbers->back(), *(*job)->model);
    LW_CHECK(loaded.has_value(), loaded ? std::string() : loaded.error().text);
    options.resumed = std::make_shared<checkpoint::Checkpoint>(std::move(*loaded));
    return options;
  }

  static void note(Segment& segment, const Event& event) {
    if (const auto* written = event.as<event::CheckpointWritten>())
      segment.written = written->number;
    if (event.as<event::Evicted>()) segment.same_workers = false;
  }

  /// The checkpoints after a power failure. A crash may have kept the oldest one from being
  /// removed.
  Status check_disk(RunDisk& disk, std::uint64_t written) const {
    const Store store(disk, kFolder);
    const auto job = make_(plan_, {});
    if (!job) return job.error();
    if (Status intact = check_checkpoints(store, plan_.checkpoints.keep + 1, *(*job)->model);
        !intact)
      return intact;
    const auto numbers = store.numbers();
    if (written > 0 && (numbers->empty() || numbers->back() < written))
      return Error{concat("checkpoint ", written, " was reported, but is lost")};
    return {};
  }

  /// Other numbers of workers and shards and another policy, without faults; the same plan if the
  /// drawn one is invalid.
  Plan changed(const Plan& from) {
    Plan plan = from;
    plan.faults.clear();
    plan.stragglers.clear();
    plan.prefetch = false;
    const std::uint32_t pipelines = between(rng_, 1, 5);
    // Each pipeline has its share of the data.
    if (plan.split_data == plan::SplitData{}) plan.workers = workers_per_member(plan) * pipelines;
    plan.shards = between(rng_, 1, 4);
    const plan::Consistency policies[] = {plan::Bsp{},       plan::Ssp{between(rng_, 0, 3)},
                                          plan::Asp{},       plan::Adaptive{1, 4},
                                          plan::Backup{1},   plan::Quorum{1, 2},
                                          plan::Automatic{3}};
    plan.consistency = policies[rng_.below(std::size(policies))];
    if (!std::holds_alternative<plan::Bsp>(plan.consistency)) {
      plan.participation = 1;
      plan.aggregate = plan::NoGroups{};
    }
    plan.device = "cpu";
    if (!make_(plan, {})) return from;
    settings_changed_ = true;
    return plan;
  }

  /// Checks the last segment.
  Trial end(const Plan& plan, const Segment& whole, const Segment& last) {
    if (!last.trial.property.empty()) return fail(last.trial.property, last.trial.report);
    if (is_exact(plan) && whole.same_workers && last.same_workers &&
        !equal(whole.totals.weights, last.totals.weights))
      return fail("a resumed run equals the uninterrupted one",
                  "the weights at the end differ from those of the uninterrupted run");
    return total_;
  }

  /// True if the weights do not depend on times. With codecs for pushes they depend on those of
  /// checkpoints, because the pushes before one are not encoded.
  bool is_exact(const Plan& plan) const {
    return !settings_changed_ && plan.compress.push == plan::Codec{} &&
           std::holds_alternative<plan::Bsp>(plan.consistency) &&
           plan.balance == plan::Balance::equal && plan.stop.seconds == 0 &&
           plan.stop.accuracy == 0 &&
           std::none_of(plan.faults.begin(), plan.faults.end(), changes_workers);
  }

  Trial fail(std::string property, const std::string& report) {
    total_.property = std::move(property);
    total_.report = concat(report, "\n  after ", total_.crashes, " power failures");
    return total_;
  }

  Plan plan_;
  const MakeJob& make_;
  Rng rng_;
  bool settings_changed_ = false;
  Trial total_;
};

}  // namespace

Trial try_crashes(const Plan& plan, const MakeJob& make) {
  if (has_agents(plan)) return try_plan(plan, make);
  return CrashTrial(plan, make).run();
}

}  // namespace leeway::sim
