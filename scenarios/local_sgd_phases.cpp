#include "local_sgd_phases.hpp"

#include <leeway/core/rng.hpp>
#include <leeway/core/text.hpp>
#include <leeway/kernels/threads.hpp>
#include <leeway/kv.hpp>
#include <leeway/models/datasets/permutation.hpp>
#include <leeway/models/pass.hpp>
#include <leeway/policies/optimizer/optimizer.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <numbers>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace leeway::study {
namespace {

constexpr std::size_t kWorkers = std::size(kStepSeconds);
constexpr double kLeastRate = 1e-6;  // at the end of the lr schedule
/// Separate the random streams of a seed.
constexpr std::uint64_t kPartsStream = 1, kOrderStream = 2, kWeightsStream = 3;
/// How often a worker looks whether a push that it waits for is applied.
constexpr Duration kGlance = microseconds(1);

Duration step_time(std::size_t worker) {
  return nanoseconds(std::llround(kStepSeconds[worker] * 1e9));
}

/// The training samples in one part for each worker, each part in a new order for each pass.
class Parts {
 public:
  Parts(std::int64_t samples, std::uint64_t seed)
      : seed_(seed), all_(permutation(samples, Rng::stream(seed, kPartsStream))) {}

  /// The sample at this position of a part. Later passes follow the first.
  std::int64_t sample(std::size_t part, std::int64_t position) {
    const std::int64_t size = std::ssize(all_) / static_cast<std::int64_t>(kWorkers);
    Order& order = orders_[part];
    if (const std::int64_t pass = position / size; pass != order.pass) {
      const auto salt = static_cast<std::uint64_t>(pass) * kWorkers + part;
      order = {pass, permutation(size, Rng::stream(seed_, kOrderStream, salt))};
    }
    const std::int64_t place = order.places[static_cast<std::size_t>(position % size)];
    return all_[part * static_cast<std::size_t>(size) + static_cast<std::size_t>(place)];
  }

 private:
  struct Order {
    std::int64_t pass = -1;
    std::vector<std::int64_t> places;
  };
  const std::uint64_t seed_;
  const std::vector<std::int64_t> all_;
  std::array<Order, kWorkers> orders_;
};

/// The computations of a run. Its workers use it one after the other.
class Learner {
 public:
  Learner(const PhaseTask& task, std::shared_ptr<const Model> model, std::int64_t steps,
          std::uint64_t seed)
      : task_(task),
        steps_(steps),
        on_(make_cpu_executor()),
        optimizer_(make_optimizer(task.inner)),
        parts_(task.data->size(), seed),
        training_(model, kPhaseBatch, true, {.on = on_}),
        evaluation_(model, std::min(evaluation_batch(*model), task.test->size()), false,
                    {.on = on_}) {
    Rng rng = Rng::stream(seed, kWeightsStream);
    for (const Parameter& parameter : model->parameters()) {
      // As PyTorch's nn.Linear begins: uniform within 1 / sqrt(inputs).
      const double inputs = model->output_of(model->input_of(parameter.layer)).count();
      const std::int64_t count = parameter.spec.shape.count();
      std::vector<float>& values = first_.emplace_back(static_cast<std::size_t>(count));
      for (float& one : values)
        one = static_cast<float>((2 * rng.uniform() - 1) / std::sqrt(inputs));
      Arrays& arrays = arrays_.emplace_back();
      for (Blob* blob : {&arrays.weights, &arrays.gradient}) *blob = Blob::floats(count);
      for (int slot = 0; slot < optimizer_->slots(); ++slot)
        arrays.state.push_back(Blob::floats(count));
      const std::int64_t rows = parameter.spec.shape[0];
      weight_slices_.push_back({0, rows, arrays.weights.as_floats()});
      gradient_slices_.push_back({0, rows, arrays.gradient.mutable_floats()});
    }
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      weight_views_.emplace_back(&weight_slices_[i], 1);
      gradient_views_.emplace_back(&gradient_slices_[i], 1);
    }
  }

  const std::vector<Parameter>& parameters() const { return training_.model().parameters(); }
  const std::vector<float>& first_weights(std::size_t parameter) const { return first_[parameter]; }
  float* weights(std::size_t parameter) { return arrays_[parameter].weights.mutable_floats(); }

  /// Trains the weights for a phase, from this step of the part on.
  void train(std::size_t part, std::int64_t first) {
    for (Arrays& arrays : arrays_)
      for (std::size_t slot = 0; slot < arrays.state.size(); ++slot)
        std::fill_n(arrays.state[slot].mutable_floats(), arrays.weights.size() / sizeof(float),
                    optimizer_->initial_state(static_cast<int>(slot)));
    for (std::int64_t step = 0; step < kPhaseSteps; ++step) {
      std::vector<std::int64_t> samples;
      for (std::int64_t i = 0; i < kPhaseBatch; ++i)
        samples.push_back(parts_.sample(part, (first + step) * kPhaseBatch + i));
      training_.forward(gather(*task_.data, samples), weight_views_);
      for (int layer = training_.model().layers(); layer-- > 0;)
        training_.backward(layer, weight_views_, gradient_views_);
      update(step == 0 ? task_.inner.learning_rate : rate_at(first + step), step + 1);
    }
  }

