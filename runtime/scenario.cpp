#include "runtime/scenario.hpp"

#include <algorithm>
#include <limits>

#include "policies/pipeline/schedule.hpp"

namespace leeway {

Scenario::Scenario(std::string name, std::string summary) : summary_(std::move(summary)) {
  plan_.name = std::move(name);
}
Scenario::Scenario(Plan plan, std::string summary)
    : plan_(std::move(plan)), summary_(std::move(summary)) {
  if (plan_.pipeline.stages > 1) pipelines_ = plan_.workers / plan_.pipeline.stages;
}

Scenario& Scenario::description(std::string text) {
  description_ = std::move(text);
  return *this;
}
Scenario& Scenario::data(plan::DataSource source) {
  plan_.data = std::move(source);
  return *this;
}
Scenario& Scenario::data(const std::string& name, DataFactory factory) {
  register_data(name, std::move(factory));
  plan_.data = plan::CustomData{name};
  return *this;
}
Scenario& Scenario::model(std::vector<plan::Layer> layers) {
  plan_.model = std::move(layers);
  return *this;
}
Scenario& Scenario::loss(plan::Loss loss) {
  plan_.loss = loss;
  return *this;
}
Scenario& Scenario::optimizer(plan::Optimizer optimizer) {
  plan::Optimizer& planned = plan_.optimizer;
  optimizer.no_decay_on_biases |= planned.no_decay_on_biases;
  optimizer.eight_bit_state |= planned.eight_bit_state;
  optimizer.whole_steps |= planned.whole_steps;
  if (optimizer.clip_value == 0) optimizer.clip_value = planned.clip_value;
  if (optimizer.clip_norm == 0) optimizer.clip_norm = planned.clip_norm;
  if (optimizer.groups.empty()) optimizer.groups = std::move(planned.groups);
  planned = std::move(optimizer);
  return *this;
}

Scenario& Scenario::clip_norm(double most) {
  plan_.optimizer.clip_norm = most;
  return *this;
}

Scenario& Scenario::clip_value(double most) {
  plan_.optimizer.clip_value = most;
  return *this;
}

Scenario& Scenario::no_decay_on_biases(bool on) {
  plan_.optimizer.no_decay_on_biases = on;
  return *this;
}

Scenario& Scenario::eight_bit_state(bool on) {
  plan_.optimizer.eight_bit_state = on;
  return *this;
}

Scenario& Scenario::whole_steps(bool on) {
  plan_.optimizer.whole_steps = on;
  return *this;
}

Scenario& Scenario::parameter_group(std::string names, double rate, double decay) {
  plan_.optimizer.groups.push_back({std::move(names), rate, decay});
  return *this;
}
Scenario& Scenario::lr_schedule(plan::LrSchedule lr_schedule) {
  plan_.lr_schedule = lr_schedule;
  return *this;
}
Scenario& Scenario::consistency(plan::Consistency policy) {
  plan_.consistency = policy;
  return *this;
}
Scenario& Scenario::delay_policy(plan::DelayPolicy policy) {
  plan_.delay_policy = policy;
  return *this;
}
Scenario& Scenario::local_steps(plan::LocalSteps steps) {
  plan_.local_steps = steps;
  return *this;
}
Scenario& Scenario::split_data(plan::SplitData split) {
  plan_.split_data = split;
  return *this;
}
Scenario& Scenario::aggregate(plan::Aggregate groups) {
  plan_.aggregate = groups;
  return *this;
}

Scenario& Scenario::participation(double share) {
  plan_.participation = share;
  return *this;
}

Scenario& Scenario::compress_push(plan::Codec codec) {
  plan_.compress.push = codec;
  return *this;
}
Scenario& Scenario::compress_pull(plan::Codec codec) {
  plan_.compress.pull = codec;
  return *this;
}
Scenario& Scenario::compress_stages(plan::Codec activations, plan::Codec activation_gradients) {
  plan_.compress.activations = activations;
  plan_.compress.activation_gradients = activation_gradients;
  return *this;
}
Scenario& Scenario::balance(plan::Balance balance) {
  plan_.balance = balance;
  return *this;
}
Scenario& Scenario::workers(std::uint32_t count) {
  plan_.workers = count;
  return *this;
}
Scenario& Scenario::replicas(std::uint32_t count) {
  plan_.replicas = count;
  return *this;
}

Scenario& Scenario::shards(std::uint32_t count) {
  plan_.shards = count;
  return *this;
}
Scenario& Scenario::stages(std::uint32_t count) {
  plan_.pipeline.stages = count;
  count_stages();
  return *this;
}
Scenario& Scenario::pipelines(std::uint32_t count) {
  pipelines_ = count;
  count_stages();
  return *this;
}
/// Saturates on overflow; validation refuses the plan.
void Scenario::count_stages() {
  const std::uint64_t workers = std::uint64_t{pipelines_} * plan_.pipeline.stages;
  plan_.workers = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(workers, std::numeric_limits<std::uint32_t>::max()));
}
Scenario& Scenario::pipeline_schedule(std::string name, std::uint32_t chunks) {
  plan_.pipeline.chunks =
      chunks > 0 ? chunks : static_cast<std::uint32_t>(pipeline::usual_chunks(name));
  plan_.pipeline.schedule = std::move(name);
  return *this;
}
Scenario& Scenario::split(std::string chunks) {
  plan_.pipeline.split = std::move(chunks);
  return *this;
}
Scenario& Scenario::recompute(std::vector<std::uint32_t> stages) {
  plan_.pipeline.recompute = std::move(stages);
  return *this;
}
Scenario& Scenario::predict_weights(bool predicts) {
  plan_.pipeline.predict_weights = predicts;
  return *this;
}
Scenario& Scenario::batch(std::uint32_t samples) {
  plan_.batch = samples;
  return *this;
}
Scenario& Scenario::micro_batches(std::uint32_t count) {
  plan_.micro_batches = count;
  return *this;
}
Scenario& Scenario::prefetch(bool on) {
  plan_.prefetch = on;
  return *this;
}
Scenario& Scenario::augment(plan::Augment augment) {
  plan_.augment = augment;
  return *this;
}
Scenario& Scenario::device(std::string devices) {
  plan_.device = std::move(devices);
  return *this;
}
Scenario& Scenario::init_from(std::string path) {
  plan_.init_from = std::move(path);
  return *this;
}
Scenario& Scenario::loss_scale(double factor) {
  plan_.loss_scale = factor;
  return *this;
}

