#include "runtime/checkpoints.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "actors/job.hpp"
#include "core/files.hpp"
#include "core/text.hpp"
#include "core/this_host.hpp"
#include "models/datasets/checksum.hpp"
#include "plan/epochs.hpp"
#include "runtime/cluster/options.hpp"
#include "runtime/scenario.hpp"

namespace leeway {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRuns = "runs";
constexpr const char* kCheckpoints = "checkpoints";
using checkpoint::kManifestFile;

std::string random_name() {
  char name[20];
  std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(random_word()));
  return name;
}

/// Without slashes at the end, which fs::path reads as an empty name.
std::string trimmed_path(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

std::string absolute_path(const std::string& path) {
  return trimmed_path(fs::absolute(path).lexically_normal().string());
}

bool is_same_folder(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return !a.empty() && !b.empty() &&
         fs::weakly_canonical(a, ignored) == fs::weakly_canonical(b, ignored);
}

/// The usual folder of a run's checkpoints.
std::string own_checkpoints(const std::string& run_folder) {
  return concat(trimmed_path(run_folder), '/', kCheckpoints);
}

/// A checkpoint has a plan as well.
bool is_checkpoint(const std::string& folder) {
  std::error_code ignored;
  return fs::exists(folder + "/" + kManifestFile, ignored);
}

/// The plan in a run folder; nullopt if the folder is no run folder, or its plan is damaged.
std::optional<Plan> plan_of_run(const std::string& folder) {
  std::error_code ignored;
  const std::string file = folder + "/plan.json";
  if (!fs::exists(file, ignored) || is_checkpoint(folder)) return {};
  auto plan = plan_from_file(file);
  if (!plan) return {};
  return std::move(*plan);
}

/// The folder of a run's checkpoints. A run whose plan is missing or damaged has those in its own
/// folder. nullopt if the folder is no run folder. Error: its plan is damaged, and only the plan
/// could name the checkpoints.
Expected<std::optional<std::string>> checkpoints_of_run(const std::string& folder) {
  if (is_checkpoint(folder)) return std::optional<std::string>();
  if (const auto plan = plan_of_run(folder)) return std::optional(checkpoint_folder(*plan, folder));
  std::error_code ignored;
  std::string own = own_checkpoints(folder);
  if (fs::is_directory(own, ignored)) return std::optional(std::move(own));
  const std::string file = folder + "/plan.json";
  if (!fs::exists(file, ignored)) return std::optional<std::string>();
  const auto plan = plan_from_file(file);
  return plan ? Error{file + ": changed while it was read; try again"} : plan.error();
}

/// The samples trained according to the result in a run folder; nullopt without a result.
std::optional<std::uint64_t> samples_in_result(const std::string& folder) {
  std::ifstream in(folder + "/result.json");
  const auto result = nlohmann::json::parse(in, nullptr, false);
  if (!result.is_object()) return std::nullopt;
  const auto samples = result.find("samples_trained");
  if (samples == result.end() || !samples->is_number_unsigned()) return std::nullopt;
  return samples->get<std::uint64_t>();
}

/// Why a run with fewer epochs or iterations than are trained has nothing to do; empty if it has.
/// `end`: samples of the plan's epochs.
std::string trained_beyond(const Plan& plan, const checkpoint::Supply& supply, std::int64_t end) {
  if (plan.stop.iterations > 0 && supply.iterations > plan.stop.iterations)
    return concat(supply.iterations, " iterations are trained; give more with --iterations");
  if (plan.stop.epochs > 0 && supply.fresh_of_parts.empty() && supply.fresh > end)
    return concat("more than ", plan.stop.epochs, " epochs are trained; give more with --epochs");
  return "";
}

/// Names the checkpoint before `number`, for errors; empty without one.
std::string earlier_text(const checkpoint::Store& store, std::uint64_t number) {
  const auto numbers = store.numbers();
  if (!numbers) return "";
  const auto end = std::lower_bound(numbers->begin(), numbers->end(), number);
  if (end == numbers->begin()) return "";
  return concat("; an earlier checkpoint is ", store.path(*std::prev(end)));
}

/// The latest checkpoint in `folder`, or checkpoint `number` unless 0. nullopt without checkpoints.
/// The plan names the folder as it is found, because it may have been moved.
Expected<std::optional<ResumePoint>> find_in(const std::string& folder, std::uint64_t number,
                                             const std::string& run_folder) {
  const checkpoint::Store store(disk(), absolute_path(folder));
  if (number == 0) {
    const auto numbers = store.numbers();
    if (!numbers) return numbers.error();
    if (numbers->empty()) return std::optional<ResumePoint>();
    number = numbers->back();
  }
  auto plan = store.plan(number);
  if (!plan) return Error{plan.error().text + earlier_text(store, number)};
  plan->checkpoints.directory =
      run_folder.empty() || !is_same_folder(folder, own_checkpoints(run_folder)) ? store.folder()
                                                                                 : "";
  return std::optional(ResumePoint{store.folder(), number, run_folder, std::move(*plan)});
}

Expected<std::optional<ResumePoint>> find_at(const std::string& where) {
  if (is_checkpoint(where)) {
    const fs::path path(where);
    const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
    std::uint64_t number = 0;
    const std::string name = path.filename().string();
    std::from_chars(name.data(), name.data() + name.size(), number);
    if (number == 0 || checkpoint::folder_name(number) != name)
      return Error{concat(where, ": is not the name of a checkpoint; restore its name, such as ",
                          checkpoint::folder_name(12))};
    return find_in(folder, number, run_folder_of(folder));
  }
  const auto checkpoints = checkpoints_of_run(where);
  if (!checkpoints) return checkpoints.error();
  if (*checkpoints) {
    auto found = find_in(**checkpoints, 0, where);
    // Before the first checkpoint in a new folder, those in the run's own folder count.
    if (found && !*found) return find_in(own_checkpoints(where), 0, where);
    return found;
  }
  return find_in(where, 0, run_folder_of(where));
}

Expected<ResumePoint> find_latest(const std::string& name) {
  std::error_code ignored;
  std::optional<ResumePoint> latest;
  fs::file_time_type latest_time;
  for (const auto& entry : fs::directory_iterator(kRuns, ignored)) {
    auto found = find_at(entry.path().string());
    if (!found || !*found || (!name.empty() && (*found)->plan.name != name)) continue;
    std::error_code error;
    const auto time = fs::last_write_time((*found)->path() + "/" + kManifestFile, error);
    if (error || (latest && time <= latest_time)) continue;
    latest = std::move(**found);
    latest_time = time;
  }
  if (latest) return std::move(*latest);
  return Error{concat("no run", name.empty() ? "" : " of ", name, " in the folder ", kRuns,
                      " has a checkpoint; give the folder of a run")};
}

}  // namespace

