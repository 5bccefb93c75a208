// what-if-traces: what would have helped jobs that stragglers slowed down, and at which loss?
//
// Reproduces the slowdown and its cause in traces of Lin et al., "Understanding Stragglers in Large
// Model Training Using What-if Analysis", OSDI 2025, section 3. Then replays the same durations
// under other synchronization policies, with the gradients of another model. So the change of the
// loss is known besides the time saved.
//
// Stages take the time of their computations in the trace, iteration by iteration; messages take no
// time. A pipeline cannot abandon an iteration, so backup(1) treats each replica as one worker,
// which takes as long as the replica's step if it waits for no other. So does quorum. Each way has
// its own learning rate, tuned on another seed.
#include <leeway/blame/traced_job.hpp>
#include <leeway/core/text.hpp>
#include <leeway/leeway.hpp>
#include <leeway/monitoring/format.hpp>
#include <leeway/runtime/tools/replay.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heat_map.hpp"
#include "reproduction.hpp"
#include "tuned_study.hpp"

using namespace leeway;
using blame::TracedJob;
using study::cell;
using study::kSeeds;
using study::Outcome;

namespace {

constexpr const char* kAdvice =
    "give the traces of the artifact of \"Understanding Stragglers in Large Model Training Using "
    "What-if Analysis\" (github.com/ByteDance-Seed/StragglerAnalysis) as CSV files";
constexpr std::int64_t kTestSamples = 2000;
constexpr std::uint32_t kLeastBatch = 32;  // of a replica
constexpr double kTolerance = 0.03;        // of the slowdown
constexpr double kNoticed = 0.01;          // saved time from which on a way is faster
/// The stages that the network can be split into.
constexpr std::uint32_t kMostStages = 8;
const std::vector<double> kRates = {0.003, 0.006, 0.0125, 0.025, 0.05, 0.1};

/// The figures of the authors' tool for a trace of their artifact. The trace has this many
/// operations, and a step takes this time, to a hundredth of a second.
struct Published {
  std::size_t operations;
  double measured;  // seconds
  double slowdown, of_slowest, of_last_stage;
};
const Published kPublished[] = {
    {117'216, 46.65, 1.973, 1.002, -0.001},  // AR
    {6'784, 2.21, 1.179, 0.031, 1.219},      // ST
};

const Published* published(const TracedJob& job) {
  const auto found = std::ranges::find_if(kPublished, [&](const Published& one) {
    return job.operations == one.operations &&
           std::abs(job.slowdown.measured - one.measured) <= 0.005;
  });
  return found == std::end(kPublished) ? nullptr : found;
}

/// A way to keep the job together.
struct Way {
  std::string name;
  bool has_stages = true;  // else a replica is one worker
  plan::Consistency consistency = bsp();
  const char* schedule = "1f1b";
  plan::Balance balance = plan::Balance::equal;
  bool has_stragglers = true;
  /// A round waits for half of the replicas, and then as long as recent pushes suggest.
  bool of_half = false;
};
const Way kWays[] = {
    {.name = "pipelines, bsp"},
    {.name = "no stragglers", .has_stragglers = false},
    {.name = "bsp, by speed", .balance = plan::Balance::by_speed},
    {.name = "ssp(2)", .consistency = ssp(2)},
    {.name = "2bw, ssp(1)", .consistency = ssp(1), .schedule = "2bw"},
    {.name = "replicas, bsp", .has_stages = false},
    {.name = "backup(1)", .has_stages = false, .consistency = backup(1)},
    {.name = "quorum(half,mad)", .has_stages = false, .of_half = true},
    {.name = "ssp(2)", .has_stages = false, .consistency = ssp(2)},
};

/// The way that the job ran, to which others of the same kind are compared.
const Way& usual(const Way& way) {
  return *std::ranges::find(kWays, way.has_stages, &Way::has_stages);
}

std::string name_of(const TracedJob& job, const Way& way) {
  return concat(job.name, way.has_stages ? ", stages, " : ", replicas, ", way.name);
}

double mean(const std::vector<blame::Durations>& all) {
  double sum = 0, count = 0;
  for (const auto& seconds : all) {
    sum = std::accumulate(seconds.begin(), seconds.end(), sum);
    count += static_cast<double>(seconds.size());
  }
  return sum / count;
}

/// Samples of a replica's step: equally many for each micro-batch.
std::uint32_t batch_of(const TracedJob& job) {
  return (kLeastBatch + job.micro_batches - 1) / job.micro_batches * job.micro_batches;
}

/// Error: a way needs more replicas or micro-batches, or another number of stages. 2bw allows at
/// most one stage more than micro-batches.
Status check(const TracedJob& job) {
  if (job.replicas >= 2 && job.stages >= 2 && job.stages <= kMostStages &&
      job.micro_batches + 1 >= job.stages)
    return {};
  return Error{concat(job.name, ": has ", counted(job.replicas, "replica"), " of ",
                      counted(job.stages, "stage"), ", with ",
                      counted(job.micro_batches, "micro-batch"),
                      "; give a trace with at least 2 replicas, 2 to ", kMostStages,
                      " stages, and at most one stage more than micro-batches")};
}

/// Error: the job cannot be replayed this way.
Expected<Plan> plan_of(const Plan& base, const TracedJob& job, const Way& way) {
  Plan plan = base;
  plan.workers = way.has_stages ? job.replicas * job.stages : job.replicas;
  plan.pipeline.stages = way.has_stages ? job.stages : 1;
  plan.pipeline.schedule = way.schedule;
  plan.micro_batches = way.has_stages ? job.micro_batches : 1;
  plan.batch = batch_of(job);
  plan.consistency = way.of_half ? adaptive_quorum((job.replicas + 1) / 2) : way.consistency;
  plan.balance = way.balance;
  auto seconds = way.has_stages ? job.of_stages : job.of_replicas;
  if (!way.has_stragglers) seconds.assign(seconds.size(), {mean(seconds)});
  for (blame::Durations& times : seconds)
    for (double& one : times) one /= plan.batch;
  plan.simulated = replay_world();
  plan.simulated->cost_only = false;
  const auto replay = Replay::of(plan, seconds);
  if (!replay) return Error{concat(name_of(job, way), ": ", replay.error().text)};
  replay->apply(plan);
  return plan;
}

study::Campaign::Figures figures_of(const Result& result) {
  const auto& last = result.totals.evaluations.back();
  return {{"seconds", result.seconds},
          {"samples", static_cast<double>(last.samples_trained)},
          {"loss", last.loss}};
}
const study::Measures kMeasures{
    .of = figures_of,
    .failed = {{"seconds", study::kNever}, {"samples", 1}, {"loss", study::kNever}},
    .criteria = {"loss"}};

/// The slowdown of the job, without other ways.
std::string slowdown_text(const TracedJob& job) {
  const auto& slowdown = job.slowdown;
  const double slowest = slowdown.share(slowdown.without_slowest);
  const double last = slowdown.share(slowdown.without_stage.back());
  const Published* const expected = published(job);
  std::vector<study::Comparison> rows;
  const auto add = [&](const char* name, double here, double Published::*of) {
    rows.push_back({name, expected ? fixed(expected->*of, 3) : "-", fixed(here, 3),
                    expected ? fixed(here - expected->*of, 3) : ""});
  };
  add("slowdown", slowdown.factor(), &Published::slowdown);
  add("lost to the slowest ranks", slowest, &Published::of_slowest);
  add("lost to the last stage", last, &Published::of_last_stage);
  std::string text = concat('\n', job.name, ": ", job.replicas, " replicas of ", job.stages,
                            " stages, ", job.micro_batches, " micro-batches, ", slowdown.steps,
                            " steps; published: the "
                            "authors' tool\n",
                            study::comparison_table(rows), '\n', job.explanation, '\n');
  if (!expected) return text;
  const double off = slowdown.factor() / expected->slowdown - 1;
  const bool same = (slowest >= blame::kExplains) == (expected->of_slowest >= blame::kExplains) &&
                    (last >= blame::kExplains) == (expected->of_last_stage >= blame::kExplains);
  const bool is_near = std::abs(off) <= kTolerance;
  return text +
         study::verdict_line(
             is_near && same ? Outcome::reproduced : Outcome::not_reproduced,
             concat("the slowdown differs by ", signed_percent(off),
                    is_near ? ", within " : ", more than ", percent(kTolerance),
                    same ? ", and the cause is the same" : ", and the cause is another one"));
}

/// Seconds of as many samples as all replicas train in a step.
double step_time(const study::TunedStudy& study, const TracedJob& job, const Way& way) {
  const std::string name = name_of(job, way);
  return study.median(name, "seconds") / study.median(name, "samples") * batch_of(job) *
         job.replicas;
}

std::string table(const study::TunedStudy& study, const TracedJob& job) {
  std::string text = concat(
      '\n', job.name, ": the same samples with its durations, ", fixed(job.slowdown.measured, 2),
      " s for a step as it ran. Median (min to max) of ", kSeeds,
      " seeds; * is the edge of the rates tried\n\n", cell(18, ""), cell(10, "s/step"),
      cell(12, "time"), cell(26, "test loss"), cell(10, "change"), cell(10, "rate"));
  for (const Way& way : kWays) {
    const Way& before = usual(way);
    const std::string name = name_of(job, way);
    const auto losses = study.values(name, "loss");
    const double seconds = step_time(study, job, way);
    const auto text_of = [](double loss) { return fixed(loss, 3); };
    std::string time, change;  // compared to how the job ran
    if (&way != &before) {
      time = signed_percent(seconds / step_time(study, job, before) - 1);
      change = text_of(study::middle(losses) - study.median(name_of(job, before), "loss"));
    } else if (!way.has_stages) {
      text += '\n';
    }
    text += concat('\n', cell(18, way.name), cell(10, fixed(seconds, 2)), cell(12, time),
                   cell(26, study::median_text(losses, text_of)), cell(10, change),
                   cell(10, study.rate_text(name, "*")));
  }
  return text + '\n';
}

/// The ways that save time and whose loss is no worse than seeds differ.
std::string verdict(const study::TunedStudy& study, const TracedJob& job) {
  std::vector<std::string> helpful;
  for (const Way& way : kWays) {
    const std::string name = name_of(job, way), before = name_of(job, usual(way));
    if (&way == &usual(way) || !way.has_stragglers) continue;
    if (study.values(name, "seconds").back() <
            (1 - kNoticed) * study.values(before, "seconds").front() &&
        study.values(name, "loss").front() <= study.values(before, "loss").back())
      helpful.push_back(concat(way.has_stages ? "" : "replicas with ", way.name));
  }
  if (helpful.empty())
    return concat('\n', job.name, ": no way is faster at a loss that seeds do not tell apart.\n");
  return concat('\n', job.name,
                ": faster at a loss that seeds do not tell apart: ", join(helpful, "; "), ".\n");
}

/// The losses of the seeds.
std::string seeds(const study::TunedStudy& study, const TracedJob& job) {
  std::vector<std::string> names;
  for (const Way& way : kWays) names.push_back(name_of(job, way));
  return study.seeds_table("Test losses of each seed", names, "loss", study::loss_text);
}

/// How much faster each way is, and how much lower its loss, than the way that the job ran.
study::HeatMap picture(const study::TunedStudy& study, const std::vector<TracedJob>& jobs) {
  study::HeatMap map{.title = "As it ran over each way: above 1 is better"};
  for (const Way& way : kWays)
    map.rows.push_back(way.has_stages || &way == &usual(way) ? way.name
                                                             : concat("replicas, ", way.name));
  map.values.resize(std::size(kWays));
  for (const TracedJob& job : jobs) {
    const std::string name = job.name.substr(0, job.name.find('.'));
    map.columns.insert(map.columns.end(), {name + ", time", name + ", loss"});
    for (std::size_t i = 0; i < std::size(kWays); ++i) {
      const auto loss = [&](const Way& way) { return study.median(name_of(job, way), "loss"); };
      const Way &way = kWays[i], &before = usual(way);
      map.values[i].push_back(step_time(study, job, before) / step_time(study, job, way));
      map.values[i].push_back(loss(before) / loss(way));
    }
  }
  return map;
}

/// The words before the first flag are files.
std::vector<std::string> take_files(int& argc, char** argv) {
  std::vector<std::string> files;
  int first = 1;
  while (first < argc && argv[first][0] != '-') files.emplace_back(argv[first++]);
  std::copy(argv + first, argv + argc, argv + 1);
  argc -= first - 1;
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  const bool full = study::take_full(argc, argv);
  Scenario scenario("what-if-traces",
                    "Replay the stragglers of other systems' jobs with gradients.");
  scenario
      .description(
          "Arguments: one or more traces before all flags, CSV files as for leeway blame\n"
          "--import, which may be gzipped. Prints the slowdown by stragglers and its cause. Then\n"
          "trains a network of eight layers on Fashion-MNIST with the trace's replicas, stages\n"
          "and durations, in virtual time, under nine ways to keep them together. Each runs\n"
          "with six learning rates on one seed, and with the best of them on three others: 81\n"
          "runs for each trace. An interrupted study continues in the same folder (--out). --full\n"
          "has five times the samples.")
      .decides({"--workers", "--staleness", "--delay-policy", "--lr", "--slow", "--simulate",
                "--world", "--gradients", "--optimizer", "--balance", "--split-data",
                "--participation", "--micro-batches", "--batch", "--fault", "--seconds",
                "--iterations"})
      .decides(study::kOfPipelines)
      .decides(study::kOfSingleRuns)
      .data(fashion_mnist())
      .model({avg_pool(2), flatten(), linear(64), relu(), linear(64), relu(), linear(64), relu(),
              linear(64), relu(), linear(64), relu(), linear(64), relu(), linear(64), relu(),
              linear(10)})
      .loss(softmax_cross_entropy())
      .optimizer(momentum(0.0125))
      .lr_schedule(cosine(0))
      .shards(2)
      .epochs(full ? 2 : 0.4)
      .evaluate_every(0)
      .simulated({});
  const std::vector<std::string> files = take_files(argc, argv);
  CommandLine line = study::parse_simulated(scenario, argc, argv);
  if (line.exit_code) return *line.exit_code;
  study::Report report(line);
  if (files.empty())
    return report.refuse(
        "no trace is given; give CSV files, such as AR.csv.gz and ST.csv.gz of the artifact of the "
        "paper (github.com/ByteDance-Seed/StragglerAnalysis)");
  if (const auto shared = study::share_data(line.plan, kTestSamples); !shared)
    return report.refuse(shared.error().text);
  std::vector<TracedJob> jobs;
  std::vector<study::Subject> subjects;
  nlohmann::json settings{{"plan", to_json(line.plan)}, {"test_samples", kTestSamples}};
  for (const std::string& file : files) {
    auto job = blame::read_traced_job(file, kAdvice);
    if (!job) return report.refuse(job.error().text);
    if (const auto fits = check(*job); !fits) return report.refuse(fits.error().text);
    if (std::ranges::find(jobs, job->name, &TracedJob::name) != jobs.end())
      return report.refuse(concat(file, ": another trace has this name; rename one of them"));
    for (const Way& way : kWays) {
      const auto plan = plan_of(line.plan, *job, way);
      if (!plan) return report.refuse(plan.error().text);
      subjects.push_back({name_of(*job, way), kRates, [plan = *plan](double) { return plan; }});
    }
    settings["traces"].push_back({job->name, job->operations, job->slowdown.measured});
    jobs.push_back(std::move(*job));
  }
  study::TunedStudy study(line.plan.seed, subjects, kMeasures, line.options.quiet);
  return study.run(report, settings, [&] {
    for (const TracedJob& job : jobs) {
      report.print(slowdown_text(job));
      report.print(table(study, job));
      report.print(verdict(study, job));
      report.print(seeds(study, job));
    }
    report.write(study::kPicture, study::svg(picture(study, jobs)));
  });
}
