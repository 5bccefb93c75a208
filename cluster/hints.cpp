#include "cluster/hints.hpp"

#include <filesystem>

#include "cluster/node_name.hpp"
#include "core/text.hpp"
#include "core/this_host.hpp"
#include "transport/probe.hpp"

namespace leeway::cluster {
namespace {

bool is_on_this_host(const std::string& name) {
  const auto node = parse_node(name);
  return !node || is_loopback(node->host);
}

/// Each host has its own folder.
std::string tls_flag_of(const std::string& name, const std::string& folder) {
  if (folder.empty() || is_on_this_host(name)) return tls_flag(folder);
  return " --tls DIR` with its folder of `leeway cert";
}

}  // namespace

std::string tls_flag(const std::string& folder) {
  if (folder.empty()) return "";
  std::error_code error;
  const auto path = std::filesystem::absolute(folder, error);
  return " --tls " + shell_word(error ? folder : path.lexically_normal().string());
}

std::string node_command(const std::string& name, const std::string& tls) {
  return concat("leeway node --listen ", name, tls_flag_of(name, tls));
}

std::string join_command(const std::string& program, const std::string& name,
                         const std::string& tls) {
  // The other nodes reach a joined node at its own address.
  const char* const listen = is_on_this_host(name) ? "" : " --listen $(hostname):0";
  return concat(program, " join ", name, listen, tls_flag_of(name, tls));
}

}  // namespace leeway::cluster