std::string run_folder_of(const std::string& checkpoints) {
  const fs::path path(checkpoints);
  if (path.filename() != kCheckpoints) return "";
  const std::string above = path.has_parent_path() ? path.parent_path().string() : ".";
  std::error_code ignored;
  // Any of them may be missing or damaged.
  const bool is_run =
      fs::exists(above + "/plan.json", ignored) || fs::exists(above + "/metrics.jsonl", ignored);
  return is_run ? above : "";
}

std::string ResumePoint::path() const {
  return folder + "/" + checkpoint::folder_name(number);
}

std::string checkpoint_folder(const Plan& plan, const std::string& run_folder) {
  if (!plan.checkpoints.directory.empty()) return trimmed_path(plan.checkpoints.directory);
  return run_folder.empty() ? "" : own_checkpoints(run_folder);
}

Expected<ResumePoint> find_checkpoint(const std::string& where, const std::string& name) {
  if (where == "latest") return find_latest(name);
  std::error_code ignored;
  if (!fs::is_directory(where, ignored))
    return Error{concat(where, ": is not a folder; give the folder of a run, or latest")};
  auto found = find_at(trimmed_path(where));
  if (!found) return found.error();
  if (!*found)
    return Error{concat(where,
                        ": holds no checkpoint; give the folder of another run, or start without "
                        "--resume")};
  if (const std::string& found_name = (*found)->plan.name; !name.empty() && found_name != name)
    return Error{
        concat(where, " is a run of ", found_name, "; resume it with `leeway resume ", where, "`")};
  return std::move(**found);
}

Expected<std::string> checkpoints_of(const std::string& where) {
  std::error_code ignored;
  if (!fs::is_directory(where, ignored))
    return Error{concat(where, ": is not a folder; give the folder of a run")};
  if (is_checkpoint(where)) return fs::path(absolute_path(where)).parent_path().string();
  auto folder = checkpoints_of_run(trimmed_path(where));
  if (!folder) return folder.error();
  return *folder ? std::move(**folder) : trimmed_path(where);
}

Expected<std::unique_ptr<RunCheckpoints>> RunCheckpoints::open(const Plan& plan,
                                                               const RunOptions& options) {
  std::unique_ptr<RunCheckpoints> out(new RunCheckpoints);
  out->run_ = random_name();
  if (!options.resume.empty()) {
    auto from = find_checkpoint(options.resume, plan.name);
    if (!from) return Error{concat("--resume: ", from.error().text)};
    out->from_ = std::move(*from);
    out->source_ = std::make_shared<checkpoint::Store>(disk(), out->from_.folder);
    out->next_ = out->from_.number + 1;
    if (const auto there = plan_of_run(options.folder);
        there && is_same_folder(checkpoint_folder(*there, options.folder), out->from_.folder))
      out->from_.run_folder = options.folder;  // with checkpoints elsewhere
    if (out->continues(options.folder)) out->continued_ = options.folder;
  }
  const auto& settings = plan.checkpoints;
  const bool usual = std::holds_alternative<plan::Usual>(settings.every);
  const bool chosen = !settings.directory.empty();
  if (std::holds_alternative<plan::Never>(settings.every)) return out;
  if (usual && plan.simulated && !chosen) return out;
  const std::string folder = checkpoint_folder(plan, options.folder);
  if (folder.empty()) return out;
  const bool on_nodes = options.cluster && !options.cluster->nodes.empty();
  out->store_ =
      std::make_shared<checkpoint::Store>(shared_disk(), absolute_path(folder), random_name());
  if (const Status locked = out->lock_folder(chosen || !usual || on_nodes); !locked)
    return locked.error();
  return out;
}

