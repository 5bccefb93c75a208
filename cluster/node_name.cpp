#include "cluster/node_name.hpp"

#include <charconv>

#include "core/text.hpp"
#include "core/this_host.hpp"
#include "transport/probe.hpp"

namespace leeway {

Expected<NodeName> parse_node(const std::string& text) {
  const auto refuse = [&] {
    return Error{concat('"', text, "\" is not a node; give HOST:PORT, as in 127.0.0.1:4242")};
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return refuse();
  NodeName name{text.substr(0, colon), 0};
  if (name.host.front() == '[' && name.host.back() == ']')
    name.host = name.host.substr(1, name.host.size() - 2);
  else if (name.host.find(':') != std::string::npos)
    return refuse();
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, name.port);
  if (error == std::errc::result_out_of_range && stop == end)
    return Error{concat('"', text, "\" has a port that is too large; give 65535 at most")};
  if (error != std::errc() || stop != end || name.host.empty()) return refuse();
  return name;
}

std::string node_name(const std::string& host, std::uint16_t port) {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return is_ipv6 ? concat('[', host, "]:", port) : concat(host, ':', port);
}

std::string leeway_version() {
  return LEEWAY_VERSION;
}

std::string reachable_at(const std::string& address, const std::vector<std::string>& nodes) {
  if (!transport::is_any(address)) return address;
  std::string host;
  for (const auto& text : nodes) {
    const auto node = parse_node(text);
    const std::string own = node ? transport::local_host_towards(node->host, node->port) : "";
    if (!own.empty()) host = own;
    if (!host.empty() && !is_loopback(host)) break;
  }
  if (host.empty()) host = host_name();
  return host.empty() ? "localhost" : host;
}

}  // namespace leeway
