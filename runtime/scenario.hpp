#pragma once
// Scenario: describes a training run - data, model, loss, optimizer, consistency - and runs it.
// Every setting has a default, and a flag of the program that overrides it.
//
// Example:
//
//   #include <leeway/leeway.hpp>
//   using namespace leeway;
//   int main(int argc, char** argv) {
//     Scenario scenario("line", "Find y = 3x + 2 from noisy samples.");
//     scenario.data(line(3, 2, 0.1)).model({linear(1)}).loss(mean_squared_error())
//             .optimizer(sgd(0.1)).consistency(ssp(3)).workers(4).shards(2).epochs(5);
//     return run(scenario, argc, argv).exit_code;
//   }
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/address.hpp"
#include "core/time.hpp"
#include "models/datasets/dataset.hpp"
#include "plan/values.hpp"
#include "runtime/result.hpp"

namespace leeway {

struct ClusterOptions;
struct Event;

class Scenario {
 public:
  /// `name` is the program's name, in lower case with hyphens; `summary` is one line.
  Scenario(std::string name, std::string summary);
  /// Starts from a plan, read from a file for example.
  Scenario(Plan plan, std::string summary);

  /// A paragraph or two for --help and `leeway describe`.
  Scenario& description(std::string text);

  Scenario& data(plan::DataSource source);
  /// Data that the program brings along.
  Scenario& data(const std::string& name, DataFactory factory);
  /// Layers in order; see words.hpp, and models.hpp for whole models. A layer of the program's own:
  /// register_layer("name", factory), then custom("name").
  Scenario& model(std::vector<plan::Layer> layers);
  Scenario& loss(plan::Loss loss);
  Scenario& optimizer(plan::Optimizer optimizer);
  Scenario& lr_schedule(plan::LrSchedule schedule);
  Scenario& consistency(plan::Consistency policy);
  /// How many samples an iteration of each worker has: plan::Balance::equal, or by_speed.
  Scenario& balance(plan::Balance balance);
  Scenario& workers(std::uint32_t count);
  Scenario& shards(std::uint32_t count);
  /// Cuts the model into `count` stages, which a pipeline of as many workers trains together; 1:
  /// every worker trains the whole model. These two say how many workers there are, in place of
  /// workers().
  Scenario& stages(std::uint32_t count);
  /// Pipelines side by side; 1 where it is not called.
  Scenario& pipelines(std::uint32_t count);
  /// What a stage does next: a name that `leeway schedule` lists. `chunks`: parts of the model on
  /// each stage, for "interleaved".
  Scenario& pipeline_schedule(std::string name, std::uint32_t chunks = 1);
  /// First and last layer of each part of the model, such as "0-3,4-7", as `leeway partition`
  /// prints it; empty cuts it by what layers cost.
  Scenario& split(std::string parts);
  /// Stages that keep their inputs alone, and run forward again before backward: less memory for
  /// more time. As in .recompute({0, 1}).
  Scenario& recompute(std::vector<std::uint32_t> stages);
  /// Samples of one worker's iteration.
  Scenario& batch(std::uint32_t samples);
  /// Computes each batch in `count` pieces whose gradients are summed: for batches that do not fit
  /// in memory, and for pipelines, which they go through one by one.
  Scenario& micro_batches(std::uint32_t count);
  /// Pulls the next iteration's weights while this one computes; spends one unit of leeway.
  Scenario& prefetch(bool on = true);
  /// Changes training images at random, as in .augment({.flip = true, .shift = 2}).
  Scenario& augment(plan::Augment augment);
  /// Where the actors compute: "cpu", "cuda" or "cuda:1" for all, or a list such as
  /// "workers=cuda,worker3=cpu,shards=cuda:0".
  Scenario& device(std::string devices);
  /// Starts from the weights of a safetensors file.
  Scenario& init_from(std::string path);
  /// Samples of one lease; 0: eight batches.
  Scenario& lease_size(std::uint32_t samples);
  /// Slows a worker down. May be called several times.
  Scenario& straggler(plan::Straggler straggler);
  /// Makes something go wrong: see words.hpp. May be called several times.
  Scenario& fault(plan::Fault fault);
  /// When to stop: the first of these that is reached.
  Scenario& epochs(double count);
  Scenario& iterations(std::uint64_t count);
  Scenario& seconds(double count);
  Scenario& until_accuracy(double accuracy);
  /// Epochs between two evaluations on the test set; 0 evaluates at the end alone.
  Scenario& evaluate_every(double epochs);
  Scenario& seed(std::uint64_t seed);
  /// Runs in virtual time, in this world, whether --simulate is given or not.
  Scenario& simulated(plan::World world = {});

  /// Flags of settings that the program gives each of its runs itself, as in .decides({"--lr"}):
  /// --help does not show them, and who gives one is told so.
  Scenario& decides(std::vector<std::string> flags);

  const Plan& plan() const { return plan_; }
  Plan& plan() { return plan_; }
  const std::string& summary() const { return summary_; }
  const std::string& description() const { return description_; }
  const std::vector<std::string>& decided() const { return decided_; }

 private:
  void count_stages();

  Plan plan_;
  std::uint32_t pipelines_ = 1;
  std::string summary_;
  std::string description_;
  std::vector<std::string> decided_;
};

/// How a run shows itself.
struct RunOptions {
  std::string folder;                             // where the run is kept; empty: nowhere
  bool quiet = false;                             // no progress, no summary
  bool trace = false;                             // every event into the run folder
  bool check_determinism = false;                 // simulate twice more, and compare
  bool profile = false;                           // where the time went, layer by layer
  std::function<void(const std::string&)> print;  // instead of the terminal
  std::shared_ptr<const ClusterOptions> cluster;  // the nodes to run on; null: this process
  /// Told of every event as it happens; outside of simulations from several threads at once.
  std::function<void(Address, Instant, const Event&)> on_event;
};

/// Runs the plan, in this process or on the nodes of a cluster, and returns when it has ended,
/// whatever its end. Bad plans and bad data are refused before anything starts: the result then
/// says so and `ran` is false. While it runs, Ctrl-C stops it cleanly. May be called from several
/// threads at once; Ctrl-C then stops all of these runs.
Result run(const Plan& plan, const RunOptions& options = {});

/// The same with a command line on top: every setting as a flag, --help, --plan, a run folder.
/// Prints progress and a summary. Use as `return run(scenario, argc, argv).exit_code;`, or look at
/// the result first. With the word `node` or `join` first (`./mine node --listen 127.0.0.1:4242`)
/// the program is a node agent instead, which has its data and layers.
Result run(const Scenario& scenario, int argc, char** argv);

/// What a command line asks for: the plan with the flags applied, and how to show it. For programs
/// that run more than once. When the result holds an exit code, the program should return it: help
/// was shown, or the arguments were refused.
struct CommandLine {
  Plan plan;
  RunOptions options;
  std::optional<int> exit_code;
};
CommandLine parse(const Scenario& scenario, int argc, char** argv);

}  // namespace leeway
