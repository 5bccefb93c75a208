#include "actors/job.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "actors/check_resumed.hpp"
#include "checkpoint/store.hpp"
#include "core/check.hpp"
#include "core/memory.hpp"
#include "core/mutant.hpp"
#include "core/rng.hpp"
#include "core/text.hpp"
#include "kernels/executors.hpp"
#include "models/datasets/augment.hpp"
#include "models/initial_weights.hpp"
#include "plan/fine_tuning.hpp"
#include "plan/groups.hpp"
#include "plan/local_steps.hpp"
#include "plan/precision.hpp"
#include "policies/automatic_plan.hpp"
#include "policies/balance/micro_batches.hpp"
#include "policies/delay/delay_aware.hpp"
#include "policies/optimizer/clip.hpp"
#include "policies/optimizer/shard_optimizer.hpp"
#include "policies/optimizer/updater.hpp"
#include "policies/straggler/straggler.hpp"
#include "tensor/foreign_blob.hpp"

namespace leeway {

namespace {

/// Versions of packed weights that the cache keeps. Older ones live as long as they are in use.
constexpr std::size_t kPackedVersions = 3;

Status check_devices(const Job& job, const std::function<bool(Address)>& here) {
  std::vector<Device> seen;
  const auto check = [&](const std::vector<Device>& devices, RoleKind kind) -> Status {
    for (std::uint32_t i = 0; i < devices.size(); ++i) {
      const Device device = devices[i];
      if (here && !here({kind, i})) continue;
      if (std::find(seen.begin(), seen.end(), device) != seen.end()) continue;
      seen.push_back(device);
      if (const auto made = job.executors(device); !made) return made.error();
    }
    return {};
  };
  if (const auto there = check(job.devices.workers(), RoleKind::worker); !there) return there;
  return check(job.devices.shards(), RoleKind::shard);
}

/// Checks weights that the caller gives.
Expected<std::vector<Blob>> take_weights(std::vector<Blob> weights, const Model& model) {
  const auto& parameters = model.parameters();
  if (weights.size() != parameters.size())
    return Error{concat("there are starting weights for ", weights.size(), " parameters, and the ",
                        "model has ", parameters.size(), "; give the file of this model")};
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto bytes = static_cast<std::size_t>(parameters[i].spec.shape.count()) * sizeof(float);
    if (weights[i].size() != bytes)
      return Error{concat("the starting weights of ", parameters[i].name, " have ",
                          weights[i].size(), " bytes, and the model's ", bytes,
                          "; give the file of this model")};
  }
  return weights;
}

/// Draws the weights that are missing, so that all nodes get the same ones.
std::vector<Blob> filled(std::vector<Blob> weights, const Model& model, std::uint64_t seed) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i]) continue;
    weights[i] = Blob::floats(model.parameters()[i].spec.shape.count());
    model.initialize(static_cast<int>(i), seed, weights[i].mutable_floats());
  }
  return weights;
}

/// Batch norm of flat samples needs at least two samples in each micro-batch.
Status check_batch_norm(const Model& model, const Plan& plan) {
  // With balance by speed and local steps, an iteration can have any number of samples. With
  // micro-batches of two, the last one of an odd number would have one.
  const bool varies = plan.balance == plan::Balance::by_speed || has_local_steps(plan);
  const std::int64_t least = varies ? 3 : 2;
  if (micro_batch_size(plan) >= least) return {};
  for (int i = 0; i < model.layers(); ++i)
    if (model.layer(i).kind() == "batch_norm" && model.output_of(i).rank() == 1)
      return Error{concat("model: ", model.layer_name(i),
                          " takes mean and variance over a micro-batch, and ",
                          least == 2 ? "those have one sample" : "some would have one sample",
                          "; give a larger --batch or fewer --micro-batches")};
  return {};
}

/// Zeros for the largest micro-batch between any two chunks of the model.
Blob no_activations(const Job& job) {
  std::int64_t most = 0;
  for (const ModelChunk& chunk : job.stages->chunks())
    if (chunk.first > 0) most = std::max(most, job.model->output_of(chunk.first - 1).count());
  most *= largest_micro_batch(job.plan);
  Blob zeros = Blob::floats(most);
  std::fill_n(zeros.mutable_floats(), most, 0.0f);
  return zeros;
}

