// `leeway partition`: shows the best split of a model into pipeline stages.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iomanip>
#include <iostream>

#include "actors/stage/pipeline_pieces.hpp"
#include "cli/commands.hpp"
#include "cli/lists.hpp"
#include "cli/partition_model.hpp"
#include "cli/pipeline.hpp"
#include "core/limits.hpp"
#include "core/rng.hpp"
#include "core/text.hpp"
#include "monitoring/format.hpp"
#include "policies/balance/micro_batches.hpp"
#include "runtime/flags/option.hpp"
#include "sim/world.hpp"

namespace leeway::cli {
namespace {

using namespace pipeline;

// For models without a plan.
constexpr std::uint32_t kDefaultStages = 2;
constexpr int kMicroBatches = 8;

std::string microseconds(std::int64_t ns) {
  return fixed(static_cast<double>(ns) * 1e-3, 1);
}

std::string time_text(std::int64_t ns) {
  if (ns < 1'000'000) return microseconds(ns) + " us";
  return fixed(static_cast<double>(ns) * 1e-6, 3) + " ms";
}

/// A micro-batch: the first samples of the data, or noise without data.
struct MeasuredBatch {
  MeasuredBatch(const PartitionModel& of, std::int64_t size)
      : x(static_cast<std::size_t>(size * of.model->input().count())),
        targets(static_cast<std::size_t>(
            size * (of.data ? std::max<std::int64_t>(of.data->target_count(), 1) : 1))),
        labels(static_cast<std::size_t>(size * (of.data ? of.data->label_count() : 1))),
        keys(static_cast<std::size_t>(size)) {
    Rng rng(of.plan.seed);
    for (auto& key : keys) key = rng.next();
    if (of.data) {
      std::vector<std::int64_t> samples(static_cast<std::size_t>(size));
      for (std::size_t i = 0; i < samples.size(); ++i)
        samples[i] = static_cast<std::int64_t>(i) % of.data->size();
      of.data->gather(samples, x.data(), labels.data(), targets.data());
    } else {
      for (auto& value : x) value = static_cast<float>(rng.uniform());
    }
    batch = {.size = size,
             .x = x.data(),
             .labels = labels.data(),
             .targets = targets.data(),
             .sample_keys = keys};
    if (of.model->loss() == plan::Loss::sigmoid_cross_entropy && of.data &&
        of.data->target_count() == 0)
      batch.targets = nullptr;
  }
  MeasuredBatch(const MeasuredBatch&) = delete;  // the batch points into the vectors
  MeasuredBatch& operator=(const MeasuredBatch&) = delete;

