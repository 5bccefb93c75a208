// crash-and-rejoin: the cost of losing a worker.
//
// Four workers learn Fashion-MNIST twice: undisturbed, and with a worker that crashes and restarts,
// one that freezes for a while, and one that joins late. Every sample is trained once per epoch in
// both runs, so the accuracy is the same and only time is lost. The program fails if a sample is
// lost. --simulate does the same in virtual time.
#include <leeway/core/text.hpp>
#include <leeway/leeway.hpp>
#include <leeway/monitoring/format.hpp>

#include <algorithm>
#include <iostream>

#include "study.hpp"

using namespace leeway;
using study::cell;

namespace {

std::string row(const std::string& name, const Result& result) {
  std::string text =
      name + std::string(14 - name.size(), ' ') + cell(10, duration(result.seconds)) +
      cell(12, grouped(result.samples_trained)) + cell(8, concat(result.partial_pushes)) +
      cell(11, percent(result.test_accuracy));
  for (const auto& worker : result.totals.workers) text += cell(10, concat(worker.samples));
  return text + '\n';
}

/// Flags may remove workers that the program's own faults need; then other faults must be given.
Status check_faults(const std::vector<plan::Fault>& own, const Plan& plan) {
  const auto left = std::ranges::count_if(own, [&](const plan::Fault& fault) {
    return std::ranges::find(plan.faults, fault) != plan.faults.end();
  });
  const auto faults = static_cast<std::ptrdiff_t>(plan.faults.size());
  if (left == static_cast<std::ptrdiff_t>(own.size()) || faults > left) return {};
  const bool too_few = std::ranges::any_of(
      own, [&](const plan::Fault& fault) { return fault.actor.index >= plan.workers; });
  return Error{concat("of the program's ", own.size(), " faults ", left,
                      left == 1 ? " is left" : " are left", "; give ",
                      too_few ? "--workers 4 or more (with --stages 2: --pipelines 2), or " : "",
                      "faults such as --fault \"1:crash(1s)@150\"")};
}

}  // namespace

int main(int argc, char** argv) {
  Scenario scenario("crash-and-rejoin", "Crash and restart a worker in the middle of training.");
  scenario
      .description(
          "A 784-512-256-10 network on Fashion-MNIST, once undisturbed and once with the faults\n"
          "of the plan (--fault adds more): worker 2 crashes in iteration 150 and restarts a\n"
          "second later, worker 1 freezes for half a second, and worker 3 joins after half a\n"
          "second.")
      .decides(study::kOfCheckpoints)
      .data(fashion_mnist())
      .model({flatten(), linear(512), relu(), linear(256), relu(), linear(10)})
      .loss(softmax_cross_entropy())
      .optimizer(momentum(0.05, 0.9))
      .lr_schedule(cosine())
      .consistency(ssp(3))
      .workers(4)
      .shards(2)
      .batch(64)
      .fault(crashes(worker(2), at_iteration(150), 1))
      .fault(freezes(worker(1), at_iteration(300), 0.5))
      .fault(joins(worker(3), 0.5))
      .epochs(3);
  const CommandLine line = parse(scenario, argc, argv);
  if (line.exit_code) return *line.exit_code;

  study::Report report(line);
  auto status = check_faults(scenario.plan().faults, line.plan);
  if (status) status = report.open();
  if (!status) return report.refuse(status.error().text);
  report.print(
      "                    time     trained    partial   accuracy   samples of each worker\n");
  std::uint64_t trained = 0;
  for (const bool disturbed : {false, true}) {
    const std::string name = disturbed ? "disturbed" : "undisturbed";
    Plan plan = line.plan;
    if (!disturbed) plan.faults.clear();
    RunOptions options = line.options;
    options.quiet = true;
    if (!options.folder.empty()) options.folder += "/" + name;
    const Result result = run(plan, options);
    if (!result.ok()) return report.failed(name, result);
    report.print(row(name, result));
    if (disturbed && result.samples_trained != trained) {
      std::cerr << "crash-and-rejoin: trained " << result.samples_trained << " samples instead of "
                << trained << "; this is a bug\n";
      return 1;
    }
    trained = result.samples_trained;
  }
  return report.end(", and a folder for each run");
}
