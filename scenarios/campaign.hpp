#pragma once
// Campaign: the runs of a study, on all cores. Their figures are kept in a file of the study's
// folder, so that a study that was interrupted continues.
#include <leeway/leeway.hpp>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "study.hpp"

namespace leeway::study {

/// Seconds to a target that was not reached, and the loss of a run that failed.
inline constexpr double kNever = std::numeric_limits<double>::infinity();
/// The seeds that count begin at --seed, the one for tuning and fitting is this far above.
inline constexpr std::uint64_t kSeeds = 3, kTuningSeed = 1000;

class Campaign {
 public:
  /// By name. Figures that are not finite are kept as null, and read as infinite.
  using Figures = std::map<std::string, double>;
  /// Runs a trial in another way than leeway::run().
  using Runner = std::function<Result(const Named&)>;

  /// `total`: the number of runs of the study. Progress and the remaining time are printed to
  /// standard error, unless `quiet`: on a terminal after each run, otherwise now and then.
  Campaign(std::size_t total, bool quiet);

  /// Opens the report. Reads the figures of an earlier start from its folder, if it has one, and
  /// keeps new ones there. `settings` identify the study. Figures of a study with other settings
  /// are an error.
  Status open(Report& report, const nlohmann::json& settings);
  /// Runs the trials without figures. A run that fails by itself, because of its learning rate, has
  /// the figures of `failed`. Returns the exit code.
  int run(const std::vector<Named>& trials, const std::function<Figures(const Result&)>& figures,
          const Figures& failed, Report& report, const Runner& runner = {});
  /// Requires that this trial was run.
  const Figures& of(const std::string& trial) const { return known_.at(trial); }

 private:
  void write(const std::string& trial, const Figures& figures);
  void take(const nlohmann::json& line);
  void show_progress();

  const std::size_t total_;
  const bool shows_, on_terminal_;
  std::map<std::string, Figures> known_;
  std::ofstream out_;
  std::size_t ran_ = 0;  // in this process
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  // Of the last line of progress without a terminal.
  std::chrono::steady_clock::time_point line_at_ = begin_;
  std::size_t line_tenth_ = 0;
};

/// A number that differs if a plan or a name differs. Part of a study's settings, so that figures
/// of an earlier definition of its methods are not taken for those of the present one.
std::string fingerprint(std::span<const Named> trials);

// Of ascending values:

/// Requires an odd number of values.
double middle(const std::vector<double>& values);
/// "(1.10 to 1.42)"
std::string range_text(const std::vector<double>& values,
                       const std::function<std::string(double)>&);
/// "1.25 (1.10 to 1.42)"
std::string median_text(const std::vector<double>& values,
                        const std::function<std::string(double)>&);

}  // namespace leeway::study
