// Samples per second of training a model with momentum SGD on synthetic data in memory: steps on
// one thread, or whole runs of the runtime. bench/peers/compare.py interleaves it with other
// programs, so it prints one line.
//
//   train_bench MODEL [--batch 64] [--workers N] [--seconds 1.5] [--device cpu]
//               [--precision fp32] [--profile]
//
// MODEL: mlp (784-512-256-10), lenet (1x28x28), vgg (3x32x32), resnet (3x32x32), gpt (64 tokens).
// Without --workers it runs steps without actors.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <functional>

#include "bench/model_memory.hpp"
#include "bench/models.hpp"
#include "bench/random_samples.hpp"
#include "kernels/executors.hpp"
#include "kernels/threads.hpp"
#include "leeway.hpp"
#include "monitoring/profile_table.hpp"

namespace {

using namespace leeway;

constexpr std::int64_t kBatches = 64;  // in memory

struct Setting {
  std::string model = "mlp";
  std::int64_t batch = 64;
  std::uint32_t workers = 0;
  double seconds = 1.5;
  std::string device = "cpu";
  std::string precision = "fp32";
  bool profile = false;
};

template <class T>
T must(Expected<T> value) {
  if (value) return std::move(*value);
  std::fprintf(stderr, "train_bench: %s\n", value.error().text.c_str());
  std::exit(2);
}

bool is_on_cpu(const Setting& setting) {
  return setting.device == "cpu";
}

double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

/// Samples per second of `step`, called for `seconds` after a warm-up of a fifth of that.
double rate(double seconds, std::int64_t batch, const std::function<void()>& step) {
  auto began = std::chrono::steady_clock::now();
  do step();
  while (seconds_since(began) < seconds / 5);
  began = std::chrono::steady_clock::now();
  std::int64_t steps = 0;
  do {
    step();
    ++steps;
  } while (seconds_since(began) < seconds);
  return static_cast<double>(steps * batch) / seconds_since(began);
}

double one_thread(const Setting& setting, const bench::Task& task,
                  std::shared_ptr<Profile> profile) {
  kernels::use_one_compute_thread();
  const auto on = must(make_executor(must(parse_device(setting.device))));
  const auto model = must(task.model(setting.precision));
  bench::ModelMemory memory(model, on);
  Pass pass(model, setting.batch, true, {.on = on, .profile = std::move(profile)});
  const auto momentum = make_optimizer({.weight_decay = 0, .kind = plan::Momentum{}});
  const bench::RandomSamples data(task, kBatches * setting.batch);
  std::int64_t next = 0;
  return rate(setting.seconds, setting.batch, [&] {
    const std::int64_t first = next++ % kBatches * setting.batch;
    memory.step(pass, {.size = setting.batch, .x = data.x(first), .labels = data.labels(first)},
                momentum.get());
  });
}

/// A run of about the requested time; a short run determines the number of iterations.
double with_runtime(const Setting& setting, const bench::Task& task) {
  const auto data = std::make_shared<bench::RandomSamples>(task, kBatches * setting.batch);
  const auto few = std::make_shared<bench::RandomSamples>(task, 16);
  register_data("random", [&](std::uint64_t) { return Expected<TrainTest>(TrainTest{data, few}); });
  Scenario scenario("train-bench", "");
  scenario.data(plan::CustomData{"random"})
      .model(task.layers)
      .optimizer(momentum(0.001, 0.9))
      .consistency(ssp(2))
      .workers(setting.workers)
      .shards(1)
      .batch(static_cast<std::uint32_t>(setting.batch))
      .device(setting.device)
      .precision(setting.precision)
      .epochs(0)
      .evaluate_every(0);
  double samples_per_second = 0;
  std::uint64_t iterations = 20 * setting.workers;
  for (int round = 0; round < 2; ++round) {
    scenario.iterations(iterations);
    const Result result = run(scenario.plan(), {.quiet = true});
    if (!result.ok()) {
      std::fprintf(stderr, "train_bench: %s\n", result.error.c_str());
      std::exit(1);
    }
    samples_per_second = result.samples_per_second;
    iterations = static_cast<std::uint64_t>(samples_per_second * setting.seconds /
                                            static_cast<double>(setting.batch)) +
                 setting.workers;
  }
  return samples_per_second;
}

}  // namespace

int main(int argc, char** argv) {
  Setting setting;
  CLI::App app("Samples per second of training a model on synthetic data in memory.");
  app.add_option("model", setting.model, "mlp, lenet, vgg, resnet or gpt")->required();
  app.add_option("--batch", setting.batch, "samples per step")->check(CLI::Range(1, 1 << 20));
  app.add_option("--workers", setting.workers, "run the runtime with this many workers");
  app.add_option("--seconds", setting.seconds, "seconds to measure")->check(CLI::PositiveNumber);
  app.add_option("--device", setting.device, "cpu, cuda or cuda:1");
  app.add_option("--precision", setting.precision, "fp32, bf16, fp16 or tf32");
  app.add_flag("--profile", setting.profile, "print time and share of the peak for each layer");
  CLI11_PARSE(app, argc, argv);
  const auto task = bench::tasks().find(setting.model);
  if (task == bench::tasks().end()) {
    std::fprintf(stderr, "train_bench: unknown model \"%s\"; give mlp, lenet, vgg, resnet or gpt\n",
                 setting.model.c_str());
    return 2;
  }
  if (setting.profile && setting.workers > 0) {
    std::fprintf(stderr, "train_bench: --profile needs one thread; remove --workers\n");
    return 2;
  }
  const auto profile = setting.profile ? std::make_shared<Profile>() : nullptr;
  const double figure = setting.workers > 0 ? with_runtime(setting, task->second)
                                            : one_thread(setting, task->second, profile);
  std::printf("%s batch %lld %s: %.1f samples/s\n", setting.model.c_str(),
              static_cast<long long>(setting.batch), setting.workers > 0 ? "runtime" : "one thread",
              figure);
  if (profile)
    std::printf("%s", profile_table(profile->rows(), is_on_cpu(setting)
                                                         ? std::optional(kernels::measure_peak())
                                                         : std::nullopt)
                          .c_str());
  return 0;
}
