#include "tuned_study.hpp"

#include <leeway/core/text.hpp>
#include <leeway/monitoring/format.hpp>

#include <algorithm>
#include <cmath>

namespace leeway::study {
namespace {

std::size_t runs_of(const std::vector<Subject>& subjects) {
  std::size_t count = 0;
  for (const Subject& subject : subjects) count += subject.rates.size() + kSeeds;
  return count;
}

}  // namespace

TunedStudy::TunedStudy(std::uint64_t seed, std::vector<Subject> subjects, Measures measures,
                       bool quiet)
    : seed_(seed),
      subjects_(std::move(subjects)),
      measures_(std::move(measures)),
      campaign_(runs_of(subjects_), quiet) {}

int TunedStudy::run(Report& report, const nlohmann::json& settings,
                    const std::function<void()>& print) {
  const std::vector<Named> first = tuning_trials();
  if (const Status valid = check(first); !valid) return report.refuse(valid.error().text);
  nlohmann::json identity = settings;
  identity["methods"] = fingerprint(first);
  for (const auto& [figure, value] : measures_.failed) identity["figures"].push_back(figure);
  if (const Status opened = campaign_.open(report, identity); !opened)
    return report.refuse(opened.error().text);
  const auto run_all = [&](const std::vector<Named>& trials) {
    return campaign_.run(trials, measures_.of, measures_.failed, report);
  };
  if (const int code = run_all(first)) return code;
  for (const Subject& subject : subjects_) best_rate_[subject.name] = tuned_rate(subject);
  if (const int code = run_all(measured())) return code;
  print();
  return report.end();
}

std::string TunedStudy::rate_text(const std::string& subject, const std::string& mark) const {
  const auto& rates = std::ranges::find(subjects_, subject, &Subject::name)->rates;
  const bool is_edge = rate(subject) == rates.front() || rate(subject) == rates.back();
  return concat(rate(subject), is_edge ? mark : "");
}

const Campaign::Figures& TunedStudy::tuning(const std::string& subject) const {
  return campaign_.of(trial(subject, rate(subject), seed_ + kTuningSeed));
}

std::vector<Campaign::Figures> TunedStudy::runs(const std::string& subject) const {
  std::vector<Campaign::Figures> all;
  for (std::uint64_t i = 0; i < kSeeds; ++i)
    all.push_back(campaign_.of(trial(subject, rate(subject), seed_ + i)));
  return all;
}

std::vector<double> TunedStudy::values(const std::string& subject,
                                       const std::string& figure) const {
  std::vector<double> all;
  for (const auto& figures : runs(subject)) all.push_back(figures.at(figure));
  std::ranges::sort(all);
  return all;
}

double TunedStudy::median(const std::string& subject, const std::string& figure) const {
  return middle(values(subject, figure));
}

std::string TunedStudy::seeds_table(const std::string& title,
                                    const std::vector<std::string>& subjects,
                                    const std::string& figure,
                                    const std::function<std::string(double)>& text) const {
  std::size_t width = 0;
  for (const std::string& subject : subjects) width = std::max(width, subject.size() + 1);
  std::string table = concat('\n', title, "\n\n", cell(width, "seed"));
  for (std::uint64_t i = 0; i < kSeeds; ++i) table += cell(12, concat(seed_ + i));
  for (const std::string& subject : subjects) {
    table += '\n' + cell(width, subject);
    for (const auto& figures : runs(subject)) table += cell(12, text(figures.at(figure)));
  }
  return table + '\n';
}

std::string TunedStudy::trial(const std::string& subject, double rate, std::uint64_t seed) {
  return concat(subject, ", rate ", rate, ", seed ", seed);
}

Named TunedStudy::named(const Subject& subject, double rate, std::uint64_t seed) const {
  Named named{trial(subject.name, rate, seed), subject.plan(rate)};
  named.plan.optimizer.learning_rate = rate;
  named.plan.seed = seed;
  return named;
}

std::vector<Named> TunedStudy::tuning_trials() const {
  std::vector<Named> trials;
  for (const Subject& subject : subjects_)
    for (const double rate : subject.rates)
      trials.push_back(named(subject, rate, seed_ + kTuningSeed));
  return trials;
}

std::vector<Named> TunedStudy::measured() const {
  std::vector<Named> trials;
  for (const Subject& subject : subjects_)
    for (std::uint64_t i = 0; i < kSeeds; ++i)
      trials.push_back(named(subject, rate(subject.name), seed_ + i));
  return trials;
}

double TunedStudy::tuned_rate(const Subject& subject) const {
  return *std::ranges::min_element(subject.rates, {}, [&](double rate) {
    const auto& figures = campaign_.of(trial(subject.name, rate, seed_ + kTuningSeed));
    std::vector<double> criteria;
    for (const std::string& name :
         subject.criteria.empty() ? measures_.criteria : subject.criteria) {
      const double value = figures.at(name);
      criteria.push_back(std::isnan(value) ? kNever : value);
    }
    return criteria;
  });
}

std::string time_text(double seconds) {
  return std::isinf(seconds) ? "never" : fixed(seconds, 2);
}

std::string loss_text(double loss) {
  return std::isfinite(loss) ? fixed(loss, 3) : "diverged";
}

Arrival arrival_at(const Result& result, double target) {
  double time = 0, samples = 0, loss = kNever;  // of the evaluation before
  for (const auto& evaluation : result.totals.evaluations) {
    const double now = (evaluation.now - Instant{}).seconds();
    const auto trained = static_cast<double>(evaluation.samples_trained);
    if (evaluation.loss <= target) {
      const double share = std::isinf(loss) ? 1
                                            : std::log(loss / target) /
                                                  std::log(loss / std::max(evaluation.loss, 1e-30));
      return {time + share * (now - time), samples + share * (trained - samples)};
    }
    time = now;
    samples = trained;
    loss = evaluation.loss;
  }
  return {};
}

}  // namespace leeway::study
