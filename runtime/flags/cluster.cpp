#include "runtime/flags/cluster.hpp"

#include <cstdlib>

#include "core/text.hpp"
#include "runtime/flags/option.hpp"

namespace leeway {

void add_link_flags(CLI::App& app, ClusterFlags& flags, const std::string& group) {
  add_value(app, "--transport", flags.transport,
            "Transport of tensors: auto (shared memory within a host, TCP between hosts), tcp "
            "or shm")
      ->group(group)
      ->default_str("auto");
  add_value(app, "--tls", flags.tls,
            "Folder of `leeway cert`: encrypt, and accept only nodes of the same authority; "
            "without it all nodes are on this host")
      ->group(group);
  add_value(app, "--silence", flags.silence,
            "Time without a sign of life after which a node is suspected")
      ->group(group)
      ->default_str("2s");
}

void add_cluster_flags(CLI::App& app, ClusterFlags& flags) {
  const std::string cluster = "Cluster";
  add_value(app, "--nodes", flags.nodes,
            "Run on these node agents, a:4242,b:4242 (see `leeway node` and `leeway up`); "
            "default: the variable LEEWAY_NODES, or only this process")
      ->group(cluster);
  add_value(app, "--hosts", flags.hosts,
            "Read the nodes from a file, one per line, # begins a comment")
      ->group(cluster);
  add_value(
      app, "--at-least", flags.at_least,
      "Start without nodes that cannot take part, if at least this number can; the others are "
      "called again, and then take their workers; default: all nodes")
      ->group(cluster);
  add_value(app, "--place", flags.place,
            "Node of each actor, comma-separated: shard0=1, shards=1+2 (in turn; stages of "
            "pipelines in rows), worker2=3, workers=2, worker5=later (for a node that joins); "
            "0 is this program; default: spread over the agents")
      ->group(cluster);
  add_value(app, "--port", flags.port,
            "Port on which this program listens for nodes that join, 0 to 65535; 0: any free "
            "port")
      ->group(cluster)
      ->default_str("0");
  add_link_flags(app, flags, cluster);
}

Expected<ClusterOptions> read_links(const ClusterFlags& flags) {
  ClusterOptions options;
  if (flags.transport) {
    const auto transport = parse_transport(*flags.transport);
    if (!transport) return transport.error();
    options.transport = *transport;
  }
  if (flags.silence) {
    const auto silence = parse_silence(*flags.silence);
    if (!silence) return silence.error();
    options.silence = *silence;
  }
  options.tls = flags.tls.value_or("");
  return options;
}

Expected<ClusterOptions> read_cluster(const ClusterFlags& flags, bool simulated) {
  auto options = read_links(flags);
  if (!options) return options;
  const char* variable = std::getenv("LEEWAY_NODES");
  const bool use_variable = variable && *variable && !simulated;
  if (flags.nodes && flags.hosts)
    return Error{"--nodes and --hosts contradict each other; give one"};
  if (flags.nodes || flags.hosts || use_variable) {
    auto nodes = flags.hosts ? nodes_from_file(*flags.hosts)
                             : parse_nodes(flags.nodes ? *flags.nodes : variable);
    if (!nodes)
      return Error{concat(flags.hosts   ? "--hosts: "
                          : flags.nodes ? "--nodes: "
                                        : "LEEWAY_NODES: ",
                          nodes.error().text)};
    options->nodes = std::move(*nodes);
  } else if (flags.at_least || flags.place || flags.port || flags.transport || flags.tls ||
             flags.silence) {
    return Error{concat(flags.at_least    ? "--at-least"
                        : flags.place     ? "--place"
                        : flags.port      ? "--port"
                        : flags.transport ? "--transport"
                        : flags.tls       ? "--tls"
                                          : "--silence",
                        " applies only to runs on nodes; add --nodes, or leave it out")};
  }
  if (flags.at_least) {
    const auto count = parse_at_least(*flags.at_least, options->nodes.size());
    if (!count) return count.error();
    options->at_least = *count;
  }
  options->place = flags.place.value_or("");
  if (flags.port) {
    const auto port = parse_port(*flags.port);
    if (!port) return port.error();
    options->port = *port;
  }
  return options;
}

}  // namespace leeway