/// Whether the codecs fit the run.
Status check_compression(const Job& job) {
  const plan::Compression& compress = job.plan.compress;
  if (id_of(compress.pull) > CodecId::int8)
    return Error{concat("compress.pull: ", job.pull_codec->name(),
                        " loses too much of the weights; give --compress pull=bf16, fp16 or int8")};
  for (const auto& [name, codec] :
       {std::pair("activations", compress.activations),
        std::pair("activation_gradients", compress.activation_gradients)})
    if (id_of(codec) > CodecId::int8)
      return Error{concat("compress.", name, ": ", make_codec(codec)->name(),
                          " loses too much; give --compress ", name, "=bf16, fp16 or int8")};
  if (!job.push_codecs) return {};
  if (job.shard_settings.clip_value > 0)
    return Error{
        "compress.push: pushes carry earlier residuals, which clipping would lose; give "
        "--clip-norm instead of --clip-value, or --compress push=none"};
  if (job.optimizer->sums_rounds())
    return Error{
        "compress.push: sum, assign and updaters need gradients without residuals; give --compress "
        "push=none"};
  return {};
}

/// Whether the run can multiply its losses, if products have operands in fp16.
Status check_loss_scale(Job& job) {
  job.scales_losses = !job.computed_by_users && multiplies_in_fp16(job.plan);
  const char* const remedy = !job.scales_losses                      ? nullptr
                             : job.stages->piped()                   ? "--stages 1"
                             : has_local_steps(job.plan)             ? "--local-steps 0"
                             : job.consistency->round_size().drops() ? "--staleness bsp"
                                                                     : nullptr;
  if (!remedy) return {};
  return Error{
      concat("precision: fp16 needs a factor of the loss, which pipelines, local steps, "
             "backup and quorum do not have; give --precision bf16, or ",
             remedy)};
}

/// muon runs where the optimizer does: on shards, or with local steps on workers.
Status check_muon(const Job& job) {
  if (!std::holds_alternative<plan::Muon>(job.plan.optimizer.kind)) return {};
  const bool local = has_local_steps(job.plan);
  for (std::uint32_t i = 0; i < (local ? job.plan.workers : job.plan.shards); ++i)
    if ((local ? job.devices.worker(i) : job.devices.shard(i)).kind == Device::Kind::cuda)
      return Error{concat("optimizer: muon computes its steps on CPUs; give --device ",
                          local ? "workers" : "shards", "=cpu, or --optimizer adamw")};
  return {};
}

/// Whether the updates can be computed. `here`: as in JobOptions.
Status check_updates(const Job& job, const std::function<bool(Address)>& here) {
  if (job.computed_by_users && has_local_steps(job.plan))
    return Error{"local_steps: the loops of a program take their own steps; give --local-steps 0"};
  if (job.computed_by_users && job.stages->grouped())
    return Error{
        "aggregate: the loops of a program push their own gradients; give --aggregate none"};
  if (job.computed_by_users && job.delay_policy && job.delay_policy->lag_limit())
    return Error{
        "delay_policy.delay_threshold: the loops of a program cannot be made to compute an "
        "iteration again; give another --delay-policy"};
  if (job.computed_by_users && job.clips_pushes())
    return Error{
        "optimizer.clip_norm: the gradients of a store leave one by one, so that a push has no "
        "norm over all keys; give --clip-norm 0, or --staleness bsp without top_k or random_k"};
  const plan::Optimizer& settings = job.shard_settings;
  for (std::uint32_t shard = 0; settings.eight_bit_state && shard < job.plan.shards; ++shard)
    if (job.devices.shard(shard).kind == Device::Kind::cuda)
      return Error{concat("optimizer.eight_bit_state: shard ", shard,
                          " is on a GPU, and only CPUs keep 8-bit state; leave out "
                          "--eight-bit-state, or give --device shards=cpu")};
  if (settings.eight_bit_state && std::holds_alternative<plan::AdaGrad>(settings.kind))
    return Error{
        "optimizer.eight_bit_state: the sums of adagrad would stop growing in 8 bits; leave out "
        "--eight-bit-state, or give --optimizer adam"};
  if (const Status fits = check_muon(job); !fits) return fits;
  const auto* updater = std::get_if<plan::Updater>(&settings.kind);
  if (!updater) return {};
  if (settings.clip_norm > 0 || settings.clip_value > 0)
    return Error{
        "optimizer: an updater of the program gets the gradients as they are; give --clip-norm 0 "
        "and --clip-value 0"};
  for (std::uint32_t shard = 0; shard < job.plan.shards; ++shard) {
    if (job.devices.shard(shard).kind == Device::Kind::cuda)
      return Error{concat("optimizer: an updater of the program runs on the CPU, and shard ", shard,
                          " is on a GPU; give --device cpu")};
    if (here && !here(address_of(ShardId(shard))) && !here(standby_of(ShardId(shard)))) continue;
    if (const auto found = find_updater(updater->name); !found)
      return Error{"optimizer: " + found.error().text};
  }
  return {};
}

