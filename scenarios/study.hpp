#pragma once
// Helpers for programs that compare several plans: data loaded once, a check of all plans before
// the first run, and a table that is printed and stored row by row.
#include <leeway/leeway.hpp>
#include <leeway/monitoring/picture.hpp>

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace leeway::study {

// Flags for Scenario::decides(): without effect in programs that have no pipelines, that make
// several runs, and that only simulate them and store a table.
const std::vector<std::string> kOfPipelines = {"--stages", "--pipelines", "--schedule",
                                               "--chunks", "--split",     "--recompute"};
const std::vector<std::string> kOfCheckpoints = {"--resume", "--checkpoint-every", "--keep",
                                                 "--checkpoint-dir"};
const std::vector<std::string> kOfSingleRuns = {"--nodes",         "--hosts",
                                                "--place",         "--port",
                                                "--transport",     "--tls",
                                                "--silence",       "--trace",
                                                "--trace-json",    "--trace-messages",
                                                "--profile",       "--check-determinism",
                                                "--serve",         "--serve-token",
                                                "--metrics",       "--tensorboard",
                                                "--strict",        "--resume",
                                                "--keep",          "--checkpoint-every",
                                                "--checkpoint-dir"};

/// parse() for programs that only simulate.
CommandLine parse_simulated(const Scenario& scenario, int argc, char** argv);

/// `text` right-aligned in `width` columns, after at least one space.
std::string cell(std::size_t width, const std::string& text);

/// Sets the speed of the plan's simulated cores, so that an iteration computes for `seconds`
/// without stragglers.
Status set_iteration_time(Plan& plan, double seconds);

/// Loads the plan's data, so that all copies of the plan in this process share it. Keeps at most
/// `test_samples` test samples.
Status share_data(Plan& plan, std::int64_t test_samples);

struct Named {
  std::string name;
  Plan plan;
};
/// Validates all plans, so that a study does not fail in the middle. The error begins with the name
/// of the first invalid plan.
Status check(std::span<const Named> plans);

/// Calls run(i) for each i below `count`, on all cores, and end(i, result) for each result, from
/// one thread at a time. Stops when an end() does not return 0. Returns what it returned.
int in_parallel(std::size_t count, const std::function<Result(std::size_t)>& run,
                const std::function<int(std::size_t, const Result&)>& end);

/// Prints the table of a study, and appends it to table.txt in the command line's folder, if any.
class Report {
 public:
  explicit Report(const CommandLine& line);
  /// Creates the folder, if any. A folder with the file `continues` was made by this program, and
  /// is used again.
  Status open(const std::string& continues = "");
  void print(const std::string& text);
  /// Rewrites loss.svg.
  void draw(std::span<const Chart> charts, const PictureOptions& options = {});
  /// Writes another file of the folder, if there is one.
  void write(const std::string& file, const std::string& content);
  const std::string& folder() const { return folder_; }
  /// Reports a failed run. Returns the exit code.
  int failed(const std::string& run, const Result& result);
  /// Reports why nothing runs. Returns the exit code.
  int refuse(const std::string& text);
  /// Prints the stored files and `more`. Returns the exit code: 1 if a file could not be written.
  int end(const std::string& more = "");

 private:
  void store(const std::string& file, const std::string& content);

  std::string name_, folder_;
  bool quiet_;
  std::string table_;               // the printed text; empty without a folder
  bool continues_ = false;          // in its folder, after an interruption
  std::vector<std::string> files_;  // besides the table
  Status stored_;                   // the first failure
};

}  // namespace leeway::study
