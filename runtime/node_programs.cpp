#include "runtime/node_programs.hpp"

#include <CLI/CLI.hpp>
#include <iostream>

#include "cluster/agent.hpp"
#include "cluster/node_name.hpp"
#include "core/text.hpp"
#include "runtime/cluster_flags.hpp"
#include "runtime/interrupt.hpp"
#include "runtime/node_status.hpp"

namespace leeway {
namespace {

constexpr unsigned kMostNodesHere = 64;

struct NodeFlags {
  std::string listen = "127.0.0.1:0";
  std::string target;
  unsigned count = 0;
  bool json = false;
  ClusterFlags links;
};

int refuse(const std::string& text) {
  std::cerr << "leeway: " << text << '\n';
  return 2;
}

int run_agent(const NodeFlags& flags, const std::string& join) {
  const auto where = parse_node(flags.listen);
  if (!where) return refuse(concat("--listen: ", where.error().text));
  const auto links = read_links(flags.links);
  if (!links) return refuse(links.error().text);
  const InterruptGuard guard;
  AgentOptions options;
  options.mesh = mesh_options(*links);
  options.mesh.address = where->host;
  options.mesh.port = where->port;
  options.join = join;
  options.say = [](const std::string& text) { std::cerr << "node: " << text << std::endl; };
  auto agent = Agent::open(std::move(options));
  if (!agent) return refuse(agent.error().text);
  const auto ended = (*agent)->run([&] { return guard.interrupted(); });
  return ended ? 0 : refuse(ended.error().text);
}

int up(const NodeFlags& flags) {
  if (flags.count < 1 || flags.count > kMostNodesHere)
    return refuse(
        concat("up: ", flags.count, " nodes are not allowed; give 1 to ", kMostNodesHere));
  if (const auto links = read_links(flags.links); !links) return refuse(links.error().text);
  std::vector<std::string> arguments;
  const auto pass_on = [&](const char* flag, const std::optional<std::string>& value) {
    if (value) arguments.insert(arguments.end(), {flag, *value});
  };
  pass_on("--transport", flags.links.transport);
  pass_on("--tls", flags.links.tls);
  pass_on("--silence", flags.links.silence);
  return run_up(flags.count, arguments);
}

}  // namespace

bool is_node_program(const std::string& word) {
  return word == "node" || word == "join";
}

int run_node_program(int argc, char** argv) {
  const std::string word = argv[1];
  NodeFlags flags;
  CLI::App app("", concat("leeway ", word));
  if (word == "node")
    app.description(
        "Hosts workers and shards of programs that are given --nodes, one after another.");
  if (word == "join")
    app.description("Offers itself to a program that is running, for workers that are missing.");
  if (word == "up") app.description("Starts node agents on this host, and ends them on Ctrl-C.");
  if (word == "status") app.description("Shows a job: nodes, actors, clocks, who waits for whom.");
  if (word == "node" || word == "join")
    app.add_option("--listen", flags.listen, "HOST:PORT where others reach this node; port 0: any")
        ->capture_default_str();
  if (word == "node") app.get_option("--listen")->required();
  if (word == "join")
    app.add_option("PROGRAM", flags.target, "HOST:PORT of the program, as it prints it")
        ->required();
  if (word == "status") {
    app.add_option("NODE", flags.target, "HOST:PORT of any node, or of the program")->required();
    app.add_flag("--json", flags.json, "As JSON");
  }
  if (word == "up") app.add_option("N", flags.count, "How many")->required();
  add_link_flags(app, flags.links, "Options");
  try {
    app.parse(argc - 1, argv + 1);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (word == "up") return up(flags);
  if (word == "node" || word == "join") return run_agent(flags, flags.target);
  const auto links = read_links(flags.links);
  if (!links) return refuse(links.error().text);
  return show_status(flags.target, *links, flags.json);
}

}  // namespace leeway
