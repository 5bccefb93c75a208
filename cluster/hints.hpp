#pragma once
// Hints: commands in errors and notes, complete enough to be pasted into a shell.
#include <string>

namespace leeway::cluster {

/// ` --tls /keys/a` with the absolute path of the folder, quoted for a shell if necessary; empty
/// without TLS.
std::string tls_flag(const std::string& folder);

/// The command that starts the agent of a node, "HOST:PORT". `tls`: folder of this process.
std::string node_command(const std::string& name, const std::string& tls);

/// The command by which an agent joins the program at `name`. `program`: the agent's program;
/// `tls`: folder of this process.
std::string join_command(const std::string& program, const std::string& name,
                         const std::string& tls);

}  // namespace leeway::cluster