/// A default folder is created with its first checkpoint, so that short runs have none.
Status RunCheckpoints::lock_folder(bool at_once) {
  const std::string& folder = store_->folder();
  std::error_code error;
  if (at_once) fs::create_directories(folder, error);
  if (error)
    return Error{concat(folder, ": cannot be created: ", error.message(),
                        "; give another folder with --checkpoint-dir DIR, or --checkpoint-every "
                        "none")};
  if (!fs::is_directory(folder, error)) return {};
  if (access(folder.c_str(), W_OK) != 0)
    return Error{concat(folder, ": cannot be written: ", std::strerror(errno),
                        "; give another folder with --checkpoint-dir DIR, or --checkpoint-every "
                        "none")};
  auto lock = FolderLock::take(
      folder, "wait for it to end, or give another folder with --checkpoint-dir DIR");
  if (!lock) return lock.error();
  lock_ = std::move(*lock);
  const auto next = store_->next_number();
  if (!next) return next.error();
  if (source_ && is_same_folder(from_.folder, folder)) {
    const auto manifest = source_->manifest(from_.number);
    if (!manifest) return manifest.error();
    run_ = manifest->run;
  } else if (const auto numbers = store_->numbers(); !numbers) {
    return numbers.error();
  } else if (!numbers->empty()) {
    return Error{concat(folder, ": holds checkpoints of another run; continue that run with ",
                        "--resume ", folder, ", or give another folder with --checkpoint-dir DIR")};
  }
  next_ = std::max(next_, *next);
  return {};
}

RunCheckpoints::~RunCheckpoints() {
  if (lock_) store_->remove_mark();
}

Status RunCheckpoints::put_mark() const {
  return lock_ ? store_->put_mark() : Status();
}

Status RunCheckpoints::claim() const {
  if (!lock_) return {};
  store_->remove_mark();
  const auto next = store_->next_number();
  if (!next) return next.error();
  if (*next > next_)
    return Error{concat(store_->path(*next - 1),
                        ": was written by another process meanwhile; end one of the two")};
  return store_->claim(run_);
}

bool RunCheckpoints::continues(const std::string& run_folder) const {
  return source_ && is_same_folder(from_.run_folder, run_folder);
}

Status RunCheckpoints::prepare(const Plan& plan, const Model& model, const TrainTest& data,
                               JobOptions& job) {
  job.checkpoints = store_;
  job.next_checkpoint = next_;
  job.run = run_;
  if (store_ || source_) job.data_checksum = checksum_of(data);
  if (!source_) return {};
  auto loaded = source_->load(from_.number, model);
  if (!loaded) return Error{loaded.error().text + earlier_text(*source_, from_.number)};
  // make_job() reports another size.
  const bool same_size = loaded->manifest.epoch_samples == data.train->size();
  const std::uint64_t checksum = loaded->manifest.data_checksum;
  if (checksum > 0 && checksum != job.data_checksum && same_size)
    return Error{concat(from_.path(),
                        ": the data differ from those that the run began with; give "
                        "the same data")};
  const auto& supply = loaded->manifest.scheduler.supply;
  const std::int64_t end = samples_of_epochs(plan.stop.epochs, data.train->size());
  // A run that was killed after its last checkpoint still has to write its result.
  const bool is_complete =
      same_size && (continued_.empty() ||
                    samples_in_result(continued_) == checkpoint::samples_trained(loaded->manifest));
  const std::string trained = same_size ? trained_beyond(plan, supply, end) : "";
  if (!trained.empty()) return Error{concat(from_.path(), ": ", trained)};
  if (is_complete && plan.stop.epochs > 0 && supply.returned.empty() &&
      supply.fresh_of_parts.empty() && supply.fresh >= end)
    return Error{concat(from_.path(), ": all ", plan.stop.epochs,
                        " epochs are trained; give more with --epochs")};
  if (is_complete && plan.stop.iterations > 0 && supply.iterations >= plan.stop.iterations)
    return Error{concat(from_.path(), ": ", supply.iterations,
                        " iterations are trained; give more with --iterations")};
  job.resumed = std::make_shared<checkpoint::Checkpoint>(std::move(*loaded));
  return {};
}

}  // namespace leeway