/// Whether the old weights that a delay policy compares fit into memory. `here`: as in JobOptions.
Status check_kept_weights(const Job& job, const std::function<bool(Address)>& here) {
  if (!job.delay_policy || !job.delay_policy->compares_weights() || job.cost_only) return {};
  // A worker may push gradients of each version that it has pulled and not pushed yet.
  const auto of_worker =
      static_cast<std::uint64_t>(std::max(job.stages->weight_versions(), 1) + job.plan.prefetch);
  const std::uint64_t versions = of_worker * job.stages->pipelines();
  const auto replicas_here = [&](ShardId shard) -> std::uint64_t {
    if (job.devices.shard(shard.value()).kind == Device::Kind::cuda) return 0;  // its own memory
    if (!here) return job.plan.replicas;
    return (here(address_of(shard)) ? 1u : 0u) + (here(standby_of(shard)) ? 1u : 0u);
  };
  std::uint64_t bytes = 0;
  for (const Block& block : job.layout->blocks())
    if (Job::is_stepped(block))
      bytes += static_cast<std::uint64_t>(block.floats) * sizeof(float) * versions *
               replicas_here(block.shard);
  return check_memory(concat("delay_policy.", job.delay_policy->name()),
                      concat("keeping up to ", versions, " versions of the weights"), bytes,
                      "give fewer --workers, or --delay-policy lag_scaled, which keeps none");
}

/// The samples of the workers' own. A job without the contents of its data has none.
Status add_split(Job& job) {
  const Plan& plan = job.plan;
  if (std::holds_alternative<plan::SharedData>(plan.split_data)) return {};
  const Dataset& data = *job.data.train;
  const std::uint32_t shares = job.stages->pipelines();
  if (Status valid = check_split(data, plan.split_data, shares); !valid) return valid;
  if (!data.has_contents()) return {};
  auto split = split_data(data, plan.split_data, shares, plan.seed);
  if (!split) return split.error();
  job.split = std::make_shared<const DataSplit>(std::move(*split));
  return {};
}

/// A note if a delay policy makes workers of equal speed compute much again.
void note_small_limit(Job& job) {
  const auto limit = job.delay_policy ? job.delay_policy->lag_limit() : std::nullopt;
  const double round = job.plan.optimizer.whole_steps ? job.plan.workers : 1;
  if (!limit || *limit >= round) return;
  job.notes.push_back(
      concat("delay_policy.delay_threshold: the lags of workers of equal speed reach ", round,
             job.plan.optimizer.whole_steps ? " updates" : " round",
             ", so below that they compute much again"));
}

/// The optimizer of local steps, and a note if they are too many for the data.
Status add_local_steps(Job& job) {
  if (!has_local_steps(job.plan)) return {};
  auto ranges = make_update_ranges(job.plan.optimizer, *job.model, *job.layout);
  if (!ranges) return ranges.error();
  job.local_ranges = std::move(*ranges);
  job.local_optimizer = make_optimizer(job.plan.optimizer);
  const std::int64_t epoch = job.data.train->size();
  const auto round = static_cast<std::int64_t>(round_samples(job.plan));
  if (round > epoch)
    job.notes.push_back(
        concat("local_steps: an epoch of ", epoch, " samples is shorter than a round of ", round,
               ", so workers will idle; give fewer --local-steps, or a smaller --batch"));
  return {};
}

