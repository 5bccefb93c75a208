#pragma once
// Scenario: describes a training run - data, model, loss, optimizer, consistency - and runs it.
// Every setting has a default, and a flag that overrides it.
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
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/address.hpp"
#include "core/rng.hpp"
#include "core/time.hpp"
#include "models/datasets/dataset.hpp"
#include "plan/plan.hpp"
#include "runtime/result.hpp"

namespace leeway {

struct ClusterOptions;
struct Event;
struct UserRun;

class Scenario {
 public:
  /// `name` is the program's name, in lower case with hyphens; `summary` is one line.
  Scenario(std::string name, std::string summary);
  /// Starts from a plan, for example from a file.
  Scenario(Plan plan, std::string summary);

  /// A paragraph or two for --help and `leeway describe`.
  Scenario& description(std::string text);

  Scenario& data(plan::DataSource source);
  /// Data that the program defines.
  Scenario& data(const std::string& name, DataFactory factory);
  /// Layers in order; see models.hpp. A layer that the program
  /// defines: register_layer("name", factory), then custom("name").
  Scenario& model(std::vector<plan::Layer> layers);
  Scenario& loss(plan::Loss loss);
  /// Keeps what the next six methods have set.
  Scenario& optimizer(plan::Optimizer optimizer);
  /// Limits the norm of a gradient over all parameters: that of each round under bsp, backup and
  /// quorum, otherwise that of each push.
  Scenario& clip_norm(double most);
  /// Limits each element of a gradient to -most..most.
  Scenario& clip_value(double most);
  /// No weight decay for biases and for the scales and shifts of norms.
  Scenario& no_decay_on_biases(bool on = true);
  Scenario& eight_bit_state(bool on = true);
  /// Each push that is applied on arrival is a whole step instead of its share of a round.
  Scenario& whole_steps(bool on = true);
  /// Factors of the learning rate and the weight decay of the parameters with these names, such as
  /// "0.*,*.bias". May be called several times; the first group that matches a parameter counts.
  Scenario& parameter_group(std::string names, double rate, double decay = 1);
  Scenario& lr_schedule(plan::LrSchedule lr_schedule);
  Scenario& consistency(plan::Consistency policy);
  /// How shards apply pushes that were computed on older weights. Example:
  /// delay_policy(gap_aware()).
  Scenario& delay_policy(plan::DelayPolicy policy);
  /// Optimizer steps of a worker between its pushes. Examples: local_steps(local_sgd(8)),
  /// local_steps(diloco(20)).
  Scenario& local_steps(plan::LocalSteps steps);
  /// Samples of the workers' own. Examples: split_data(dirichlet(0.1)), split_data(by_label(2)).
  Scenario& split_data(plan::SplitData split);
  /// The share of the workers that train in each round of bsp, drawn anew for each.
  Scenario& participation(double share);
  /// Under bsp: workers that sum their gradients before one of them pushes the sum. Examples:
  /// aggregate(host_groups()), aggregate(groups_of(4)).
  Scenario& aggregate(plan::Aggregate groups);
  /// Encodings of gradients, and of weights, in messages. Example: compress_push(top_k(0.01)).
  Scenario& compress_push(plan::Codec codec);
  Scenario& compress_pull(plan::Codec codec);
  /// Encodings of what the stages of a pipeline send each other: bf16(), fp16() or int8().
  Scenario& compress_stages(plan::Codec activations, plan::Codec activation_gradients);
  /// The number of samples in each worker's iterations: plan::Balance::equal, or by_speed.
  Scenario& balance(plan::Balance balance);
  Scenario& workers(std::uint32_t count);
  Scenario& shards(std::uint32_t count);
  /// Actors that hold each shard, 1 or 2. With 2, a standby takes over when one is lost.
  Scenario& replicas(std::uint32_t count);
  /// Splits the model into `count` stages, trained by a pipeline of `count` workers; with 1, every
  /// worker trains the whole model. stages() and pipelines() set the number of workers.
  Scenario& stages(std::uint32_t count);
  /// Number of pipelines; the default is 1.
  Scenario& pipelines(std::uint32_t count);
  /// The order of a stage's operations: a name that `leeway schedule` lists. `chunks`: model chunks
  /// per stage; 0: as many as the schedule usually has.
  Scenario& pipeline_schedule(std::string name, std::uint32_t chunks = 0);
  /// First and last layer of each chunk of the model, such as "0-3,4-7", as `leeway partition`
  /// prints it; empty: split by the cost of the layers.
  Scenario& split(std::string chunks);
  /// Stages that keep only their inputs, and run forward again before backward: less memory for
  /// more time. Example: .recompute({0, 1}).
  Scenario& recompute(std::vector<std::uint32_t> stages);
  /// Without a flush: stages pull the weights that the optimizer's momentum predicts for the update
  /// with their gradient.
  Scenario& predict_weights(bool predicts = true);
  /// Samples of one worker's iteration.
  Scenario& batch(std::uint32_t samples);
  /// Divides each batch into `count` micro-batches and sums their gradients: for batches that do
  /// not fit in memory, and for pipelines.
  Scenario& micro_batches(std::uint32_t count);
  /// Pulls the next iteration's weights while this one computes; spends one unit of leeway.
  Scenario& prefetch(bool on = true);
  /// Augments training images. Example: .augment({.flip = true, .shift = 2}).
  Scenario& augment(plan::Augment augment);
  /// Devices of the actors: "cpu", "cuda" or "cuda:1" for all, or a list such as
  /// "workers=cuda,worker3=cpu,shards=cuda:0".
  Scenario& device(std::string devices);
  /// Of the products of linear, unembedding and conv2d layers: "bf16", "fp16", "tf32" or "fp32",
  /// or one of them with other precisions of some layers, such as "bf16,0=fp32".
  Scenario& precision(std::string precisions);
  /// The factor of losses at the start, if products have operands in fp16: a power of two.
  Scenario& loss_scale(double factor);
  /// Starts from the weights of a safetensors file.
  Scenario& init_from(std::string path);
  /// How init_from() uses the file. Example: .fine_tuning({.init_map = "net.=", .partial = true,
  /// .freeze = "0-3"}).
  Scenario& fine_tuning(plan::FineTuning settings);
  /// Layers whose parameters stay as they are: "0-3", or a list such as "0-3,5".
  Scenario& freeze(std::string layers);
  /// Samples of one lease; 0: eight batches.
  Scenario& lease_size(std::uint32_t samples);
  /// Slows a worker down. May be called several times.
  Scenario& straggler(plan::Straggler straggler);
  /// Injects a fault: see words.hpp. May be called several times.
  Scenario& fault(plan::Fault fault);
  /// Stop conditions: the first that is reached ends the run.
  Scenario& epochs(double count);
  Scenario& iterations(std::uint64_t count);
  Scenario& seconds(double count);
  Scenario& until_accuracy(double accuracy);
  /// Epochs between two evaluations on the test set; 0 evaluates only at the end.
  Scenario& evaluate_every(double epochs);
  Scenario& seed(std::uint64_t seed);
  /// How often the run writes a checkpoint, and how many are kept. Examples:
  /// .checkpoint(every_seconds(30)), .checkpoint(every_epochs(1), 5), .checkpoint(never()). Usual:
  /// every 60 seconds, and none in a simulation.
  Scenario& checkpoint(plan::CheckpointsKind every, std::uint32_t keep = 3);
  /// The folder of the checkpoints, which all nodes of a cluster share; usually in the run folder.
  Scenario& checkpoint_folder(std::string path);
  /// Simulates the run in this world, even without --simulate.
  Scenario& simulated(plan::World world = {});

