#include "monitoring/effects.hpp"

#include <algorithm>

#include "core/limits.hpp"
#include "core/text.hpp"
#include "monitoring/format.hpp"
#include "plan/fault_queries.hpp"

namespace leeway {
namespace {

/// The smallest share of an iteration that a straggler must add to have an effect.
constexpr double kLeastEffect = 0.01;

/// "worker 3", "workers 2, 3" or "all workers".
std::string workers_of(const plan::Straggler& straggler) {
  if (straggler.all) return "all workers";
  if (straggler.together.empty()) return concat("worker ", straggler.worker);
  std::vector<std::string> numbers;
  for (const std::uint32_t worker : straggler.together) numbers.push_back(concat(worker));
  return concat("workers ", join(numbers, ", "));
}

/// Mean time of an iteration of the workers that the straggler slows, in seconds, and their number
/// of iterations.
struct Iterations {
  double mean = 0;
  std::uint64_t count = 0;
};
Iterations iterations_of(const RunReport& report, const plan::Straggler& straggler) {
  Iterations out;
  double seconds = 0;
  for (std::size_t worker = 0; worker < report.workers.size(); ++worker) {
    if (!plan::slows(straggler, static_cast<std::uint32_t>(worker))) continue;
    const auto& row = report.workers[worker];
    seconds += (row.compute + row.wait).seconds();
    out.count += row.iterations;
  }
  if (out.count > 0) out.mean = seconds / static_cast<double>(out.count);
  return out;
}

/// Also of microseconds, which duration() rounds to 0 ms.
std::string brief(double seconds) {
  if (seconds < 1e-3) return fixed(seconds * 1e6, 1) + " us";
  return seconds < 0.1 ? fixed(seconds * 1e3, 1) + " ms" : duration(seconds);
}

/// Empty if the straggler has an effect.
std::string why_ineffective(const RunReport& report, const plan::Straggler& straggler,
                            double seconds, std::uint64_t slowed) {
  const Iterations all = iterations_of(report, straggler);
  if (slowed == 0)
    return concat(
        "slowed none of ", grouped(all.count),
        " iterations; give a longer run, or a straggler that is slow earlier or more often");
  const double added = seconds / static_cast<double>(slowed);
  if (all.mean <= 0 || added >= kLeastEffect * all.mean) return "";
  return concat("cannot matter: it added ", brief(added), " to each of ", grouped(slowed),
                " iterations, which take ", brief(all.mean),
                " with their messages; give a larger model or batch, a slower world such as "
                "--world speed=0.01, or --slow '",
                straggler.all ? std::string("all") : concat(straggler.worker), ":delay(5ms)'");
}

std::string begin_of(const plan::Fault& fault) {
  if (const auto* iteration = std::get_if<std::int64_t>(&fault.at))
    return concat("iteration ", *iteration);
  return concat("second ", std::get<double>(fault.at));
}

std::string why_not_fired(const RunReport& report, const plan::Fault& fault) {
  std::string reached =
      concat("the run ended after ", brief((report.last.now - Instant{}).seconds()));
  if (fault.actor.kind == RoleKind::worker && fault.actor.index < report.workers.size())
    reached += concat(", and ", fault.actor, " computed ",
                      grouped(report.workers[fault.actor.index].iterations), " iterations");
  return concat("did not begin: it waits for ", begin_of(fault), ", ", reached,
                "; give an earlier begin or a longer run");
}

/// A crashed worker that is restarted may join before its end is reported, or after: the report of
/// the run names the fault in both cases.
void name_crashes(RunReport& report, const Job& job) {
  for (std::size_t i = 0; i < job.faults.size(); ++i) {
    const plan::Fault& fault = job.faults[i];
    const auto* crash = std::get_if<plan::Crash>(&fault.kind);
    if (!crash || !report.faults_fired[i] || fault.actor.kind != RoleKind::worker) continue;
    const WorkerId worker(fault.actor.index);
    WorkerTotals& totals = report.workers.at(job.stages->lead_of(worker).value());
    if (totals.rejoined == worker)
      totals.end = job.stages->end_of(worker, plan::reason_of(*crash).text);
  }
}

}  // namespace

void size_tables(RunReport& report, const Plan& plan) {
  // A refused plan may have any number of workers.
  report.workers.resize(std::min(plan.workers, limits::kMaxWorkers));
  report.version_lags.resize(limits::kLagBins);
  report.straggler_seconds.resize(plan.stragglers.size());
  report.slowed_iterations.resize(plan.stragglers.size());
  report.faults_fired.resize(plan.faults.size());
}

void add_host_counts(RunReport& report, const Job& job) {
  size_tables(report, job.plan);
  const auto stragglers = job.disturbances->stragglers();
  for (std::size_t i = 0; i < stragglers.size(); ++i) {
    report.straggler_seconds[i] = stragglers[i].added.seconds();
    report.slowed_iterations[i] = stragglers[i].iterations;
  }
  report.faults_fired = job.disturbances->faults();
  name_crashes(report, job);
  for (const auto& [worker, unreported] : job.unreported->workers()) {
    add_work(report.workers.at(worker.value()), unreported);
    if (job.stages->counts_iterations(worker)) report.last.iterations += unreported.iterations;
    if (job.stages->counts_samples(worker)) report.last.samples += unreported.samples;
  }
}

void find_ineffective(RunReport& report, const Job& job) {
  report.warnings.clear();
  using Reason = msg::RunEnded::Reason;
  if (report.end.reason != Reason::finished && report.end.reason != Reason::target_reached) return;
  for (std::size_t i = 0; i < job.stragglers.size(); ++i)
    if (const std::string why = why_ineffective(
            report, job.stragglers[i], report.straggler_seconds[i], report.slowed_iterations[i]);
        !why.empty())
      report.warnings.push_back(
          concat("stragglers[", i, "] (", workers_of(job.stragglers[i]), ") ", why));
  for (std::size_t i = 0; i < job.faults.size(); ++i)
    if (!report.faults_fired[i])
      report.warnings.push_back(concat("faults[", i, "] (", job.faults[i].actor, ") ",
                                       why_not_fired(report, job.faults[i])));
}

}  // namespace leeway