/// The plan's faults, with the spread of their begin drawn.
std::vector<plan::Fault> drawn_faults(const Plan& plan) {
  constexpr std::uint64_t kFaultStream = 0x6661756c74;
  std::vector<plan::Fault> faults = plan.faults;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    Rng rng = Rng::stream(plan.seed, kFaultStream, i);
    auto& fault = faults[i];
    if (auto* iteration = std::get_if<std::int64_t>(&fault.at))
      *iteration +=
          static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(fault.spread) + 1));
    else
      std::get<double>(fault.at) += rng.uniform() * fault.spread;
  }
  return faults;
}

/// The iterations of a worker in these epochs, if all train equally many samples.
double iterations_in(double epochs, const Plan& plan, const Dataset& data) {
  return epochs * static_cast<double>(data.size()) / static_cast<double>(round_samples(plan));
}

/// The same in the whole run; 0: unlimited.
double iterations_of_worker(const Plan& plan, const Dataset& data) {
  const double all =
      static_cast<double>(plan.stop.iterations) * workers_per_member(plan) / plan.workers;
  if (plan.stop.epochs <= 0) return all;
  const double in_epochs = iterations_in(plan.stop.epochs, plan, data);
  return all > 0 ? std::min(all, in_epochs) : in_epochs;
}

/// Whether the optimizer can predict weights, if the plan asks for that.
Status check_prediction(const Plan& plan, const Optimizer& optimizer) {
  if (!plan.pipeline.predict_weights) return {};
  if (!optimizer.look_ahead({}, 1))
    return Error{concat("pipeline.predict_weights: ", optimizer.name(),
                        " on the shards has no velocity to predict weights with; give --optimizer "
                        "momentum, nesterov, adam or adamw, and no sparse codec for pushes")};
  return {};
}

}  // namespace

std::shared_ptr<Executor> Job::executor(Device device) const {
  auto made = executors(device);
  if (!made) throw std::runtime_error(made.error().text);
  return *made;
}

Blob Job::zeros(std::int64_t floats) const {
  const auto bytes = static_cast<std::size_t>(floats) * sizeof(float);
  LW_CHECK(bytes <= no_activations.size(), bytes, no_activations.size());
  return foreign_blob(no_activations.bytes().first(bytes), [of = no_activations] {});
}

Iteration Job::first_iteration() const {
  if (!resumed || planted(Mutant::iterations_restart)) return {};
  const auto& ends = resumed->manifest.scheduler.pipelines;
  return ends.empty() ? Iteration() : *std::max_element(ends.begin(), ends.end());
}

Iteration Job::first_iteration(std::uint32_t pipeline) const {
  if (!resumed || planted(Mutant::iterations_restart)) return {};
  const auto& ends = resumed->manifest.scheduler.pipelines;
  // A pipeline that the run did not have begins where the last one is.
  Iteration first = pipeline < ends.size() ? ends[pipeline]
                    : ends.empty()         ? Iteration()
                                           : *std::min_element(ends.begin(), ends.end());
  const std::int64_t bound = consistency->largest_bound();
  if (consistency->by_rounds()) return first_iteration();
  if (bound == kUnbounded) return first;
  // The clock of a worker is at most one iteration further ahead.
  return std::max(first, Iteration(first_iteration().value() - bound - 1));
}

std::vector<Iteration> Job::first_iterations() const {
  if (!resumed) return {};
  std::vector<Iteration> first;
  for (std::uint32_t worker = 0; worker < plan.workers; ++worker)
    first.push_back(first_iteration(stages->pipeline_of(WorkerId(worker))));
  return first;
}

double Job::push_norm_limit() const {
  const double limit = shard_settings.clip_norm;
  if (!consistency->by_rounds()) return limit;
  return is_sparse(plan.compress.push) ? limit * std::sqrt(stages->pipelines()) : 0;
}