  /// Fails the run if a straggler or fault of the plan has no effect, instead of a warning.
  Scenario& strict(bool on = true);
  /// Flags of settings that the program decides itself. --help hides them, and the command line
  /// refuses them. Example: .decides({"--lr"}).
  Scenario& decides(std::vector<std::string> flags);
  /// Flags whose default is not that of the plan: --help shows `text`.
  Scenario& shows_default(const std::string& text, const std::vector<std::string>& flags);

  const Plan& plan() const { return plan_; }
  Plan& plan() { return plan_; }
  const std::string& summary() const { return summary_; }
  const std::string& description() const { return description_; }
  const std::vector<std::string>& decided() const { return decided_; }
  const std::map<std::string, std::string>& shown_defaults() const { return shown_defaults_; }
  bool is_strict() const { return strict_; }

 private:
  void count_stages();

  Plan plan_;
  std::uint32_t pipelines_ = 1;
  std::string summary_;
  std::string description_;
  std::vector<std::string> decided_;
  std::map<std::string, std::string> shown_defaults_;  // by flag
  bool strict_ = false;
};

/// The slowdown factor, from 1 to a million, of the iteration of a worker that begins `seconds`
/// after the start of the run. `iteration` counts from 0. `random` is different for each iteration
/// and worker, and the same for each run with the same seed. Called from several threads.
using SlowdownFunction = std::function<double(std::int64_t iteration, double seconds, Rng& random)>;
/// Names a function for slow_by(3, "name") and --slow '3:custom(name)'. Call it before the run, and
/// in the programs of all nodes.
void register_straggler(const std::string& name, SlowdownFunction function);

/// Continues any run that needs no code of its program.
inline constexpr std::string_view kResumeCommand = "leeway resume";

/// The outputs and the host of a run.
struct RunOptions {
  std::string folder;                             // the run folder; empty: none
  std::string resume;                             // continues a run: see find_checkpoint()
  std::string command{kResumeCommand};            // starts a program with this scenario
  bool quiet = false;                             // no progress, no summary
  bool trace = false;                             // write every event into the run folder
  bool trace_json = false;                        // the same as JSON lines
  bool trace_messages = false;                    // write every message between actors likewise
  bool check_determinism = false;                 // simulate twice more and compare
  bool profile = false;                           // print the time of each layer
  std::string serve;                              // serve the page of the run at [HOST:]PORT
  std::string serve_token;                        // which its URL contains; "auto": a random one
  std::string metrics;                            // serve metrics for Prometheus at [HOST:]PORT
  bool tensorboard = false;                       // write metrics for TensorBoard
  bool strict = false;                            // see Scenario::strict
  std::function<void(const std::string&)> print;  // receives the summary instead of the terminal
  std::shared_ptr<const ClusterOptions> cluster;  // the nodes to run on; null: this process
  std::shared_ptr<const UserRun> user_run;        // null: the model computes
  /// Called for every event. Outside of simulations, several threads may call it at once. An
  /// exception that it throws stops the run, and run() throws it again when the run has ended.
  std::function<void(Address, Instant, const Event&)> on_event;
};

/// Runs the plan, in this process or on the nodes of a cluster, and returns when it has ended or
/// failed. Invalid plans and data are refused before anything starts; the result then has an error
/// and `ran` is false. Ctrl-C stops the run cleanly. May be called from several threads at once;
/// Ctrl-C then stops all of these runs.
Result run(const Plan& plan, const RunOptions& options = {});

/// The same with a command line: every setting is a flag, and --help, --plan and a run folder are
/// added. Prints progress and a summary. Use as `return run(scenario, argc, argv).exit_code;`, or
/// read the result first. With the subcommand `node` or `join` (`./mine node --listen
/// 127.0.0.1:4242`) the program is a node agent instead, with its own data and layers.
Result run(const Scenario& scenario, int argc, char** argv);

/// A parsed command line: the plan with the flags applied, and the options of the run. For programs
/// with several runs. If `exit_code` is set, the program should return it: help was shown, or the
/// arguments were refused.
struct CommandLine {
  Plan plan;
  RunOptions options;
  std::optional<int> exit_code;
};
CommandLine parse(const Scenario& scenario, int argc, char** argv);

}  // namespace leeway
