#include "runtime/cluster/node_doctor.hpp"

#include <chrono>
#include <cmath>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "cluster/hints.hpp"
#include "cluster/link_meter.hpp"
#include "cluster/node_name.hpp"
#include "core/exit_codes.hpp"
#include "core/text.hpp"
#include "core/this_host.hpp"
#include "monitoring/format.hpp"
#include "runtime/cluster/text_table.hpp"
#include "runtime/interrupt.hpp"

namespace leeway {
namespace {

constexpr Duration kTick = milliseconds(50);
constexpr Duration kCallLimit = seconds(5);
constexpr Duration kAnswerLimit = seconds(5);
/// For a node to measure a connection; the measurement has shorter limits.
constexpr Duration kMeasureLimit = seconds(30);
/// Above it, certificates and log lines of different machines mislead.
constexpr double kClockLimit = 1;

struct Examined {
  std::string name;
  std::optional<PeerId> peer;
  std::optional<node::Machine> machine;
  double clock_ahead = 0;  // seconds of its system clock, minus this machine's
  std::string problem;     // why it cannot be examined
};

/// A connection from one node to another; 0 is this machine.
using Pair = std::pair<std::size_t, std::size_t>;

/// The pairs of `count` nodes, in rounds in which each node takes part once: measurements of one
/// round do not disturb each other, unless nodes share a machine.
std::vector<std::vector<Pair>> rounds_of(std::size_t count) {
  // The circle method of tournaments: one place is fixed, and the others rotate.
  const std::size_t places = count + count % 2;
  std::vector<std::vector<Pair>> rounds;
  for (std::size_t round = 0; round + 1 < places; ++round) {
    std::vector<Pair> there, back;
    for (std::size_t i = 0; i < places / 2; ++i) {
      const auto at = [&](std::size_t place) {
        return place == 0 ? 0 : 1 + (place - 1 + round) % (places - 1);
      };
      const std::size_t a = at(i), b = at(places - 1 - i);
      if (a >= count || b >= count) continue;
      there.emplace_back(a + 1, b + 1);
      back.emplace_back(b + 1, a + 1);
    }
    rounds.push_back(std::move(there));
    rounds.push_back(std::move(back));
  }
  return rounds;
}

class Doctor {
 public:
  explicit Doctor(const ClusterOptions& options)
      : options_(options),
        process_({.received = [this](PeerId peer, std::uint64_t,
                                     node::Body& body) { received(peer, body); },
                  .silent = [](PeerId) {},
                  .heard = [](PeerId) {},
                  .gone = [this](PeerId peer, const std::string& reason) { gone(peer, reason); },
                  .note = [](const std::string&) {}}),
        meter_(process_, [] { return true; }) {
    for (const auto& name : options.nodes) nodes_.push_back({.name = name});
  }
  ~Doctor() { process_.close(); }

  Status open() {
    MeshOptions mesh = mesh_options(options_);
    mesh.address = "127.0.0.1";
    return process_.open(mesh, open_mesh);
  }

  /// False if the user has interrupted.
  bool examine() {
    ask_machines();
    measure_from_here();
    measure_between();
    return !guard_.interrupted();
  }

  const std::vector<Examined>& nodes() const { return nodes_; }
  const std::map<Pair, node::Measured>& links() const { return links_; }

 private:
  /// Polls until `done`, an interrupt, or for `limit`.
  void wait_for(Duration limit, const std::function<bool()>& done) {
    const std::int64_t until = steady_ns() + limit.ns;
    while (!done() && !guard_.interrupted() && steady_ns() < until) {
      process_.poll(kTick);
      meter_.tick();
    }
  }