float Job::clip_scale_of(double squares) const {
  return clip_scale(squares, push_norm_limit());
}

double Job::learning_rate(double samples) const {
  const double epochs = samples / static_cast<double>(data.train->size());
  return plan.optimizer.learning_rate * lr_schedule->factor(epochs, plan.stop.epochs);
}

bool Job::continues_bound() const {
  return resumed && consistency->has_moving_bound() &&
         make_consistency(resumed->plan.consistency)->has_moving_bound();
}

std::int64_t Job::first_bound() const {
  if (!continues_bound()) return consistency->first_bound();
  const std::int64_t stored = resumed->manifest.scheduler.bound.staleness;
  return std::clamp(stored, consistency->bound(), consistency->largest_bound());
}

void Job::initial_values(int parameter, float* out) const {
  if (initial_weights.empty()) return model->initialize(parameter, plan.seed, out);
  const Blob& values = initial_weights[static_cast<std::size_t>(parameter)];
  std::copy_n(values.as_floats(), values.size() / sizeof(float), out);
}

Expected<std::shared_ptr<const Model>> make_model(const Plan& plan, const Dataset& data) {
  auto frozen = parse_freeze(plan.fine_tuning.freeze, plan.model.size());
  if (!frozen) return frozen.error();
  auto precisions = parse_precision(plan.precision, plan.model);
  if (!precisions) return precisions.error();
  return Model::build(plan.model, plan.loss, data.sample_shape(), data.classes(),
                      data.target_count(), data.label_count(), std::move(*frozen),
                      std::move(*precisions));
}

