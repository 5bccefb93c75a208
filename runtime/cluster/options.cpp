#include "runtime/cluster/options.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

#include "cluster/node_name.hpp"
#include "core/number.hpp"
#include "core/text.hpp"
#include "core/text_reader.hpp"
#include "core/this_host.hpp"
#include "transport/probe.hpp"

namespace leeway {
namespace {

/// None if the text is no time from `least` to `most` seconds.
std::optional<Duration> time_between(const std::string& text, double least, double most) {
  TextReader in(text);
  const double time = in.time();
  in.expect_end();
  if (!in.problem().empty() || !(time >= least && time <= most)) return std::nullopt;
  return nanoseconds(static_cast<std::int64_t>(time * 1e9));
}

}  // namespace

Expected<std::vector<std::string>> parse_nodes(const std::string& text) {
  std::vector<std::string> nodes;
  for (const std::string& item : comma_separated(text)) {
    const std::string name(trimmed(item));
    if (const auto node = parse_node(name); !node) return node.error();
    nodes.push_back(name);
  }
  return nodes;
}

Expected<std::vector<std::string>> nodes_from_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return Error{concat(path, ": is a folder; give a file with one node per line")};
  std::ifstream in(path);
  if (!in) return Error{concat(path, ": cannot be read; give a file with one node per line")};
  std::vector<std::string> nodes;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    const std::string name(trimmed(std::string_view(line).substr(0, line.find('#'))));
    if (name.empty()) continue;
    if (const auto node = parse_node(name); !node)
      return Error{concat(path, ':', number, ": ", node.error().text)};
    nodes.push_back(name);
  }
  if (nodes.empty()) return Error{concat(path, ": contains no nodes; write one per line")};
  return nodes;
}

Expected<Transport> parse_transport(const std::string& text) {
  if (text == "auto") return Transport::automatic;
  if (text == "tcp") return Transport::tcp;
  if (text == "shm") return Transport::shared_memory;
  return Error{concat("--transport: \"", text, "\" is not known; give auto, tcp or shm")};
}

std::string name_of(Transport transport) {
  if (transport == Transport::automatic) return "auto";
  return transport == Transport::tcp ? "tcp" : "shm";
}

Expected<Duration> parse_silence(const std::string& text) {
  const auto time = time_between(text, 0.05, 600);
  if (time) return *time;
  return Error{concat("--silence: \"", text, "\" is not allowed; give 50ms to 600s, as in 2s")};
}

std::string silence_text(Duration silence) {
  const std::int64_t ms = silence.ns / 1'000'000;
  return ms % 1000 == 0 ? concat(ms / 1000, 's') : concat(ms, "ms");
}

Expected<Duration> parse_wait(const std::string& text) {
  constexpr double kDay = 86400;
  const auto time = time_between(text, 0, kDay);
  if (time) return *time;
  return Error{concat("--wait: \"", text, "\" is not allowed; give 0s to 24h, as in 30s")};
}

Expected<std::uint32_t> parse_at_least(const std::string& text, std::size_t nodes) {
  const auto count = parse_number<std::uint32_t>(text);
  if (!count || *count < 1 || *count > nodes)
    return Error{concat("--at-least: \"", text, "\" is not allowed; give a number from 1 to ",
                        nodes, ", the number of nodes")};
  return *count;
}

Expected<std::uint16_t> parse_port(const std::string& text) {
  const auto port = parse_number<std::uint16_t>(text);
  if (!port)
    return Error{
        concat("--port: \"", text, "\" is not a port; give 1 to 65535, or 0 for any free port")};
  return *port;
}

Status check_nodes(const ClusterOptions& options) {
  std::set<std::string> names;
  for (const std::string& name : options.nodes) {
    const auto node = parse_node(name);
    if (!node) return node.error();
    if (!names.insert(name).second)
      return Error{concat("node ", name, " is named twice; name each once")};
    if (!options.tls.empty() || is_loopback(node->host)) continue;
    if (const std::string why = transport::unresolved(node->host); !why.empty())
      return Error{
          concat("node ", name, ": ", node->host, " has no address: ", why, "; check the name")};
    return Error{concat("node ", name,
                        " is not at a loopback address, and other addresses require TLS; give "
                        "--tls DIR, a folder of `leeway cert`, to this program and to the node")};
  }
  return {};
}

MeshOptions mesh_options(const ClusterOptions& options) {
  MeshOptions mesh;
  // "::" accepts IPv4 too, where the host has IPv6.
  const bool has_ipv6 =
      std::ranges::any_of(options.nodes, [](const auto& node) { return node.starts_with('['); });
  mesh.address = options.tls.empty() ? "127.0.0.1" : has_ipv6 ? "::" : "0.0.0.0";
  mesh.port = options.port;
  mesh.tls = options.tls;
  mesh.silence = options.silence;
  mesh.transport = options.transport;
  return mesh;
}

}  // namespace leeway
