#include "runtime/tools/fuzz.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>

#include "core/exit_codes.hpp"
#include "core/number.hpp"
#include "core/text.hpp"
#include "monitoring/format.hpp"
#include "plan/groups.hpp"
#include "runtime/interrupt.hpp"
#include "sim/search/search.hpp"

namespace leeway {
namespace {

/// Smaller models compute gradients, so that checkers compare weights as well.
constexpr std::int64_t kCheapParameters = 10'000;

Expected<std::shared_ptr<const Job>> base_job(Plan plan) {
  plan.simulated = plan::World{};
  plan.faults.clear();
  auto job = sim::load_job(plan);
  const bool synthetic = std::holds_alternative<plan::Synthetic>(plan.data);
  if (!job || (synthetic && (*job)->model->parameter_count() <= kCheapParameters)) return job;
  plan.simulated->cost_only = true;
  return make_job(plan, (*job)->data);
}

/// Makes the job of each drawn plan. Data that is not synthetic is loaded only once.
sim::MakeJob job_maker(const Job& base) {
  if (std::holds_alternative<plan::Synthetic>(base.plan.data)) return sim::load_job;
  return [&base](const Plan& plan, JobOptions options) -> Expected<std::shared_ptr<const Job>> {
    if (const auto valid = validate(plan); !valid) return valid.error();
    return make_job(plan, base.data, std::move(options));
  };
}

void print_progress(const sim::SearchResult& now, const FuzzOptions& options) {
  const double seconds = std::max(now.took.count(), 1e-3);
  std::cerr << "\r\x1b[K" << now.seeds << " of " << options.last - options.first + 1 << " seeds, "
            << static_cast<std::int64_t>(static_cast<double>(now.seeds) / seconds * 60)
            << " per minute, " << now.faults << " faults, " << now.failures.size() << " failed"
            << std::flush;
}

/// Writes the plan of a failure and returns its path; empty if it cannot be written.
std::string write_plan(const sim::Failure& failure, const Plan& base, const FuzzOptions& options) {
  const auto path =
      std::filesystem::path(options.folder) / concat(base.name, "-seed-", failure.seed, ".json");
  std::ofstream file(path);
  file << to_json(failure.shrunk);
  file.close();
  return file ? path.string() : "";
}

std::string stages_of(const Plan& plan) {
  if (const std::uint32_t group = workers_per_group(plan); group > 1)
    return concat(" (host groups of ", group, " workers)");
  if (plan.pipeline.stages == 1) return "";
  return concat(" (pipelines of ", plan.pipeline.stages, " stages, ", plan.pipeline.schedule, ')');
}

void print_failure(const sim::Failure& failure, const Plan& base, const FuzzOptions& options) {
  const Plan& plan = failure.shrunk;
  std::cout << "\nSeed " << failure.seed << " fails: " << failure.trial.property << "\n\n"
            << failure.trial.report << "\n\nIt still fails with workers: " << plan.workers
            << stages_of(plan) << ", shards: " << plan.shards << ", faults: " << plan.faults.size()
            << ", stragglers: " << plan.stragglers.size() << ".";
  const std::string path = write_plan(failure, base, options);
  const bool crashes = failure.kind == sim::TrialKind::crashes;
  if (crashes || failure.kind == sim::TrialKind::losses)
    std::cout << (crashes ? " The power fails" : " Shards lose replicas")
              << " during the run. Repeat it with the same command for seed " << failure.seed
              << " only.\n";
  else if (path.empty())
    std::cout << " Its plan cannot be written to " << options.folder << ":\n\n"
              << to_json(plan) << '\n';
  else
    std::cout << " Repeat it:\n\n    " << options.command << ' ' << path << '\n';
}

}  // namespace

Status parse_seeds(const std::string& text, FuzzOptions& options) {
  const auto dots = text.find("..");
  const auto first = parse_number<std::uint64_t>(std::string_view(text).substr(0, dots));
  const auto last = dots == std::string::npos
                        ? first
                        : parse_number<std::uint64_t>(std::string_view(text).substr(dots + 2));
  if (!first || !last || *last < *first || *last == std::numeric_limits<std::uint64_t>::max())
    return Error{concat("seeds: \"", text, "\" is not a range; give 1..2000, or one seed")};
  options.first = *first;
  options.last = *last;
  return {};
}

int fuzz(const Plan& plan, const FuzzOptions& options) {
  const auto base = base_job(plan);
  if (!base) {
    std::cerr << plan.name << ": " << base.error().text << '\n';
    return kExitRefused;
  }
  std::error_code failed;
  const bool existed = std::filesystem::is_directory(options.folder);
  std::filesystem::create_directories(options.folder, failed);
  if (failed) {
    std::cerr << plan.name << ": --out: cannot create the folder " << options.folder << ": "
              << failed.message() << "; give another one\n";
    return kExitRefused;
  }
  const InterruptGuard guard;
  sim::SearchOptions search{.first = options.first,
                            .last = options.last,
                            .threads = options.threads,
                            .make_job = job_maker(**base)};
  if (options.clusters) search.draw.cluster_one_in = 1;
  const bool terminal = isatty(STDERR_FILENO) == 1;
  const auto result = sim::search(**base, search, [&](const sim::SearchResult& now) {
    if (terminal) print_progress(now, options);
    return !guard.interrupted();
  });
  if (terminal) std::cerr << "\r\x1b[K";
  const double seeds = static_cast<double>(std::max<std::uint64_t>(result.seeds, 1));
  std::cout << result.seeds << " runs drawn from seeds " << options.first << " to " << options.last
            << " in " << duration(result.took.count()) << ": "
            << static_cast<std::int64_t>(seeds / std::max(result.took.count(), 1e-3) * 60)
            << " per minute, "
            << static_cast<std::int64_t>(static_cast<double>(result.events) / seeds)
            << " events and " << static_cast<double>(result.faults) / seeds
            << " faults each on average; " << result.crashes << " power failures, " << result.losses
            << " lost replicas, " << result.cut_short << " jobs cut short by faults; "
            << result.failures.size() << " failed.\n";
  for (const auto& failure : result.failures) print_failure(failure, plan, options);
  if (result.failures.empty() && !existed) std::filesystem::remove(options.folder, failed);
  if (!result.failures.empty()) return kExitFailed;
  return guard.interrupted() ? kExitInterrupted : kExitOk;
}

}  // namespace leeway
