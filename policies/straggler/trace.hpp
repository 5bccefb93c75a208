#pragma once
// TraceStraggler: the factors of a file, one after the other.
#include <string>

#include "policies/straggler/straggler.hpp"

namespace leeway {

/// One factor per iteration, from the first line to the last, repeatedly. The constructor throws if
/// the file is invalid; check_files() reports that before a run.
class TraceStraggler final : public Straggler {
 public:
  explicit TraceStraggler(const plan::Trace& spec);
  Slowdown next(Instant now) override;
  void skip(std::uint64_t iterations) override;

 private:
  std::vector<double> factors_;
  std::size_t at_ = 0;
};

/// The factors of a trace: one per line, from 1 to plan::kMaxSlowdown. Empty lines and lines that
/// begin with '#' are ignored. An error names file and line.
Expected<std::vector<double>> read_trace(const std::string& path);

}  // namespace leeway