Expected<std::shared_ptr<const Job>> make_job(const Plan& given, TrainTest data,
                                              JobOptions options) {
  const Plan plan = with_automatic_settings(given);
  if (const auto valid = validate(plan); !valid) return valid.error();
  if (data.test->sample_shape() != data.train->sample_shape())
    return Error{concat("the test samples are ", data.test->sample_shape(),
                        ", the training samples ", data.train->sample_shape(),
                        "; give both the same shape")};
  auto model = options.model ? Expected(options.model) : make_model(plan, *data.train);
  if (!model) return model.error();
  if ((*model)->parameter_count() == 0)
    return Error{"the model has no parameters, so there is nothing to train; add a linear layer"};
  if ((*model)->trained_count() == 0)
    return Error{
        "fine_tuning.freeze: all layers with parameters are frozen, so there is nothing to train; "
        "give --freeze fewer layers"};
  if (const auto fits = check_batch_norm(**model, plan); !fits) return fits.error();
  auto job = std::make_shared<Job>();
  job->given = given;
  job->plan = plan;
  job->data = std::move(data);
  job->model = *model;
  job->layout = std::make_shared<Layout>(balanced_layout(**model, plan.shards));
  for (std::uint32_t shard = 0; shard < plan.shards; ++shard) {
    if (!job->layout->blocks_of(ShardId(shard)).empty()) continue;
    const auto blocks = job->layout->blocks().size();
    return Error{concat("shards: ", plan.shards, " are more than the ", blocks,
                        " blocks of this model; give --shards ",
                        blocks == 1 ? "1" : concat("1 to ", blocks))};
  }
  job->consistency = make_consistency(plan.consistency);
  auto stages = make_stages(plan, *job->model, *job->layout, *job->consistency);
  if (!stages) return stages.error();
  job->stages = std::move(*stages);
  if (const auto fits = check_local_steps(plan); !fits) return fits.error();
  if (const auto fits = check_delay_policy(plan); !fits) return fits.error();
  job->shard_settings = shard_optimizer(plan);
  auto optimizer = make_optimizer(job->shard_settings);
  if (const auto fits = check_prediction(plan, *optimizer); !fits) return fits.error();
  job->delay_policy = make_delay_policy(plan);
  if (job->delay_policy)
    optimizer = std::make_unique<DelayAware>(std::move(optimizer), job->delay_policy);
  job->optimizer = std::move(optimizer);
  auto ranges = make_update_ranges(job->shard_settings, *job->model, *job->layout);
  if (!ranges) return ranges.error();
  job->update_ranges = std::move(*ranges);
  if (const auto local = add_local_steps(*job); !local) return local.error();
  note_small_limit(*job);
  job->lr_schedule = make_lr_schedule(plan.lr_schedule);
  job->push_codecs = PushCodecs::make(plan.compress.push, iterations_in(1, plan, *job->data.train));
  job->pull_codec = make_codec(plan.compress.pull);
  job->activation_codec = make_codec(plan.compress.activations);
  job->activation_gradient_codec = make_codec(plan.compress.activation_gradients);
  if (const auto fits = add_split(*job); !fits) return fits.error();
  job->orders = std::make_shared<EpochOrders>(job->data.train->size(), plan.seed, job->split);
  auto devices = parse_devices(plan.device, plan.workers, plan.shards);
  if (!devices) return devices.error();
  job->devices = std::move(*devices);
  job->executors = options.executors ? std::move(options.executors) : make_executor;
  if (const auto there = check_devices(*job, options.here); !there) return there.error();
  if (const auto fits = check_compression(*job); !fits) return fits.error();
  // With local steps, the weights of the workers differ.
  const auto versions = static_cast<std::size_t>(
      job->local_optimizer ? plan.workers : job->stages->weight_versions());
  job->packed = std::make_shared<PackCache>(std::max(kPackedVersions, versions + 1));
  job->profile = std::move(options.profile);
  job->cost_only = plan.simulated && plan.simulated->cost_only;
  job->faults = drawn_faults(plan);
  job->stragglers = with_starts(plan.stragglers, iterations_of_worker(plan, *job->data.train));
  job->disturbances = std::make_shared<Disturbances>(plan.stragglers.size(), plan.faults.size());
  job->unreported = std::make_shared<Unreported>();
  job->replica_gauges = std::make_shared<std::vector<ReplicaGauge>>(plan.shards);
  if (job->cost_only) {
    for (const auto& block : job->layout->blocks()) {
      job->no_gradients.push_back(Blob::floats(block.floats));
      std::fill_n(job->no_gradients.back().mutable_floats(), block.floats, 0.0f);
    }
    job->no_activations = no_activations(*job);
  }
  if (const auto fits = check_augment(plan.augment, job->data.train->sample_shape()); !fits)
    return fits.error();
  if (!options.initial_weights.empty()) {
    auto weights = take_weights(std::move(options.initial_weights), *job->model);
    if (!weights) return weights.error();
    job->initial_weights = std::move(*weights);
  } else if (!plan.init_from.empty() && !options.resumed) {
    auto weights = load_initial_weights(plan.init_from, job->model->parameters(), plan.fine_tuning);
    if (!weights) return weights.error();
    job->initial_weights = filled(std::move(weights->values), *job->model, plan.seed);
    job->notes.insert(job->notes.end(), weights->notes.begin(), weights->notes.end());
  }
  job->checkpoints = std::move(options.checkpoints);
  job->data_checksum = options.data_checksum;
  job->resumed = std::move(options.resumed);
  const std::uint64_t last = job->resumed ? job->resumed->manifest.number : 0;
  job->next_checkpoint = options.next_checkpoint > 0 ? options.next_checkpoint : last + 1;
  job->run = std::move(options.run);
  job->computed_by_users = options.computed_by_users || options.user_loops;
  job->user_loops = std::move(options.user_loops);
  job->workers_return = options.workers_return;
  if (const auto fits = check_loss_scale(*job); !fits) return fits.error();
  if (const auto fits = check_updates(*job, options.here); !fits) return fits.error();
  if (const auto fits = check_kept_weights(*job, options.here); !fits) return fits.error();
  if (job->resumed)
    if (const auto fits = check_resumed(*job); !fits) return fits.error();
  if (job->resumed && job->resumed->manifest.lacks_residuals)
    job->notes.emplace_back(
        "compress.push: the checkpoint lacks residuals of some workers; the run resumes without "
        "them");
  return std::shared_ptr<const Job>(job);
}

}  // namespace leeway
