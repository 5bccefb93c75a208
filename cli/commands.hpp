#pragma once
// The subcommands of `leeway`. Each prints, and returns the exit code.
#include <string>
#include <vector>

#include "cluster/certificates.hpp"
#include "runtime/sample.hpp"

namespace leeway::cli {

inline constexpr int kOk = 0;
inline constexpr int kRunFailed = 1;
inline constexpr int kBadUsage = 2;

int list();

/// With `plan_alone`, only the default plan, as a plan file.
int describe(const std::string& name, bool plan_alone);

/// `target` is a scenario's name or a plan file (.toml, .json); `args` are handed over as they are.
/// A scenario's program takes the place of this one.
int run(const std::string& target, const std::vector<std::string>& args);

/// Searches runs of a scenario, or of a plan file, for violations; `args` begin with its name.
int fuzz(const std::string& target, const std::string& seeds, const std::vector<std::string>& args);

/// Writes what the text model of the run kept in `folder` makes of a prompt.
int sample(const std::string& folder, const SampleOptions& options);

/// Makes a cluster's CA, and the certificates of nodes.
int cert(const CertificateOptions& options);

}  // namespace leeway::cli
