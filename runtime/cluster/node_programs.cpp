#include "runtime/cluster/node_programs.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <utility>

#include "cluster/agent_process.hpp"
#include "cluster/node_name.hpp"
#include "core/exit_codes.hpp"
#include "core/text.hpp"
#include "dashboard/server.hpp"
#include "runtime/cluster/node_doctor.hpp"
#include "runtime/cluster/node_log.hpp"
#include "runtime/cluster/node_status.hpp"
#include "runtime/cluster/options.hpp"
#include "runtime/flags/cluster.hpp"
#include "runtime/flags/option.hpp"
#include "runtime/flags/page.hpp"
#include "runtime/flags/usage.hpp"
#include "runtime/interrupt.hpp"

namespace leeway {
namespace {

constexpr unsigned kMaxLocalNodes = 64;
constexpr std::chrono::milliseconds kPagePeriod(100);  // between two changes of a page

struct NodeFlags {
  std::string program;  // prefix of errors
  std::string listen = "127.0.0.1:0";
  std::string target;
  std::string wait = "30s";
  std::optional<std::string> log;
  unsigned count = 0;
  std::optional<std::string> serve;
  std::optional<std::string> serve_token;
  bool json = false, restart = false;
  ClusterFlags links;
};

int refuse(const NodeFlags& flags, const std::string& text) {
  std::cerr << flags.program << ": " << text << '\n';
  return kExitRefused;
}

// ---- node and join ----

/// Of the page that the node serves; nullopt: none.
Expected<std::optional<dashboard::ServerOptions>> page_options(const NodeFlags& flags,
                                                               const ClusterOptions& links) {
  if (const Status token =
          check_serve_token(flags.serve.has_value(), flags.serve_token.has_value());
      !token)
    return token.error();
  if (!flags.serve) return std::optional<dashboard::ServerOptions>();
  auto options = dashboard::server_options(*flags.serve, flags.serve_token.value_or(""), links.tls);
  if (!options) return options.error();
  return std::optional(std::move(*options));
}

/// Serves the page of the agent's job.
Expected<std::unique_ptr<dashboard::Server>> serve_page(const dashboard::ServerOptions& options,
                                                        ProgramPage& page) {
  const auto state = [&page](std::uint64_t since) -> Expected<dashboard::Feed::State> {
    const auto answer = page.state(since);
    if (!answer) return answer.error();
    const auto bytes = answer->json.bytes();
    return dashboard::Feed::State{{reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                  answer->revision,
                                  answer->ended};
  };
  return dashboard::Server::open(options, {.state = state,
                                           .stop = [&page] { return page.stop(); },
                                           .predict = {},
                                           .period = kPagePeriod});
}

/// An agent; `join`: the program whose job it joins, or empty.
int run_agent(const NodeFlags& flags, const std::string& join) {
  const auto format = parse_log_format(flags.log);
  if (!format) return refuse(flags, format.error().text);
  const auto where = parse_node(flags.listen);
  if (!where) return refuse(flags, concat("--listen: ", where.error().text));
  const auto links = read_links(flags.links);
  if (!links) return refuse(flags, links.error().text);
  if (const auto program = parse_node(join); !join.empty() && !program)
    return refuse(flags, concat("PROGRAM: ", program.error().text));
  const auto wait = parse_wait(flags.wait);
  if (!wait) return refuse(flags, wait.error().text);
  const auto serve = page_options(flags, *links);
  if (!serve) return refuse(flags, serve.error().text);
  const InterruptGuard guard;
  NodeLog log(*format);
  log.set_node(flags.listen);
  const auto fail = [&](const std::string& text) {
    if (*format == LogFormat::text) return refuse(flags, text);
    log.write(LogLevel::error, text);
    return kExitRefused;
  };
  AgentProcessOptions options;
  options.mesh = mesh_options(*links);
  options.mesh.address = where->host;
  options.mesh.port = where->port;
  options.agent.join = join;
  options.agent.join_wait = *wait;
  options.log = [&](LogLevel level, const std::string& line) { log.write(level, line); };
  auto agent = AgentProcess::open(std::move(options));
  if (!agent) return fail(agent.error().text);
  std::unique_ptr<dashboard::Server> page;
  if (*serve) {
    auto served = serve_page(**serve, (*agent)->page());
    if (!served) return fail(concat("--serve: ", served.error().text));
    page = std::move(*served);
  }
  log.set_node((*agent)->name());
  log.write(LogLevel::info, concat("listening on ", (*agent)->name()));
  if (page) log.write(LogLevel::info, concat("page: ", page->url()));
  notify_service_manager(concat("READY=1\nSTATUS=listening on ", (*agent)->name()));
  bool stopping = false;
  const auto ended = (*agent)->run([&] {
    if (guard.interrupted() && !std::exchange(stopping, true)) notify_service_manager("STOPPING=1");
    return stopping;
  });
  if (ended) return kExitOk;
  const int refused = fail(ended.error().text);
  return (*agent)->has_lost_program() ? kExitFailed : refused;
}

void add_agent_flags(CLI::App& app, NodeFlags& flags) {
  add_value(app, "--log", flags.log,
            "Lines of the log: text, or json with time and level; default: text, with priorities "
            "if systemd reads them");
  add_value(app, "--serve", flags.serve,
            "Serve the page of the job that runs here, if its program serves one, at this port or "
            "HOST:PORT; 0: any free port");
  add_value(app, "--serve-token", flags.serve_token, kServeTokenHelp);
}

CLI::Option* add_listen(CLI::App& app, NodeFlags& flags) {
  return add_value(app, "--listen", flags.listen,
                   "HOST:PORT, the address at which other nodes reach this node; "
                   "port 0: any free port");
}

void add_node(CLI::App& app, NodeFlags& flags) {
  add_listen(app, flags)->required();
  add_agent_flags(app, flags);
}

int run_node(const NodeFlags& flags) {
  return run_agent(flags, "");
}

void add_join(CLI::App& app, NodeFlags& flags) {
  add_listen(app, flags)->capture_default_str();
  add_value(app, "PROGRAM", flags.target, "HOST:PORT that the program prints")->required();
  add_value(app, "--wait", flags.wait, "For a worker that is missing, 0s to 24h")
      ->capture_default_str();
  add_agent_flags(app, flags);
}

int run_join(const NodeFlags& flags) {
  return run_agent(flags, flags.target);
}

// ---- up, status and doctor ----

void add_up(CLI::App& app, NodeFlags& flags) {
  add_value(app, "N", flags.count, "Number of agents", concat("1 to ", kMaxLocalNodes))->required();
  add_switch(app, "--restart", flags.restart,
             "Restart agents that end, at the same addresses; a running program calls them and "
             "gives them their workers");
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
  return run_up(flags.count, arguments, flags.links.tls.value_or(""), flags.restart);
}

void add_json(CLI::App& app, NodeFlags& flags) {
  add_switch(app, "--json", flags.json, "As JSON");
}

void add_status(CLI::App& app, NodeFlags& flags) {
  add_value(app, "NODE", flags.target, "HOST:PORT of any node, or of the program")->required();
  add_json(app, flags);
}

int status(const NodeFlags& flags) {
  const auto links = read_links(flags.links);
  return links ? show_status(flags.target, *links, flags.json) : refuse(flags, links.error().text);
}

void add_doctor(CLI::App& app, NodeFlags& flags) {
  add_value(app, "NODES", flags.links.nodes,
            "The node agents, a:4242,b:4242; default: the variable LEEWAY_NODES");
  add_value(app, "--hosts", flags.links.hosts,
            "Read the nodes from a file, one per line, # begins a comment");
  add_json(app, flags);
}

int doctor(const NodeFlags& flags) {
  const auto nodes = read_cluster(flags.links, false);
  if (!nodes) return refuse(flags, nodes.error().text);
  if (nodes->nodes.empty())
    return refuse(flags, "doctor: give the nodes, as in leeway doctor a:4242,b:4242");
  if (const Status checked = check_nodes(*nodes); !checked)
    return refuse(flags, checked.error().text);
  return examine_nodes(*nodes, flags.json);
}

// ---- the list ----

struct NodeProgram {
  const char* word;
  bool of_scenarios;  // scenario programs have it too
  const char* description;
  const char* exit_codes;
  void (*add)(CLI::App&, NodeFlags&);
  int (*run)(const NodeFlags&);
};

constexpr NodeProgram kPrograms[] = {
    {"node", true,
     "Hosts workers and shards of programs that run with --nodes, one program at a time.",
     "0 stopped by Ctrl-C, 2 bad usage or cannot listen.", add_node, run_node},
    {"join", true, "Joins a running program and hosts its missing workers.",
     "0 the job ended or Ctrl-C, 1 the program is lost, 2 bad usage or refused.", add_join,
     run_join},
    {"up", false, "Starts node agents on this host, and stops them on Ctrl-C.",
     "0 stopped by Ctrl-C, 1 a node did not start or all ended, 2 bad usage.", add_up, up},
    {"status", false, "Shows a job: its nodes, actors, clocks, waiting workers and connections.",
     "0 ok, 1 no answer, 2 bad usage.", add_status, status},
    {"doctor", false,
     "Checks node agents before a run: versions, clocks, certificates, whether each node reaches "
     "each other, and how fast.",
     "0 no problem, 1 problems, 2 bad usage, 130 interrupted.", add_doctor, doctor},
};

const NodeProgram* find_program(const std::string& word) {
  const auto found = std::ranges::find(kPrograms, word, &NodeProgram::word);
  return found == std::end(kPrograms) ? nullptr : found;
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
  const NodeProgram* const program = find_program(word);
  return program && program->of_scenarios;
}

int run_node_program(int argc, char** argv) {
  const NodeProgram& program = *find_program(argv[1]);
  NodeFlags flags;
  flags.program = std::filesystem::path(argv[0]).filename().string();
  CLI::App app(program.description, concat(flags.program, ' ', program.word));
  app.formatter(help_formatter());
  program.add(app, flags);
  add_link_flags(app, flags.links, "Options");
  app.footer(concat("Exit codes: ", program.exit_codes));
  try {
    parse_words(app, argc - 1, argv + 1);
  } catch (const CLI::ParseError& error) {
    return answer(app, error, flags.program);
  }
  return program.run(flags);
}

}  // namespace leeway
