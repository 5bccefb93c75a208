// Speed, memory and idle time of pipelines.
//
//   pipeline_bench [speed] [memory] [bubble] [--rounds 5] [--seconds 2] [--model gpt]
//
// Without arguments it runs all three studies.
// speed: samples per second of a transformer and of two convolutional networks in two stages on two
//   cores, split by measured layer times, interleaved with one worker on one core. Also prints the
//   limit of the split, one worker with the same micro-batches, and two workers.
// memory: activations of gpipe, 1f1b and 1f1b with recompute, predicted from shapes, and the
//   peak memory of a process that trains with each.
// bubble: idle share of the stages of a simulated pipeline with equal layers, without noise and
//   latency, compared with the schedules' closed forms.
#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>

#include "actors/job.hpp"
#include "actors/stage/pipeline_pieces.hpp"
#include "actors/stage/stage_memory.hpp"
#include "bench/child.hpp"
#include "bench/models.hpp"
#include "bench/random_samples.hpp"
#include "core/text.hpp"
#include "leeway.hpp"
#include "models/datasets/load.hpp"
#include "models/layer_times.hpp"
#include "policies/balance/micro_batches.hpp"
#include "policies/pipeline/play.hpp"

namespace {

using namespace leeway;

constexpr std::uint32_t kMicroBatches = 16;

template <class T>
T must(Expected<T> value) {
  if (!value) bench::fail(value.error().text);
  return std::move(*value);
}

/// Pins this thread and its future threads to cores 0 to count - 1.
void use_cores(int count) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int core = 0; core < count; ++core) CPU_SET(static_cast<std::size_t>(core), &set);
  sched_setaffinity(0, sizeof set, &set);
}

void register_random(const bench::Task& task) {
  const auto data = std::make_shared<bench::RandomSamples>(task, 2048);
  const auto few = std::make_shared<bench::RandomSamples>(task, 16);
  register_data("random", [=](std::uint64_t) { return Expected<TrainTest>(TrainTest{data, few}); });
}

/// One worker that trains on noise.
Plan plan_of(const bench::Task& task, std::uint32_t batch, std::uint64_t iterations) {
  Plan plan;
  plan.name = "pipeline-bench";
  plan.data = plan::CustomData{"random"};
  plan.model = task.layers;
  plan.optimizer = momentum(0.001, 0.9);
  plan.consistency = bsp();
  plan.workers = 1;
  plan.shards = 1;
  plan.batch = batch;
  plan.stop = {.epochs = 0, .iterations = iterations};
  plan.evaluate_every = 0;
  return plan;
}

void split_into_stages(Plan& plan, std::uint32_t stages, const std::string& schedule) {
  plan.workers = stages;
  plan.micro_batches = kMicroBatches;
  plan.pipeline.stages = stages;
  plan.pipeline.schedule = schedule;
}

Result run_or_fail(const Plan& plan) {
  Result result = run(plan, {.quiet = true});
  if (!result.ok()) bench::fail(result.error.empty() ? "interrupted" : result.error);
  return result;
}

const bench::Task& task_of(const std::string& model) {
  return bench::tasks().at(model);
}

// ---- speed ----

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Row {
  std::string name;
  int cores;
  Plan plan;
  double limit;  // speed-up that the stages' times and the bubble allow
  std::vector<double> figures;
};

/// A network, with a batch large enough for efficient micro-batches.
struct Network {
  const char* model;
  std::uint32_t batch;
};
constexpr Network kNetworks[] = {{"gpt", 256}, {"resnet", 256}, {"vgg", 256}};

/// The measured time of each layer on one core, for a micro-batch of this plan.
std::vector<LayerTime> times_of(const bench::Task& task, const Plan& plan) {
  const std::int64_t size = micro_batch_size(plan);
  const bench::RandomSamples data(task, size);
  const std::vector<std::uint64_t> keys(static_cast<std::size_t>(size));
  const Batch batch{.size = size, .x = data.x(0), .labels = data.labels(0), .sample_keys = keys};
  return measured_times(must(task.model()), batch, make_cpu_executor());
}

/// Sets the plan's best split; returns the largest speed-up over one core that it allows.
double choose_split(Plan& plan, const bench::Task& task, const std::vector<LayerTime>& times) {
  const plan::Pipeline& wanted = plan.pipeline;
  const pipeline::Spec spec{.schedule = wanted.schedule,
                            .stages = static_cast<int>(wanted.stages),
                            .micro_batches = static_cast<int>(plan.micro_batches),
                            .chunks = static_cast<int>(wanted.chunks)};
  const auto problem = partition_problem(plan, *must(task.model()), spec, plan::World{}, times);
  const auto partition = must(find_partition(problem, "", "split"));
  plan.pipeline.split = text_of(partition, problem.pieces);
  std::int64_t one_core = 0;
  for (const auto& piece : problem.pieces) one_core += piece.ns.of_micro_batch();
  const auto played = pipeline::play(must(pipeline::make_table(spec)), partition.costs());
  return static_cast<double>(one_core * spec.micro_batches) /
         static_cast<double>(must(played).length);
}