  void ask_machines() {
    std::cerr << "Calling " << nodes_.size() << (nodes_.size() == 1 ? " node" : " nodes")
              << std::endl;
    for (Examined& node : nodes_)
      process_.call(node.name, kCallLimit,
                    concat("check the address and firewalls, and start `",
                           cluster::node_command(node.name, options_.tls), "` there"),
                    [this, &node](const Expected<PeerId>& peer) {
                      ++called_;
                      if (!peer) {
                        node.problem = peer.error().text;
                        return;
                      }
                      node.peer = *peer;
                      process_.send(*peer, 0, node::MachineRequest{});
                    });
    const Duration grace = seconds(1);  // calls end by themselves
    wait_for(Duration{kCallLimit.ns + grace.ns}, [this] { return called_ == nodes_.size(); });
    wait_for(kAnswerLimit, [&] {
      return std::ranges::all_of(
          nodes_, [](const Examined& node) { return node.machine || !node.problem.empty(); });
    });
    for (Examined& node : nodes_)
      if (!node.machine && node.problem.empty())
        node.problem = concat(node.name, ": no answer within ", kAnswerLimit.seconds(),
                              " s; it is stopped, or is a program and not a node");
  }

  /// Whether node 1, 2, ... answers and is free.
  bool can_measure(std::size_t node) const {
    const auto& machine = nodes_[node - 1].machine;
    return machine && machine->job.empty();
  }

  void measure_from_here() {
    std::size_t begun = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!can_measure(i + 1)) continue;
      ++begun;
      meter_.measure(nodes_[i].name, kCheckAddress, [this, i](const node::Measured& result) {
        links_[{0, i + 1}] = result;
        ++measured_;
      });
    }
    wait_for(Duration{kMeasureLimit.ns * static_cast<std::int64_t>(begun)},
             [&] { return measured_ == begun; });
  }

  void measure_between() {
    std::size_t first = 1;
    while (first < nodes_.size() && !can_measure(first)) ++first;
    const auto rounds = rounds_of(nodes_.size());
    std::int64_t shown = steady_ns();
    for (std::size_t round = 0; round < rounds.size() && !guard_.interrupted(); ++round) {
      if (steady_ns() - shown > seconds(2).ns) {
        shown = steady_ns();
        std::cerr << "Measuring connections: " << 100 * round / rounds.size() << "%" << std::endl;
      }
      std::vector<Pair> asked;
      for (const Pair& pair : rounds[round]) {
        // One node also calls those that this machine does not reach.
        const Examined& to = nodes_[pair.second - 1];
        const bool measures = can_measure(pair.first) &&
                              (to.machine ? can_measure(pair.second) : pair.first == first);
        if (!measures) continue;
        asked.push_back(pair);
        process_.send(*nodes_[pair.first - 1].peer, 0, node::Measure{to.name});
      }
      const auto is_answered = [&](const Pair& pair) {
        return links_.contains(pair) || !nodes_[pair.first - 1].machine;
      };
      wait_for(kMeasureLimit, [&] { return std::ranges::all_of(asked, is_answered); });
      for (const Pair& pair : asked)
        if (!links_.contains(pair))
          links_[pair].error =
              concat("no result within ", kMeasureLimit.seconds(), " s; look at its terminal");
    }
  }

  std::optional<std::size_t> node_of(PeerId peer) const {
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i].peer == peer) return i;
    return std::nullopt;
  }

  void received(PeerId peer, const node::Body& body) {
    if (meter_.handle(peer, body)) return;
    const auto index = node_of(peer);
    if (!index) return;
    if (const auto* machine = std::get_if<node::Machine>(&body)) {
      const auto here = std::chrono::system_clock::now().time_since_epoch();
      for (Examined& node : nodes_) {
        if (node.peer != peer) continue;
        node.machine = *machine;
        node.clock_ahead = static_cast<double>(machine->wall_ns) * 1e-9 -
                           std::chrono::duration<double>(here).count();
      }
    } else if (const auto* measured = std::get_if<node::Measured>(&body)) {
      for (std::size_t other = 0; other < nodes_.size(); ++other)
        if (nodes_[other].name == measured->name) links_[{*index + 1, other + 1}] = *measured;
    }
  }

  void gone(PeerId peer, const std::string& reason) {
    meter_.gone(peer, reason);
    for (Examined& node : nodes_) {
      if (node.peer != peer) continue;
      node.machine.reset();
      node.peer.reset();
      node.problem = concat(node.name, " is gone: ", reason, "; look at its log");
    }
  }

  const ClusterOptions options_;
  const InterruptGuard guard_;
  std::vector<Examined> nodes_;
  std::map<Pair, node::Measured> links_;
  std::size_t called_ = 0, measured_ = 0;  // outcomes of calls, and of measurements from here
  Process process_;
  LinkMeter meter_;
};