Scenario& Scenario::precision(std::string precisions) {
  plan_.precision = std::move(precisions);
  return *this;
}
Scenario& Scenario::fine_tuning(plan::FineTuning settings) {
  plan_.fine_tuning = std::move(settings);
  return *this;
}
Scenario& Scenario::freeze(std::string layers) {
  plan_.fine_tuning.freeze = std::move(layers);
  return *this;
}
Scenario& Scenario::lease_size(std::uint32_t samples) {
  plan_.lease_size = samples;
  return *this;
}
Scenario& Scenario::straggler(plan::Straggler straggler) {
  plan_.stragglers.push_back(straggler);
  return *this;
}
Scenario& Scenario::fault(plan::Fault fault) {
  plan_.faults.push_back(fault);
  return *this;
}
Scenario& Scenario::epochs(double count) {
  plan_.stop.epochs = count;
  return *this;
}
Scenario& Scenario::iterations(std::uint64_t count) {
  plan_.stop.iterations = count;
  return *this;
}
Scenario& Scenario::seconds(double count) {
  plan_.stop.seconds = count;
  return *this;
}
Scenario& Scenario::until_accuracy(double accuracy) {
  plan_.stop.accuracy = accuracy;
  return *this;
}
Scenario& Scenario::evaluate_every(double epochs) {
  plan_.evaluate_every = epochs;
  return *this;
}
Scenario& Scenario::checkpoint(plan::CheckpointsKind every, std::uint32_t keep) {
  plan_.checkpoints.every = every;
  plan_.checkpoints.keep = keep;
  return *this;
}
Scenario& Scenario::checkpoint_folder(std::string path) {
  plan_.checkpoints.directory = std::move(path);
  return *this;
}
Scenario& Scenario::simulated(plan::World world) {
  plan_.simulated = world;
  return *this;
}
Scenario& Scenario::strict(bool on) {
  strict_ = on;
  return *this;
}
Scenario& Scenario::decides(std::vector<std::string> flags) {
  decided_.insert(decided_.end(), flags.begin(), flags.end());
  return *this;
}

Scenario& Scenario::shows_default(const std::string& text, const std::vector<std::string>& flags) {
  for (const std::string& flag : flags) shown_defaults_[flag] = text;
  return *this;
}

Scenario& Scenario::seed(std::uint64_t seed) {
  plan_.seed = seed;
  return *this;
}

}  // namespace leeway