std::vector<Row> rows_of(const Network& of) {
  const bench::Task& task = task_of(of.model);
  const Plan whole = plan_of(task, of.batch, 8);
  Plan divided = whole;
  divided.micro_batches = kMicroBatches;
  std::vector<Row> rows = {
      {concat(of.model, ", batch ", of.batch, ": 1 worker, 1 core"), 1, whole, 1, {}},
      {concat("1 worker, 1 core, ", kMicroBatches, " micro-batches"), 1, divided, 1, {}}};
  const auto times = times_of(task, divided);
  for (const char* schedule : {"gpipe", "1f1b", "interleaved", "zb_h1", "zb_v", "2bw"}) {
    Plan piped = whole;
    split_into_stages(piped, 2, schedule);
    if (std::string_view(schedule) == "2bw") piped.consistency = ssp(1);
    piped.pipeline.chunks = static_cast<std::uint32_t>(pipeline::usual_chunks(schedule));
    const double limit = choose_split(piped, task, times);
    rows.push_back({concat("2 stages, 2 cores, ", schedule), 2, piped, limit, {}});
  }
  Plan two = whole;
  two.workers = 2;
  two.consistency = ssp(2);
  rows.push_back({"2 workers, 2 cores, ssp(2)", 2, two, 2, {}});
  return rows;
}

double rate_of(const Row& row) {
  use_cores(row.cores);
  return run_or_fail(row.plan).samples_per_second;
}

void print(const std::vector<Row>& rows) {
  std::printf("%-36s %8s %8s %8s %8s   %s\n", "samples/s", "median", "min", "max", "limit",
              "ratio: median (min to max)");
  for (const auto& row : rows) {
    const auto [least, most] = std::minmax_element(row.figures.begin(), row.figures.end());
    std::vector<double> ratios;
    for (std::size_t i = 0; i < row.figures.size(); ++i)
      ratios.push_back(row.figures[i] / rows.front().figures[i]);
    const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
    std::printf("%-36s %8.0f %8.0f %8.0f %8.2f   %.2f (%.2f to %.2f)%s%s\n", row.name.c_str(),
                median(row.figures), *least, *most, row.limit, median(ratios), *low, *high,
                row.plan.pipeline.split.empty() ? "" : "  ", row.plan.pipeline.split.c_str());
  }
  std::printf("\n");
}

void speed(const std::vector<std::string>& models, int rounds, double seconds) {
  for (const Network& of : kNetworks) {
    if (!models.empty() && std::find(models.begin(), models.end(), of.model) == models.end())
      continue;
    use_cores(1);
    register_random(task_of(of.model));
    auto rows = rows_of(of);
    for (Row& row : rows) {
      const double wanted = rate_of(row) * seconds / row.plan.batch;
      row.plan.stop.iterations = static_cast<std::uint64_t>(wanted) + 2 * row.plan.workers;
    }
    for (int round = 0; round < rounds; ++round) {
      for (auto& row : rows) row.figures.push_back(rate_of(row));
      std::fprintf(stderr, "%s: round %d of %d\n", of.model, round + 1, rounds);
    }
    print(rows);
  }
}

// ---- memory ----

struct Kept {
  const char* name;
  const char* schedule;
  bool recompute;
};
constexpr Kept kKept[] = {
    {"gpipe", "gpipe", false}, {"1f1b", "1f1b", false}, {"1f1b, recompute", "1f1b", true}};

Plan memory_plan(std::uint32_t stages, const Kept& kept) {
  Plan plan = plan_of(task_of("vgg"), 16 * kMicroBatches, 3);
  split_into_stages(plan, stages, kept.schedule);
  for (std::uint32_t stage = 0; kept.recompute && stage < stages; ++stage)
    plan.pipeline.recompute.push_back(stage);
  return plan;
}

/// Peak bytes of activations of all stages, predicted from shapes.
std::int64_t predicted(const Plan& plan) {
  const auto job = must(make_job(plan, must(load_data(plan.data, plan.seed))));
  const Stages& stages = *job->stages;
  std::int64_t bytes = 0;
  for (std::uint32_t stage = 0; stage < stages.count(); ++stage)
    bytes += predicted_memory(job->plan, *job->model, stages, stage).activations;
  return bytes;
}

/// Peak resident memory of this process, in bytes.
double peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) * 1024;
  bench::fail("/proc/self/status has no VmHWM");
}

/// Main function of a child process: trains and prints its peak memory.
void print_peak(std::uint32_t stages, std::size_t kept) {
  register_random(task_of("vgg"));
  run_or_fail(memory_plan(stages, kKept[kept]));
  std::printf("%.0f\n", peak_bytes());
}