std::string name_of(const std::vector<Examined>& nodes, std::size_t number) {
  return number == 0 ? "this machine" : nodes[number - 1].name;
}

/// Problems keep a run from starting; warnings do not. Each names its node and the remedy.
struct Findings {
  std::vector<std::string> problems, warnings;
};

Findings find_problems(const Doctor& doctor) {
  Findings found;
  auto& problems = found.problems;
  const std::string version = leeway_version();
  for (const Examined& node : doctor.nodes()) {
    if (!node.machine) {
      problems.push_back(node.problem);
      continue;
    }
    if (node.machine->version != version)
      problems.push_back(concat(node.name, " has Leeway ", node.machine->version,
                                ", this machine has ", version,
                                "; use the same version everywhere"));
    if (std::abs(node.clock_ahead) > kClockLimit)
      found.warnings.push_back(
          concat("the clock of ", node.name, " is ", fixed(std::abs(node.clock_ahead), 1), " s ",
                 node.clock_ahead > 0 ? "ahead" : "behind", "; let NTP set both clocks"));
    for (const auto& warning : node.machine->warnings)
      found.warnings.push_back(concat(node.name, ": ", warning));
  }
  // A node that does not answer at all is one problem.
  std::set<std::size_t> reached;
  for (const auto& [pair, link] : doctor.links())
    if (link.error.empty()) reached.insert(pair.second);
  for (const auto& [pair, link] : doctor.links())
    if (!link.error.empty() &&
        (doctor.nodes()[pair.second - 1].machine || reached.contains(pair.second)))
      problems.push_back(concat(name_of(doctor.nodes(), pair.first), " does not reach ",
                                name_of(doctor.nodes(), pair.second), ": ", link.error));
  for (std::size_t i = 0; i < doctor.nodes().size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (const auto& peer = doctor.nodes()[i].peer; peer && peer == doctor.nodes()[j].peer)
        problems.push_back(concat(doctor.nodes()[i].name, " and ", doctor.nodes()[j].name,
                                  " are the same process; name it once"));
  return found;
}

std::string gigabytes(std::uint64_t bytes) {
  return fixed(static_cast<double>(bytes) / 1e9, 1);
}

/// A table of all connections; `cell` gives the text of a measured one.
std::string links_table(const Doctor& doctor,
                        const std::function<std::string(const node::Measured&)>& cell) {
  TextTable table;
  std::vector<std::string> head = {"from \\ to"};
  for (std::size_t to = 1; to <= doctor.nodes().size(); ++to) head.push_back(concat(to));
  table.add(head);
  for (std::size_t from = 0; from <= doctor.nodes().size(); ++from) {
    std::vector<std::string> row = {concat(from)};
    for (std::size_t to = 1; to <= doctor.nodes().size(); ++to) {
      const auto found = doctor.links().find({from, to});
      row.push_back(found == doctor.links().end()  ? "-"
                    : !found->second.error.empty() ? "fails"
                                                   : cell(found->second));
    }
    table.add(row);
  }
  return table.text();
}

void print_tables(const Doctor& doctor) {
  TextTable table;
  table.add({"node", "address", "version", "cores", "GB", "free GB", "GPUs", "clock", "certificate",
             "state"});
  for (std::size_t i = 0; i < doctor.nodes().size(); ++i) {
    const Examined& node = doctor.nodes()[i];
    const auto& machine = node.machine;
    if (!machine) {
      table.add({concat(i + 1), node.name, "-", "-", "-", "-", "-", "-", "-", "no answer"});
      continue;
    }
    table.add(
        {concat(i + 1), node.name, machine->version, concat(machine->cores),
         gigabytes(machine->memory_bytes), gigabytes(machine->free_bytes),
         machine->gpus.empty() ? "0" : concat(machine->gpus.size(), " x ", machine->gpus.front()),
         concat(node.clock_ahead < 0 ? "" : "+", fixed(1e3 * node.clock_ahead, 1), " ms"),
         machine->certificate_until.empty() ? "no TLS"
                                            : concat("until ", machine->certificate_until),
         machine->job.empty() ? "free" : machine->job});
  }
  std::cout << table.text() << "\nRound trip in us, 0 is this machine\n"
            << links_table(doctor,
                           [](const node::Measured& link) {
                             return fixed(static_cast<double>(link.round_trip.ns) / 1e3, 0);
                           })
            << "\nTensors in MB/s; shm: through shared memory, without copies\n"
            << links_table(doctor, [](const node::Measured& link) {
                 return link.shared_memory ? "shm" : fixed(link.bytes_per_second / 1e6, 0);
               });
}

void print_report_json(const Doctor& doctor, const Findings& found) {
  using Json = nlohmann::ordered_json;
  Json json{{"nodes", Json::array()},
            {"links", Json::array()},
            {"problems", found.problems},
            {"warnings", found.warnings}};
  for (std::size_t i = 0; i < doctor.nodes().size(); ++i) {
    const Examined& node = doctor.nodes()[i];
    Json row{{"node", i + 1}, {"name", node.name}, {"answers", node.machine.has_value()}};
    if (const auto& machine = node.machine) {
      row["version"] = machine->version;
      row["cores"] = machine->cores;
      row["memory_bytes"] = machine->memory_bytes;
      row["free_bytes"] = machine->free_bytes;
      row["gpus"] = machine->gpus;
      row["clock_ahead_seconds"] = node.clock_ahead;
      row["certificate_until"] =
          machine->certificate_until.empty() ? Json() : Json(machine->certificate_until);
      row["job"] = machine->job.empty() ? Json() : Json(machine->job);
    }
    json["nodes"].push_back(std::move(row));
  }
  for (const auto& [pair, link] : doctor.links()) {
    Json row{{"from", pair.first}, {"to", pair.second}};
    if (!link.error.empty()) {
      row["error"] = link.error;
    } else {
      row["round_trip_seconds"] = link.round_trip.seconds();
      row["bytes_per_second"] = link.shared_memory ? Json() : Json(link.bytes_per_second);
      row["shared_memory"] = link.shared_memory;
    }
    json["links"].push_back(std::move(row));
  }
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace

int examine_nodes(const ClusterOptions& options, bool json) {
  Doctor doctor(options);
  if (const Status opened = doctor.open(); !opened) {
    std::cerr << "leeway: " << opened.error().text << std::endl;
    return kExitRefused;
  }
  if (!doctor.examine()) {
    std::cerr << "leeway: interrupted" << std::endl;
    return kExitInterrupted;
  }
  const Findings found = find_problems(doctor);
  const int code = found.problems.empty() ? kExitOk : kExitFailed;
  if (json) {
    print_report_json(doctor, found);
    return code;
  }
  print_tables(doctor);
  if (!found.warnings.empty()) std::cout << "\nWarnings\n";
  for (const auto& warning : found.warnings) std::cout << "  " << warning << '\n';
  std::cout << (found.problems.empty() ? "\nNo problems\n" : "\nProblems\n");
  for (const auto& problem : found.problems) std::cout << "  " << problem << '\n';
  return code;
}

}  // namespace leeway