  EvaluationResult evaluate() {
    EvaluationResult all;
    std::vector<std::int64_t> samples;
    const std::int64_t size = task_.test->size(), most = evaluation_batch(evaluation_.model());
    for (std::int64_t begin = 0; begin < size; begin += most) {
      samples.resize(static_cast<std::size_t>(std::min(most, size - begin)));
      std::iota(samples.begin(), samples.end(), begin);
      const PassResult found = evaluation_.forward(gather(*task_.test, samples), weight_views_);
      all.loss += found.loss * static_cast<double>(samples.size()) / static_cast<double>(size);
      all.accuracy += static_cast<double>(found.correct) / static_cast<double>(size);
    }
    return all;
  }

 private:
  struct Arrays {
    Blob weights, gradient;
    std::vector<Blob> state;
  };

  Batch gather(const Dataset& from, const std::vector<std::int64_t>& samples) {
    x_.resize(samples.size() * static_cast<std::size_t>(from.sample_shape().count()));
    labels_.resize(samples.size());
    from.gather(samples, x_.data(), labels_.data(), nullptr);
    return {.size = std::ssize(samples), .x = x_.data(), .labels = labels_.data()};
  }

  /// Half a cosine, after this many steps of a part.
  double rate_at(std::int64_t step) const {
    const double share = static_cast<double>(step) / static_cast<double>(steps_);
    const double factor = (1 + std::cos(std::numbers::pi * std::min(share, 1.0))) / 2;
    return kLeastRate + (task_.inner.learning_rate - kLeastRate) * factor;
  }

  void update(double rate, std::int64_t progress) {
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      Arrays& arrays = arrays_[i];
      const Parameter& parameter = parameters()[i];
      kernels::UpdateBuffers buffers{.count = parameter.spec.shape.count()};
      buffers.w = buffers.w_out = arrays.weights.mutable_floats();
      buffers.g = arrays.gradient.as_floats();
      for (std::size_t slot = 0; slot < arrays.state.size(); ++slot)
        buffers.state[slot] = buffers.state_out[slot] = arrays.state[slot].mutable_floats();
      optimizer_->update(*on_, buffers,
                         {.learning_rate = rate, .progress = static_cast<double>(progress)});
    }
  }

  const PhaseTask& task_;
  const std::int64_t steps_;  // of a part in the whole run
  const std::shared_ptr<Executor> on_;
  const std::unique_ptr<Optimizer> optimizer_;
  Parts parts_;
  Pass training_, evaluation_;
  std::vector<std::vector<float>> first_;
  std::vector<Arrays> arrays_;
  std::vector<RowSlice<const float>> weight_slices_;
  std::vector<RowSlice<float>> gradient_slices_;
  std::vector<ParameterView> weight_views_;
  std::vector<GradientView> gradient_views_;
  std::vector<float> x_;
  std::vector<std::int32_t> labels_;
};

/// The loops of the workers. In a simulation one runs at a time, so they share this object.
class PhaseRun {
 public:
  PhaseRun(const PhaseTask& task, const PhaseSettings& settings,
           const std::shared_ptr<const Model>& model)
      : settings_(settings),
        most_(settings.phases * kRoundSteps),
        learner_(task, model, settings.phases * kPhaseSteps, settings.seed) {
    set_next_due();
  }

  void loop(kv::Store& store) {
    kernels::use_one_compute_thread();
    declare(store);
    const std::size_t worker = store.rank();
    while (steps_ < most_) {
      pull(store);
      train(store, least_used_part(worker));
      ends_[worker] = store.simulated_time() + nanoseconds(kPhaseSteps * step_time(worker).ns);
      store.compute(*ends_[worker] - store.simulated_time());
      if (steps_ < most_) push(store);
      if (due_ && settings_.asynchronous && steps_ < most_) {
        pull(store);
        store.end_iteration();
      }
      ends_[worker].reset();
      if (!settings_.asynchronous || steps_ >= most_) continue;
      wait_for_group(store);
    }
  }

  /// Evaluates the last weights of synchronous workers, which no worker pulls.
  std::vector<EvaluationResult> evaluations(const Result& result) {
    if (due_) {
      for (std::size_t i = 0; i < learner_.parameters().size(); ++i)
        std::ranges::copy(result.weight(learner_.parameters()[i].name), learner_.weights(i));
      evaluate();
    }
    return evaluations_;
  }

 private:
  struct Due {
    std::int64_t steps = 0;
    Duration at;
  };

  void set_next_due() {
    next_due_ = std::min(next_due_ + settings_.evaluate_every * kRoundSteps, most_);
  }

  void declare(kv::Store& store) const {
    for (std::size_t i = 0; i < learner_.parameters().size(); ++i) {
      const Parameter& parameter = learner_.parameters()[i];
      store.init(parameter.name, {learner_.first_weights(i).data(), parameter.spec.shape});
    }
    store.set_optimizer(settings_.outer);
  }

