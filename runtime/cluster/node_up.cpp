// `leeway up`: starts several node agents on this host.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <utility>

#include "cluster/hints.hpp"
#include "core/text.hpp"
#include "runtime/cluster/children.hpp"
#include "runtime/cluster/node_programs.hpp"
#include "runtime/interrupt.hpp"

namespace leeway {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr auto kListenLimit = std::chrono::seconds(10);
/// Longer than an agent needs to stop its workers.
constexpr auto kEndLimit = std::chrono::seconds(13);

/// The node agents of this host.
class LocalAgents {
 public:
  LocalAgents(unsigned count, const std::vector<std::string>& arguments)
      : arguments_(arguments),
        agents_(count),
        children_({[this](std::size_t agent, Children::Stream, const std::string& line) {
                     print(agent, line);
                   },
                   [this](std::size_t agent, int status) { say_ended(agent, status); }}) {
    for (std::size_t i = 0; i < count; ++i) start(i, "127.0.0.1:0");
  }

  bool all_listen() const {
    return std::ranges::none_of(agents_, [](const Agent& agent) { return agent.name.empty(); });
  }
  std::size_t running() const { return children_.running(); }
  void poll() { children_.poll(); }
  void stop() { children_.stop(kEndLimit); }

  /// Restarts agents that have ended, at their addresses.
  void restart_ended() {
    for (std::size_t i = 0; i < agents_.size(); ++i) {
      Agent& agent = agents_[i];
      if (children_.runs(i) || agent.name.empty() || !agent.pause.is_over()) continue;
      agent.pause.adapt();
      start(i, agent.name);
    }
  }

  std::string names() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < agents_.size(); ++i)
      if (children_.runs(i) && !agents_[i].name.empty()) names.push_back(agents_[i].name);
    return join(names, ",");
  }

 private:
  struct Agent {
    std::string name;  // the address on which it listens; empty before it is printed
    RestartPause pause;
  };

  void start(std::size_t number, const std::string& listen) {
    Children::Command command{.program = "/proc/self/exe",
                              .arguments = {"node", "--listen", listen},
                              .environment = {},
                              .relays_out = false};
    command.arguments.insert(command.arguments.end(), arguments_.begin(), arguments_.end());
    agents_[number].pause.started();
    children_.start(number, command);
  }
  void print(std::size_t number, const std::string& line) {
    constexpr std::string_view kListening = "node: listening on ";
    if (line.starts_with(kListening)) agents_[number].name = line.substr(kListening.size());
    std::cerr << "node " << number + 1
              << (line.starts_with("node: ") ? line.substr(4) : ": " + line) << std::endl;
  }
  void say_ended(std::size_t number, int status) {
    const std::string& name = agents_[number].name;
    std::cerr << "node " << number + 1 << (name.empty() ? "" : concat(" (", name, ")")) << ' '
              << end_text(status) << std::endl;
  }

  const std::vector<std::string> arguments_;
  std::vector<Agent> agents_;
  Children children_;
};

}  // namespace

int run_up(unsigned count, const std::vector<std::string>& arguments, const std::string& tls,
           bool restart) {
  const InterruptGuard guard;
  LocalAgents agents(count, arguments);
  const auto until = SteadyClock::now() + kListenLimit;
  while (!agents.all_listen() && agents.running() == count && !guard.interrupted() &&
         SteadyClock::now() < until)
    agents.poll();
  const bool started = agents.all_listen();
  if (started)
    std::cout << "In another terminal, run a scenario on these nodes with\n\n  --nodes "
              << agents.names() << cluster::tls_flag(tls) << "\n\nCtrl-C stops them." << std::endl;
  else if (!guard.interrupted())
    std::cerr << "leeway: not all nodes started; see their output above\n";
  std::size_t running = count;
  while (started && !guard.interrupted() && running > 0) {
    agents.poll();
    const std::size_t before = std::exchange(running, agents.running());
    if (restart && !guard.interrupted()) {
      agents.restart_ended();
      running = std::max<std::size_t>(running, 1);  // agents that wait for a restart count
      continue;
    }
    if (running == before || guard.interrupted()) continue;
    if (running > 0)
      std::cerr << "leeway: the other nodes continue: --nodes " << agents.names()
                << cluster::tls_flag(tls) << std::endl;
    else
      std::cerr << "leeway: all nodes have ended" << std::endl;
  }
  agents.stop();
  return started && running > 0 ? 0 : 1;
}

}  // namespace leeway
