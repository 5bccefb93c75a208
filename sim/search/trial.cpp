#include "sim/search/trial.hpp"

#include "core/text.hpp"
#include "models/datasets/load.hpp"
#include "sim/simulation.hpp"

namespace leeway::sim {

namespace {

/// Well above the length of any drawn run; a longer run is taken for a livelock.
constexpr std::uint64_t kMostEvents = 5'000'000;

}  // namespace

Trial watch(Simulation& simulation) {
  Trial trial;
  const auto& trace = simulation.host().trace();
  try {
    const std::string stuck = simulation.run([&] {
      if (trace.steps() > kMostEvents)
        throw Violation("the run ends", {}, concat("it has taken ", trace.steps(), " steps"));
    });
    if (!stuck.empty()) {
      trial.property = "no deadlock";
      trial.report = stuck;
    } else if (simulation.totals().end.reason == msg::RunEnded::Reason::failed) {
      trial.property = "the run ends well";
      trial.report = simulation.totals().end.text;
    }
  } catch (const Violation& violation) {
    trial.property = violation.property();
    trial.report = violation.what();
  } catch (const CheckFailed& failed) {
    trial.property = "internal checks hold";
    trial.report = failed.what();
  }
  trial.events = trace.steps();
  return trial;
}

Expected<std::shared_ptr<const Job>> load_job(const Plan& plan, JobOptions options) {
  if (const auto valid = validate(plan); !valid) return valid.error();
  auto data = load_data(plan.data, plan.seed);
  if (!data) return data.error();
  return make_job(plan, std::move(*data), std::move(options));
}

Trial try_plan(const Plan& plan, const MakeJob& make, bool twice) {
  const auto job = make(plan, {});
  if (!job) return {.property = "the plan is valid", .report = job.error().text};
  Simulation simulation(*job, {});
  Trial trial = watch(simulation);
  if (!twice || !trial.property.empty()) return trial;
  const auto again = make(plan, {});
  LW_CHECK(bool(again), again ? std::string() : again.error().text);
  Simulation second(*again, {});
  watch(second);
  const auto &a = simulation.host().trace(), &b = second.host().trace();
  if (a.protocol() == b.protocol() && a.numeric() == b.numeric()) return trial;
  trial.property = "property 9: two runs of one seed take the same steps";
  trial.report = concat("the hashes of ", a.steps(), " and ", b.steps(), " steps differ");
  return trial;
}

}  // namespace leeway::sim
