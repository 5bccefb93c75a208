#pragma once
// TraceStraggler: the factors of a file, one after the other.
#include <string>

#include "policies/straggler/straggler.hpp"

namespace leeway {

/// From the first line on, one factor an iteration, and from the first again after the last.
/// Throws if the file cannot be used: check_files() tells before a run.
class TraceStraggler final : public Straggler {
 public:
  explicit TraceStraggler(const plan::Trace& spec);
  Slowdown next(Instant now) override;

 private:
  std::vector<double> factors_;
  std::size_t at_ = 0;
};

/// The numbers of a trace: one a line, from 1 to plan::kMaxSlowdown; empty lines and lines that
/// begin with '#' do not count. An error names file and line.
Expected<std::vector<double>> read_trace(const std::string& path);

}  // namespace leeway
