// crash-and-rejoin: what the loss of a worker costs, and what is not lost.
//
// Four workers learn Fashion-MNIST twice: undisturbed, and with a worker that crashes and is
// started again, one that stands still for a while, and one that joins late. Every sample is
// trained once per epoch either way, so the accuracy is the same; what the crash costs is time. The
// program fails if a sample was lost. With --simulate the same happens in virtual time, on nodes of
// their own.
#include <leeway/monitoring/format.hpp>
#include <leeway/runtime/scenario.hpp>

#include <iomanip>
#include <iostream>

using namespace leeway;

namespace {

void print_row(const std::string& name, const Result& result) {
  std::cout << std::left << std::setw(14) << name << std::right << std::setw(10)
            << duration(result.seconds) << std::setw(12) << grouped(result.samples_trained)
            << std::setw(8) << result.torn_pushes << std::setw(11) << percent(result.test_accuracy);
  for (const auto& worker : result.totals.workers) std::cout << std::setw(10) << worker.samples;
  std::cout << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  Scenario scenario("crash-and-rejoin",
                    "Lose a worker and get it back, in the middle of training.");
  scenario
      .description(
          "A 784-512-256-10 network on Fashion-MNIST, once undisturbed and once with the faults of "
          "the plan\n"
          "(--fault adds more): worker 2 crashes in iteration 150 and is started again a second "
          "later, worker 1\n"
          "stands still for half a second, worker 3 joins after half a second.")
      .data(fashion_mnist())
      .model({flatten(), linear(512), relu(), linear(256), relu(), linear(10)})
      .loss(softmax_cross_entropy())
      .optimizer(momentum(0.05, 0.9))
      .schedule(cosine())
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

  std::cout << "                    time     trained    torn   accuracy   samples of each worker\n";
  std::uint64_t trained = 0;
  for (const bool disturbed : {false, true}) {
    const std::string name = disturbed ? "disturbed" : "undisturbed";
    Plan plan = line.plan;
    if (!disturbed) plan.faults.clear();
    RunOptions options = line.options;
    options.quiet = true;
    if (!options.folder.empty()) options.folder += "/" + name;
    const Result result = run(plan, options);
    if (!result.ok()) {
      std::cerr << "crash-and-rejoin: " << name << ": "
                << (result.error.empty() ? "interrupted" : result.error) << '\n';
      return result.exit_code;
    }
    print_row(name, result);
    if (disturbed && result.samples_trained != trained) {
      std::cerr << "crash-and-rejoin: " << trained << " samples were to be trained, and "
                << result.samples_trained << " were: that is a bug\n";
      return 1;
    }
    trained = result.samples_trained;
  }
  return 0;
}
