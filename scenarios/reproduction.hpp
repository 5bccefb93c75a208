#pragma once
// Shared code of the reproductions of published results: the flag of their long form, published
// figures beside measured ones, a verdict, and pictures of losses over time.
#include <leeway/leeway.hpp>
#include <leeway/monitoring/picture.hpp>

#include <span>
#include <string>
#include <vector>

#include "campaign.hpp"

namespace leeway::study {

/// The picture in the folder of a reproduction.
inline constexpr const char* kPicture = "picture.svg";

/// Takes the flag --full out of the arguments. Returns whether it was given.
bool take_full(int& argc, char** argv);

/// A published figure beside the measured one. A published order, which has no deviation, leaves it
/// empty.
struct Comparison {
  std::string figure, published, here, deviation;
};
std::string comparison_table(std::span<const Comparison> rows);

enum class Outcome { reproduced, not_reproduced, null_result };
/// "Verdict: reproduced; REASON.", in lines of at most 96 columns.
std::string verdict_line(Outcome outcome, const std::string& reason);

/// Keeps the test losses of a run over virtual seconds. Requires at least one evaluation.
void keep_losses(Campaign::Figures& figures, const Result& result);
/// The losses that keep_losses() has kept, without those that are not finite.
Series losses_of(const std::string& name, const Campaign::Figures& figures);

/// Adds two series to a chart: the medians of values of seeds, and their ranges as dashed lines.
class Band {
 public:
  explicit Band(std::string name) : name_(std::move(name)) {}
  /// Requires ascending values.
  void add(double x, const std::vector<double>& values);
  void append_to(Chart& chart) const;

 private:
  std::string name_;
  std::vector<std::pair<double, double>> medians_, ranges_;
};

}  // namespace leeway::study