  /// Begins an iteration of the store, with its weights.
  void pull(kv::Store& store) {
    std::vector<std::pair<kv::Key, kv::View>> all;
    for (std::size_t i = 0; i < learner_.parameters().size(); ++i)
      all.emplace_back(learner_.parameters()[i].name,
                       kv::View(learner_.weights(i), learner_.parameters()[i].spec.shape));
    store.pull(all).wait();
    if (due_) evaluate();
  }

  void evaluate() {
    EvaluationResult& last = evaluations_.emplace_back(learner_.evaluate());
    last.now = Instant{} + due_->at;
    last.samples_trained = static_cast<std::uint64_t>(due_->steps * kPhaseBatch);
    due_.reset();
  }

  /// That of the worker, if several parts are used least.
  std::size_t least_used_part(std::size_t worker) const {
    std::size_t least = worker;
    for (std::size_t part = 0; part < kWorkers; ++part)
      if (phases_of_[part] < phases_of_[least]) least = part;
    return least;
  }

  /// Trains for a phase, and writes the change to the store.
  void train(kv::Store& store, std::size_t part) {
    learner_.train(part, phases_of_[part]++ * kPhaseSteps);
    const bool halves = settings_.asynchronous && !settings_.buffered;
    const auto factor = static_cast<float>(
        halves ? std::sqrt(static_cast<double>(kWorkers)) / static_cast<double>(kWorkers) : 1);
    for (std::size_t i = 0; i < learner_.parameters().size(); ++i) {
      const std::string& name = learner_.parameters()[i].name;
      const kv::View change = store.gradient(name);
      const float* const before = store.view(name).floats();
      const float* const after = learner_.weights(i);
      float* const to = change.floats();
      for (std::int64_t k = 0; k < change.shape.count(); ++k)
        to[k] = factor * (before[k] - after[k]);
    }
  }

  /// Returns when the change is applied: if the workers are synchronous, with those of all.
  void push(kv::Store& store) {
    kv::Handle last;
    for (const Parameter& parameter : learner_.parameters()) last = store.push(parameter.name);
    steps_ += kPhaseSteps;
    if (steps_ >= next_due_) {
      due_ = {steps_, store.simulated_time()};
      set_next_due();
    }
    last.wait();
  }

  /// Waits until the pushes of all workers whose phases end within the grace window are applied.
  void wait_for_group(kv::Store& store) {
    if (!window_begin_) window_begin_ = store.simulated_time();
    const Duration end = *window_begin_ + nanoseconds(std::llround(settings_.grace * 1e9));
    bool waited = false;
    for (const std::int64_t group = groups_; groups_ == group;) {
      std::optional<Duration> last;
      for (const auto& one : ends_)
        if (one && *one <= end) last = std::max(last.value_or(*one), *one);
      if (last) {
        store.compute(std::max(*last - store.simulated_time(), kGlance));
        waited = true;
      } else {
        ++groups_;
        window_begin_.reset();
      }
    }
    if (!waited) return;
    // The store has the weights of its next iteration since the push.
    (void)store.iteration();
    store.end_iteration();
  }

  const PhaseSettings& settings_;
  const std::int64_t most_;  // steps of the run
  Learner learner_;
  std::int64_t steps_ = 0;  // of the pushed phases
  std::int64_t next_due_ = 0;
  std::optional<Due> due_ = Due{};  // an evaluation
  std::vector<EvaluationResult> evaluations_;
  std::array<std::int64_t, kWorkers> phases_of_{};      // by part
  std::array<std::optional<Duration>, kWorkers> ends_;  // announced, of phases without a push
  std::optional<Duration> window_begin_;
  std::int64_t groups_ = 0;  // workers that have begun together
};

/// Messages and updates take next to no time.
plan::World fast_world() {
  plan::World world;
  world.speed = world.memory = 1e9;
  world.noise = world.jitter = world.link = 0;
  world.latency_us = world.local_latency_us = 1;
  return world;
}

}  // namespace

Result run_phases(const PhaseTask& task, const PhaseSettings& settings) {
  kernels::use_one_compute_thread();
  Result refused;
  refused.exit_code = 1;
  const auto model = Model::build({linear(task.hidden), relu(), linear(task.data->classes())},
                                  plan::Loss::softmax_cross_entropy, task.data->sample_shape(),
                                  task.data->classes(), 0);
  if (!model) {
    refused.error = model.error().text;
    return refused;
  }
  PhaseRun run(task, settings, *model);
  kv::Options options{.workers = kWorkers,
                      .shards = 1,
                      .consistency = settings.asynchronous ? asp() : bsp(),
                      .seed = settings.seed,
                      .world = fast_world()};
  if (settings.buffered) options.delay_policy = fed_buff(kWorkers, 0);
  try {
    Result result = kv::simulate([&](kv::Store& store) { run.loop(store); }, options);
    result.ran = result.ok();
    if (result.ran) result.totals.evaluations = run.evaluations(result);
    return result;
  } catch (const std::exception& error) {
    refused.error = error.what();
    return refused;
  }
}

}  // namespace leeway::study
