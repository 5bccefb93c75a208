#pragma once
// The subcommands of `leeway`. Each prints its result and returns the exit code.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/exit_codes.hpp"
#include "core/expected.hpp"
#include "runtime/sample.hpp"
#include "transport/certificates.hpp"

namespace leeway::cli {

/// Prints an error, and returns the exit code.
int refuse(const Error& error, int code = kExitRefused);
/// By the extension, .toml or .json; otherwise the name of a scenario.
bool is_plan_file(const std::string& target);

int list();

/// With `plan_only`, prints only the default plan, as a plan file.
int describe(const std::string& name, bool plan_only);

/// Prints all settings of a plan, with defaults, flags and explanations, in Markdown.
int settings();

/// Runs a scenario or a plan file (.toml, .json), passing `args` unchanged. A scenario's program
/// replaces this process.
int run(const std::string& target, const std::vector<std::string>& args);

/// Searches runs of a scenario or plan file for violations.
int fuzz(const std::string& target, const std::string& seeds, const std::vector<std::string>& args);

/// Most checkpoints of `leeway checkpoints --prune`.
inline constexpr std::uint32_t kMaxKept = 1'000'000;

struct CheckpointsOptions {
  bool verify = false;                // check the digests of all files
  std::optional<std::uint32_t> keep;  // remove all but the latest ones
};

/// Lists the checkpoints of the run in `folder`, or prunes them. Fails if one is damaged.
int checkpoints(const std::string& folder, const CheckpointsOptions& options);

struct MessagesOptions {
  std::string from, to;     // "worker2"; empty: any actor
  std::string kind;         // "push"; empty: any
  bool json = false;        // one JSON object per line
  std::uint64_t limit = 0;  // number of messages; 0: all
};

/// Prints the messages of the run in `folder`, or in a file.
int messages(const std::string& folder, const MessagesOptions& options);

/// Continues the run in `folder` with its scenario's program, or from its plan if that has no
/// program; "latest": the latest run in runs/. `args` are flags of scenario programs.
int resume(const std::string& folder, const std::vector<std::string>& args);

/// Continues a prompt with the text model of the run in `folder`.
int sample(const std::string& folder, const SampleOptions& options);

/// Creates a cluster's CA and the certificates of its nodes.
int cert(const CertificateOptions& options);

}  // namespace leeway::cli