  std::vector<float> x, targets;
  std::vector<std::int32_t> labels;
  std::vector<std::uint64_t> keys;
  Batch batch;
};

/// Expands one value for all stages to one value per stage.
Status expand(const char* flag, std::vector<std::int64_t>& values, std::size_t stages) {
  if (values.size() == 1) values.resize(stages, values[0]);
  if (values.size() == stages) return {};
  return Error{concat(flag, ": ", values.size(), " values for ", stages,
                      stages == 1 ? " stage" : " stages", "; give one, or one per stage")};
}

Expected<std::vector<DeviceSpec>> devices_of(const PartitionOptions& options,
                                             const plan::Pipeline& planned) {
  std::vector<std::int64_t> speeds{kUnitSpeed}, memory{kNoLimit};
  if (!options.speeds.empty()) {
    auto parsed = parse_speeds(options.speeds);
    if (!parsed) return parsed.error();
    speeds = std::move(*parsed);
  }
  if (!options.memory.empty()) {
    auto parsed = parse_sizes(options.memory);
    if (!parsed) return parsed.error();
    memory = std::move(*parsed);
  }
  const int stages = options.stages.value_or(
      speeds.size() > 1 ? static_cast<int>(speeds.size())
                        : static_cast<int>(std::max(planned.stages, kDefaultStages)));
  if (stages < 1 || stages > kMaxStages)
    return Error{concat("stages: ", stages, " is not allowed; give --stages 1 to ", kMaxStages)};
  if (auto ok = expand("--speeds", speeds, static_cast<std::size_t>(stages)); !ok)
    return ok.error();
  if (auto ok = expand("--memory", memory, static_cast<std::size_t>(stages)); !ok)
    return ok.error();
  std::vector<DeviceSpec> devices;
  for (std::size_t i = 0; i < speeds.size(); ++i) devices.push_back({speeds[i], memory[i]});
  return devices;
}

/// The parsed command line.
struct Request {
  PartitionModel model;
  plan::World world;
  PartitionProblem problem;
  std::string split;         // empty: search the best
  const char* split_from{};  // the flag or key that gives `split`, for errors
};

Spec spec_of(const PartitionOptions& options, const Plan& plan, std::size_t stages) {
  const plan::Pipeline& planned = plan.pipeline;
  const bool piped = planned.stages > 1;
  Spec spec{.schedule = options.schedule.value_or(planned.schedule),
            .stages = static_cast<int>(stages),
            .micro_batches = options.micro_batches.value_or(
                piped ? static_cast<int>(plan.micro_batches) : kMicroBatches)};
  const int usual = usual_chunks(spec.schedule);
  const bool as_planned = piped && spec.schedule == planned.schedule;
  spec.chunks = options.chunks.value_or(as_planned ? static_cast<int>(planned.chunks) : usual);
  return spec;
}

Expected<Request> make_request(const PartitionOptions& options) {
  auto model = partition_model(options.target);
  if (!model) return model.error();
  Request request{std::move(*model), {}, {}, {}, options.split ? "--split" : "pipeline.split"};
  Plan& plan = request.model.plan;
  const plan::Pipeline planned = plan.pipeline;
  auto devices = devices_of(options, planned);
  if (!devices) return devices.error();
  request.world = plan.simulated.value_or(plan::World{});
  if (!options.world.empty()) {
    const auto world = sim::parse_world(options.world, request.world);
    if (!world) return Error{concat("--", world.error().text)};
    request.world = *world;
  }
  Spec spec = spec_of(options, plan, devices->size());
  if (const auto note = pipeline::renaming_note(spec.schedule); !note.empty())
    std::cerr << "leeway: " << note << '\n';
  spec.schedule = pipeline::current_name(spec.schedule);
  if (const auto valid = validate(spec); !valid) return valid.error();
  plan.micro_batches = static_cast<std::uint32_t>(spec.micro_batches);
  if (options.batch) plan.batch = *options.batch;
  plan.lease_size = 0;  // the lease size is irrelevant here and must not be refused
  if (const auto valid = validate(plan); !valid) return valid.error();
  // The plan's split is valid only for its number of chunks.
  if (spec.stages == static_cast<int>(planned.stages) &&
      spec.chunks == static_cast<int>(planned.chunks))
    request.split = planned.split;
  if (options.split) request.split = *options.split == "none" ? "" : *options.split;
  std::vector<LayerTime> times;
  if (options.measure) {
    const MeasuredBatch batch(request.model, micro_batch_size(plan));
    times = measured_times(request.model.model, batch.batch, make_cpu_executor());
  }
  request.problem = partition_problem(plan, *request.model.model, spec, request.world, times);
  request.problem.devices = std::move(*devices);
  return request;
}

void print_layers(const PartitionProblem& problem, const Partition& partition) {
  std::size_t width = 5;
  for (const auto& piece : problem.pieces)
    width = std::max(width, piece.name.size() + piece.kind.size() + 1);
  const auto name = [&](const std::string& text) -> std::ostream& {
    return std::cout << text << std::string(width - std::min(width, text.size()), ' ');
  };
  name("layer") << "  forward us  backward us     sends   weights  stage\n";
  for (std::size_t index = 0; index < partition.chunks.size(); ++index) {
    const pipeline::PieceRange& chunk = partition.chunks[index];
    const int stage = placement_of(problem.spec).stage_of(static_cast<int>(index));
    for (int i = chunk.first; i < chunk.end; ++i) {
      const Piece& piece = problem.pieces[static_cast<std::size_t>(i)];
      name(concat(piece.name, ' ', piece.kind))
          << std::setw(12) << microseconds(piece.ns.forward) << std::setw(13)
          << microseconds(piece.ns.backward_input + piece.ns.backward_weights) << std::setw(10)
          << size_text(piece.output_bytes) << std::setw(10) << size_text(piece.weight_bytes)
          << std::setw(7) << stage
          << (i + 1 == chunk.end && i + 1 < static_cast<int>(problem.pieces.size()) ? "  | split"
                                                                                    : "")
          << '\n';
    }
  }
}

void print_chunks(const PartitionProblem& problem, const Partition& partition) {
  std::size_t width = 6;
  for (const pipeline::PieceRange& chunk : partition.chunks)
    width = std::max(width, text_of(chunk, problem.pieces).size());
  std::cout << "\nstage  " << std::left << std::setw(static_cast<int>(width)) << "layers"
            << std::right << "   speed  forward us  backward us  of the pace     sends   link us\n";
  for (std::size_t index = 0; index < partition.chunks.size(); ++index) {
    const pipeline::PieceRange& chunk = partition.chunks[index];
    const auto stage =
        static_cast<std::size_t>(placement_of(problem.spec).stage_of(static_cast<int>(index)));
    const double share = static_cast<double>(chunk.ns.of_micro_batch()) /
                         static_cast<double>(std::max<std::int64_t>(partition.slowest_ns, 1));
    std::cout << std::setw(5) << stage << "  " << std::left << std::setw(static_cast<int>(width))
              << text_of(chunk, problem.pieces) << std::right << std::setw(8)
              << fixed(static_cast<double>(problem.devices[stage].speed) / kUnitSpeed, 3)
              << std::setw(12) << microseconds(chunk.ns.forward) << std::setw(13)
              << microseconds(chunk.ns.backward_input + chunk.ns.backward_weights) << std::setw(13)
              << percent(share) << std::setw(10)
              << (chunk.link_bytes > 0 ? size_text(chunk.link_bytes) : "") << std::setw(10)
              << (chunk.link_bytes > 0 ? microseconds(chunk.link_ns) : "") << '\n';
  }
}

void print_memory(const PartitionProblem& problem, const Partition& partition) {
  std::cout << "\nmemory     weights  gradients  optimizer  activations   working     total   "
               "limit\n";
  for (std::size_t stage = 0; stage < partition.memory.size(); ++stage) {
    const StageMemory& memory = partition.memory[stage];
    const std::int64_t limit = problem.devices[stage].memory_bytes;
    std::cout << "stage " << std::left << std::setw(3) << stage << std::right << std::setw(9)
              << size_text(memory.weights) << std::setw(11) << size_text(memory.gradients)
              << std::setw(11) << size_text(memory.optimizer) << std::setw(13)
              << size_text(memory.activations) << std::setw(10) << size_text(memory.working)
              << std::setw(10) << size_text(memory.total()) << std::setw(10)
              << (limit == kNoLimit ? "none" : size_text(limit)) << '\n';
  }
}

void print_verdict(const PartitionProblem& problem, const Partition& partition) {
  const auto index = static_cast<std::size_t>(partition.slowest);
  std::cout << "\nThe pace is " << time_text(partition.slowest_ns) << " per micro-batch, set by ";
  const auto& layers = problem.pieces;
  const bool chunks = problem.spec.chunks > 1;
  if (partition.by_link && chunks)
    std::cout << "the link after stage " << partition.slowest << ", for all chunks.\n";
  else if (partition.by_link)
    std::cout << "the link after layer "
              << layers[static_cast<std::size_t>(partition.chunks[index].end) - 1].name
              << ", an activation forward and a gradient back.\n";
  else
    std::cout << "stage " << partition.slowest << ", forward and backward of "
              << (chunks ? std::string("all its chunks")
                         : "layers " + text_of(partition.chunks[index], layers))
              << ".\n";
  std::int64_t unsplit_ns = 0;
  for (const auto& piece : problem.pieces) unsplit_ns += piece.ns.of_micro_batch();
  const auto table = make_table(problem.spec);
  if (!table) return;
  const auto timeline = play(*table, partition.costs());
  if (!timeline || timeline->length == 0) return;
  const double update = static_cast<double>(unsplit_ns) * problem.spec.micro_batches;
  const auto bubble = timeline->bubble();
  std::cout << "An update of " << problem.spec.micro_batches << " micro-batches with "
            << problem.spec.schedule << " takes " << time_text(timeline->length) << ", "
            << fixed(update / static_cast<double>(timeline->length), 2)
            << " times as fast as one stage of speed 1; bubble "
            << percent(static_cast<double>(bubble.part) / static_cast<double>(bubble.whole))
            << ".\nThe split: --split " << text_of(partition, problem.pieces) << '\n';
}

}  // namespace

CLI::App* add_partition(CLI::App& app, PartitionOptions& options) {
  auto* command =
      app.add_subcommand("partition", "Show the best split of a model into pipeline stages");
  add_value(*command, "MODEL", options.target,
            "Plan file, scenario, or a model for images of 1x28x28: mlp, lenet5, vgg_like, "
            "small_resnet or logistic_regression")
      ->required();
  add_value(*command, "--stages", options.stages,
            "Stages [from the plan; else one per value of --speeds; else 2]",
            concat("1 to ", kMaxStages));
  add_value(*command, "--schedule", options.schedule,
            "A schedule of `leeway schedule` [from the plan; else 1f1b]");
  add_value(*command, "--micro-batches", options.micro_batches,
            "Micro-batches per update [from a plan with stages; else 8]", "1 or more");
  add_value(*command, "--chunks", options.chunks,
            "Chunks of the model per stage, for schedules with several [from the plan; else 2]",
            concat("1 to ", limits::kMaxChunks));
  add_value(*command, "--batch", options.batch, "Samples of all micro-batches [from the plan]",
            "1 or more");
  add_value(*command, "--speeds", options.speeds,
            "Speeds of the stages' devices, in order: 1,2,0.5");
  add_value(*command, "--memory", options.memory,
            "Memory of a stage, one value for all or one per stage: 512MB,2GiB");
  add_value(*command, "--world", options.world,
            "Speed, memory bandwidth and link of a device of speed 1, as for scenarios: "
            "speed=100,memory=20,link=1 or @world.toml");
  add_switch(*command, "--measure", options.measure,
             "Measure each layer on this machine instead of estimating it from its shape");
  add_value(
      *command, "--split", options.split,
      "Use this split instead of the best: 0-3,4-7, or layers by kind; none searches the best "
      "[from the plan]");
  return command;
}

int partition(const PartitionOptions& options) {
  const auto request = make_request(options);
  if (!request) return refuse(request.error());
  const PartitionProblem& problem = request->problem;
  const auto answer = find_partition(problem, request->split, request->split_from);
  if (!answer) return refuse(answer.error());
  const std::int64_t samples = micro_batch_size(request->model.plan);
  const std::int64_t most = largest_micro_batch(request->model.plan);
  std::cout << request->model.plan.name << " in micro-batches of " << samples
            << (samples == 1 ? " sample" : " samples") << ", on " << problem.spec.stages
            << (problem.spec.stages == 1 ? " stage" : " stages") << ".\n";
  if (most > samples)
    std::cout << "With batches by speed, micro-batches have up to " << most
              << " samples; memory is for the largest.\n";
  std::cout << "Times are ";
  if (options.measure)
    std::cout << "measured on one core of this machine";
  else
    std::cout << "estimated from shapes, at " << request->world.speed << " GFLOP/s and "
              << request->world.memory << " GB/s";
  std::cout << "; links have " << request->world.link << " Gbit/s.\n\n";
  print_layers(problem, *answer);
  print_chunks(problem, *answer);
  print_memory(problem, *answer);
  print_verdict(problem, *answer);
  return kExitOk;
}

}  // namespace leeway::cli
