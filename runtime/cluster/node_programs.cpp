#include "runtime/cluster/node_programs.hpp"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "cluster/agent_process.hpp"
#include "cluster/node_name.hpp"
#include "core/text.hpp"
#include "runtime/cluster/node_status.hpp"
#include "runtime/cluster/options.hpp"
#include "runtime/flags/cluster.hpp"
#include "runtime/flags/option.hpp"
#include "runtime/flags/usage.hpp"
#include "runtime/interrupt.hpp"

namespace leeway {
namespace {

constexpr unsigned kMaxLocalNodes = 64;

struct NodeFlags {
  std::string program;  // prefix of errors
  std::string listen = "127.0.0.1:0";
  std::string target;
  std::string wait = "30s";
  unsigned count = 0;
  bool json = false;
  ClusterFlags links;
};

int refuse(const NodeFlags& flags, const std::string& text) {
  std::cerr << flags.program << ": " << text << '\n';
  return 2;
}

int run_agent(const NodeFlags& flags, const std::string& join) {
  const auto where = parse_node(flags.listen);
  if (!where) return refuse(flags, concat("--listen: ", where.error().text));
  const auto links = read_links(flags.links);
  if (!links) return refuse(flags, links.error().text);
  if (const auto program = parse_node(join); !join.empty() && !program)
    return refuse(flags, concat("PROGRAM: ", program.error().text));
  const auto wait = parse_wait(flags.wait);
  if (!wait) return refuse(flags, wait.error().text);
  const InterruptGuard guard;
  AgentProcessOptions options;
  options.mesh = mesh_options(*links);
  options.mesh.address = where->host;
  options.mesh.port = where->port;
  options.agent.join = join;
  options.agent.join_wait = *wait;
  options.say = [](const std::string& text) { std::cerr << "node: " << text << std::endl; };
  auto agent = AgentProcess::open(std::move(options));
  if (!agent) return refuse(flags, agent.error().text);
  const auto ended = (*agent)->run([&] { return guard.interrupted(); });
  return ended ? 0 : refuse(flags, ended.error().text);
}

int up(const NodeFlags& flags) {
  if (flags.count < 1 || flags.count > kMaxLocalNodes)
    return refuse(
        flags, concat("up: ", flags.count, " nodes are not allowed; give 1 to ", kMaxLocalNodes));
  if (const auto links = read_links(flags.links); !links) return refuse(flags, links.error().text);
  std::vector<std::string> arguments;
  const auto pass_on = [&](const char* flag, const std::optional<std::string>& value) {
    if (value) arguments.insert(arguments.end(), {flag, *value});
  };
  pass_on("--transport", flags.links.transport);
  pass_on("--tls", flags.links.tls);
  pass_on("--silence", flags.links.silence);
  return run_up(flags.count, arguments, flags.links.tls.value_or(""));
}

}  // namespace

std::string node_programs_help(const std::string& program) {
  return concat("As a node of a cluster, with this program's layers and data:\n  ", program,
                " node --listen HOST:PORT   hosts workers and shards of programs\n  ", program,
                " join PROGRAM:PORT         hosts missing workers of a running program\n"
                "  (node --help and join --help list their flags)\n\n"
                "Exit codes: 0 ok, 1 the run failed, 2 bad usage, 130 interrupted.");
}

bool is_node_program(const std::string& word) {
  return word == "node" || word == "join";
}

int run_node_program(int argc, char** argv) {
  const std::string word = argv[1];
  NodeFlags flags;
  flags.program = std::filesystem::path(argv[0]).filename().string();
  CLI::App app("", concat(flags.program, ' ', word));
  app.formatter(help_formatter());
  if (word == "node")
    app.description(
        "Hosts workers and shards of programs that run with --nodes, one program at a time.");
  if (word == "join") app.description("Joins a running program and hosts its missing workers.");
  if (word == "up") app.description("Starts node agents on this host, and stops them on Ctrl-C.");
  if (word == "status")
    app.description("Shows a job: its nodes, actors, clocks, waiting workers and connections.");
  if (word == "node" || word == "join")
    add_value(app, "--listen", flags.listen,
              "HOST:PORT, the address at which other nodes reach this node; "
              "port 0: any free port");
  if (word == "node") app.get_option("--listen")->required();
  if (word == "join") app.get_option("--listen")->capture_default_str();
  if (word == "join") {
    add_value(app, "PROGRAM", flags.target, "HOST:PORT that the program prints")->required();
    add_value(app, "--wait", flags.wait, "For a worker that is missing, 0s to 24h")
        ->capture_default_str();
  }
  if (word == "status") {
    add_value(app, "NODE", flags.target, "HOST:PORT of any node, or of the program")->required();
    add_switch(app, "--json", flags.json, "As JSON");
  }
  if (word == "up")
    add_value(app, "N", flags.count, "Number of agents", concat("1 to ", kMaxLocalNodes))
        ->required();
  add_link_flags(app, flags.links, "Options");
  app.footer(word == "status" ? "Exit codes: 0 ok, 1 no answer, 2 bad usage."
             : word == "up"
                 ? "Exit codes: 0 stopped by Ctrl-C, 1 a node did not start or all ended, "
                   "2 bad usage."
             : word == "join" ? "Exit codes: 0 the job ended or Ctrl-C, 2 bad usage or refused."
                              : "Exit codes: 0 stopped by Ctrl-C, 2 bad usage or cannot listen.");
  try {
    parse_words(app, argc - 1, argv + 1);
  } catch (const CLI::ParseError& error) {
    return answer(app, error, flags.program);
  }
  if (word == "up") return up(flags);
  if (word == "node" || word == "join") return run_agent(flags, flags.target);
  const auto links = read_links(flags.links);
  if (!links) return refuse(flags, links.error().text);
  return show_status(flags.target, *links, flags.json);
}

}  // namespace leeway
