#pragma once
// TraceStraggler: the factors of a file, one after the other.
#include <string>

#include "policies/straggler/repeated.hpp"

namespace leeway {

/// The constructor throws if the file is invalid; check_sources() reports that before a run.
class TraceStraggler final : public RepeatedStraggler {
 public:
  explicit TraceStraggler(const plan::Trace& spec);
};

/// The factors of a trace: one per line, from 1 to plan::kMaxSlowdown. Empty lines and lines that
/// begin with '#' are ignored. An error names file and line.
Expected<std::vector<double>> read_trace(const std::string& path);

}  // namespace leeway