void memory(int rounds) {
  register_random(task_of("vgg"));
  std::printf("%-8s %-18s %16s   %s\n", "stages", "MB", "kept, by shapes",
              "peak of the process: median (min to max)");
  for (const std::uint32_t stages : {2u, 4u})
    for (std::size_t kept = 0; kept < std::size(kKept); ++kept) {
      std::vector<double> peaks;
      for (int round = 0; round < rounds; ++round)
        peaks.push_back(bench::Child({"--peak", concat(stages), concat(kept)}).number() / 1e6);
      const auto [least, most] = std::minmax_element(peaks.begin(), peaks.end());
      std::printf("%-8u %-18s %16.1f   %.1f (%.1f to %.1f)\n", stages, kKept[kept].name,
                  static_cast<double>(predicted(memory_plan(stages, kKept[kept]))) / 1e6,
                  median(peaks), *least, *most);
    }
  std::printf("\n");
}

// ---- bubble ----

constexpr std::uint32_t kLayers = 16, kWidth = 256, kUpdates = 20;

/// A split of the layers into equal chunks: "0-7,8-15".
std::string equal_split(std::uint32_t chunks) {
  std::string split;
  const std::uint32_t length = kLayers / chunks;
  for (std::uint32_t first = 0; first < kLayers; first += length)
    split += concat(first ? "," : "", first, length > 1 ? concat('-', first + length - 1) : "");
  return split;
}

/// A plan in a world where only computation and updates take time.
Plan bubble_plan(const pipeline::Spec& spec) {
  Plan plan;
  plan.name = "pipeline-bench";
  plan.data = clusters(kWidth, kWidth, 4096);
  plan.model.assign(kLayers, linear(kWidth));
  plan.optimizer = sgd(0.01);
  plan.consistency = ssp(static_cast<std::uint32_t>(spec.stages));
  plan.workers = static_cast<std::uint32_t>(spec.stages);
  plan.shards = 4;
  plan.micro_batches = static_cast<std::uint32_t>(spec.micro_batches);
  plan.batch = 64 * plan.micro_batches;
  plan.pipeline = {.stages = plan.workers,
                   .schedule = spec.schedule,
                   .chunks = static_cast<std::uint32_t>(spec.chunks),
                   .split = equal_split(plan.workers * static_cast<std::uint32_t>(spec.chunks))};
  plan.stop = {.epochs = 0, .iterations = kUpdates};
  plan.evaluate_every = 0;
  plan.simulated = plan::World{.memory = 1e9,
                               .noise = 0,
                               .latency_us = 0,
                               .local_latency_us = 0,
                               .jitter = 0,
                               .link = 0,
                               .cost_only = true};
  return plan;
}

double idle_share(const Plan& plan) {
  const Result result = run_or_fail(plan);
  double busy = 0;
  for (const auto& worker : result.totals.workers) busy += worker.compute.seconds();
  return 1 - busy / (result.seconds * plan.workers);
}

std::string percent_of(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", 100 * share);
  return text;
}

void bubble() {
  std::printf("%-16s %7s %14s %10s %10s\n", "idle, %", "stages", "micro-batches", "theory",
              "measured");
  for (const auto& entry : pipeline::catalogue())
    for (const int stages : {2, 4, 8})
      for (const int micro_batches : {4, 8, 32}) {
        pipeline::Spec spec{.schedule = std::string(entry.name),
                            .stages = stages,
                            .micro_batches = micro_batches,
                            .chunks = entry.chunks,
                            .updates = kUpdates};
        if (!pipeline::validate(spec)) continue;
        const auto share = entry.schedule().bubble(spec, {});
        const std::string theory =
            share ? percent_of(static_cast<double>(share->part) / static_cast<double>(share->whole))
                  : "none";
        std::printf("%-16s %7d %14d %10s %10s\n", spec.schedule.c_str(), stages, micro_batches,
                    theory.c_str(), percent_of(idle_share(bubble_plan(spec))).c_str());
      }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> studies, models;
  std::vector<std::size_t> peak;
  int rounds = 5;
  double seconds = 2;
  CLI::App app("Speed, memory and idle time of pipelines.");
  app.add_option("studies", studies, "speed, memory or bubble")
      ->check(CLI::IsMember({"speed", "memory", "bubble"}));
  app.add_option("--model", models, "For speed: gpt, resnet or vgg [all]")
      ->check(CLI::IsMember({"gpt", "resnet", "vgg"}));
  app.add_option("--rounds", rounds, "Interleaved rounds")->check(CLI::Range(1, 1000));
  app.add_option("--seconds", seconds, "Seconds per run")->check(CLI::PositiveNumber);
  app.add_option("--peak", peak)->expected(2)->group("");  // for child processes
  CLI11_PARSE(app, argc, argv);
  if (!peak.empty()) {
    print_peak(static_cast<std::uint32_t>(peak[0]), peak[1]);
    return 0;
  }
  const auto wanted = [&](const char* study) {
    return studies.empty() || std::find(studies.begin(), studies.end(), study) != studies.end();
  };
  if (wanted("speed")) speed(models, rounds, seconds);
  if (wanted("memory")) memory(rounds);
  if (wanted("bubble")) bubble();
}
