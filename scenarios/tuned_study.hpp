#pragma once
// TunedStudy: compares subjects, each with the learning rate that suits it best.
//
// Each subject runs with all its rates on the tuning seed, and with the best of them on the seeds
// that count. Finished runs are kept in the study's folder (campaign.hpp).
#include <leeway/leeway.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "campaign.hpp"

namespace leeway::study {

/// The names of a subject's trials are its own name, the rate and the seed.
struct Subject {
  std::string name;
  std::vector<double> rates;               // ascending
  std::function<Plan(double rate)> plan;   // of any seed
  std::vector<std::string> criteria = {};  // instead of those of the study's measures
};

struct Measures {
  std::function<Campaign::Figures(const Result&)> of;
  Campaign::Figures failed;
  /// The best rate has the least of the first of these figures, then of the next one.
  std::vector<std::string> criteria;
};

class TunedStudy {
 public:
  TunedStudy(std::uint64_t seed, std::vector<Subject> subjects, Measures measures, bool quiet);

  /// Checks all plans, makes all runs, and calls `print`. `settings`, the plans and the names of
  /// the figures identify the study. Returns the exit code.
  int run(Report& report, const nlohmann::json& settings, const std::function<void()>& print);

  // After the runs. Subjects are known by their names.

  double rate(const std::string& subject) const { return best_rate_.at(subject); }
  /// The rate, with `mark` if it is the least or the largest of those tried.
  std::string rate_text(const std::string& subject, const std::string& mark) const;
  /// The figures of the best rate on the tuning seed, for choices between subjects.
  const Campaign::Figures& tuning(const std::string& subject) const;
  /// The figures of each seed, in the order of the seeds.
  std::vector<Campaign::Figures> runs(const std::string& subject) const;
  /// One figure of each seed, ascending.
  std::vector<double> values(const std::string& subject, const std::string& figure) const;
  double median(const std::string& subject, const std::string& figure) const;
  /// A table of one figure of each subject and seed, below `title`.
  std::string seeds_table(const std::string& title, const std::vector<std::string>& subjects,
                          const std::string& figure,
                          const std::function<std::string(double)>& text) const;

 private:
  static std::string trial(const std::string& subject, double rate, std::uint64_t seed);
  Named named(const Subject& subject, double rate, std::uint64_t seed) const;
  std::vector<Named> tuning_trials() const;
  std::vector<Named> measured() const;
  double tuned_rate(const Subject& subject) const;

  const std::uint64_t seed_;
  const std::vector<Subject> subjects_;
  const Measures measures_;
  Campaign campaign_;
  std::map<std::string, double> best_rate_;
};

/// "1.25", or "never"
std::string time_text(double seconds);
/// "0.125", or "diverged"
std::string loss_text(double loss);

/// Where the test loss of a run reaches a target; kNever if it does not.
struct Arrival {
  double seconds = kNever;  // virtual
  double samples = kNever;  // trained until then
};
/// Interpolates between two evaluations as if the loss fell exponentially.
Arrival arrival_at(const Result& result, double loss);

}  // namespace leeway::study
