#include "runtime/node_status.hpp"

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "cluster/mesh_inbox.hpp"
#include "cluster/node_name.hpp"
#include "cluster/this_host.hpp"
#include "core/text.hpp"
#include "monitoring/format.hpp"

namespace leeway {
namespace {

constexpr Duration kCallLimit = seconds(3);
constexpr Duration kAnswerLimit = seconds(3);
/// Between two looks, from which rates are had.
constexpr auto kBetween = std::chrono::milliseconds(500);

struct Seen {
  node::Status status;
  std::int64_t at = 0;
};
/// By the name of the process.
using Gathered = std::map<std::string, Seen>;

/// Asks processes, one after the other.
class Asker {
 public:
  static Expected<std::unique_ptr<Asker>> open(const ClusterOptions& options) {
    std::unique_ptr<Asker> asker(new Asker);
    MeshEvents events;
    auto& inbox = asker->inbox_;
    events.on_message = [&inbox](PeerId peer, Address, Address to, const Message& message) {
      if (to == kHost) inbox.push_message(peer, message);
    };
    const auto ignore = [](PeerId) {};
    events.on_up = events.on_silent = events.on_heard = events.on_reconnected = ignore;
    events.on_gone = [](PeerId, const std::string&) {};
    events.on_note = [](const std::string&) {};
    MeshOptions mesh = mesh_options(options);
    mesh.address = "127.0.0.1";
    auto opened = open_mesh(mesh, std::move(events));
    if (!opened) return opened.error();
    asker->mesh_ = std::move(*opened);
    return asker;
  }

  Expected<Seen> ask(const std::string& name) {
    const auto where = parse_node(name);
    if (!where) return where.error();
    const auto peer = mesh_->connect(where->host, where->port, kCallLimit);
    if (!peer) return peer.error();
    mesh_->send(*peer, kHost, kHost, encode(NodeEnvelope{0, node::StatusRequest{}}));
    const std::int64_t until = steady_ns() + kAnswerLimit.ns;
    while (steady_ns() < until) {
      auto item = inbox_.take(milliseconds(50));
      if (!item || item->peer != *peer || item->kind != MeshInbox::Item::Kind::said) continue;
      if (auto* status = std::get_if<node::Status>(&item->said->body))
        return Seen{std::move(*status), steady_ns()};
    }
    return Error{
        concat(name, ": has not answered within ", kAnswerLimit.seconds(), " s; is it stopped?")};
  }

 private:
  Asker() = default;
  MeshInbox inbox_;
  std::unique_ptr<Mesh> mesh_;  // last: its threads use the inbox
};

/// The process at `name` and all that it names.
Expected<Gathered> gather(Asker& asker, const std::string& name) {
  auto first = asker.ask(name);
  if (!first) return first.error();
  const std::string itself = first->status.name;
  const auto nodes = first->status.nodes;
  Gathered all;
  all.emplace(itself, std::move(*first));
  for (const auto& other : nodes) {
    if (other.empty() || all.contains(other)) continue;
    if (auto seen = asker.ask(other)) all.emplace(other, std::move(*seen));
  }
  return all;
}

/// One table: columns as wide as they must be.
class Rows {
 public:
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text() const {
    std::vector<std::size_t> widths;
    for (const auto& row : rows_)
      for (std::size_t i = 0; i < row.size(); ++i) {
        if (widths.size() <= i) widths.push_back(0);
        widths[i] = std::max(widths[i], row[i].size());
      }
    std::ostringstream out;
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i + 1 < row.size(); ++i)
        out << std::left << std::setw(static_cast<int>(widths[i]) + 2) << row[i];
      out << row.back() << '\n';
    }
    return out.str();
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

struct Rates {
  double out = 0, in = 0;  // bytes a second
};

Rates rates_of(const Gathered& before, const std::string& name, const Seen& now,
               const node::Status::Link& link) {
  const auto found = before.find(name);
  if (found == before.end()) return {};
  const double span = static_cast<double>(now.at - found->second.at) * 1e-9;
  for (const auto& old : found->second.status.links)
    if (old.node == link.node && link.bytes_out >= old.bytes_out && span > 0)
      return {static_cast<double>(link.bytes_out - old.bytes_out) / span,
              static_cast<double>(link.bytes_in - old.bytes_in) / span};
  return {};
}

std::string megabytes(double bytes) {
  return fixed(bytes / 1e6, 1);
}

std::string actors_text(const std::vector<Address>& actors) {
  std::vector<std::string> texts;
  for (const Address actor : actors) texts.push_back(concat(actor));
  return join(texts, ", ");
}

std::string workers_text(const std::vector<std::uint32_t>& workers) {
  std::vector<std::string> texts;
  for (const std::uint32_t worker : workers) texts.push_back(concat("worker ", worker));
  return join(texts, ", ");
}

/// The worker's clock, by the shard that has it lowest.
std::map<WorkerId, std::int64_t> clocks_of(const Gathered& all) {
  std::map<WorkerId, std::int64_t> clocks;
  for (const auto& [name, seen] : all)
    for (const auto& clock : seen.status.clocks) {
      const auto known = clocks.try_emplace(clock.worker, clock.clock).first;
      known->second = std::min(known->second, clock.clock);
    }
  return clocks;
}

std::string parked_text(const Gathered& all, WorkerId worker) {
  for (const auto& [name, seen] : all)
    for (const auto& parked : seen.status.parked)
      if (parked.worker == worker)
        return concat("parked at shard ", parked.shard, " with iteration ", parked.iteration,
                      ", behind ", workers_text(parked.behind));
  return {};
}

void print_table(const Gathered& before, const Gathered& all, const node::Status& asked) {
  if (asked.job.empty()) {
    std::cout << asked.name << ": Leeway " << asked.version << ", free\n";
    return;
  }
  std::cout << "job " << asked.job << ", " << fixed(asked.seconds, 1) << " s\n\n";
  Rows nodes;
  nodes.add({"node", "listens on", "actors"});
  for (std::uint32_t i = 0; i < asked.nodes.size(); ++i) {
    const auto found = all.find(asked.nodes[i]);
    nodes.add({concat(i), asked.nodes[i].empty() ? "-" : asked.nodes[i],
               found == all.end() ? "does not answer" : actors_text(found->second.status.actors)});
  }
  Rows workers;
  workers.add({"worker", "clock", ""});
  for (const auto& [worker, clock] : clocks_of(all))
    workers.add({concat(worker), concat(clock), parked_text(all, worker)});
  Rows links;
  links.add({"link", "state", "via", "MB out", "MB/s", "MB in", "MB/s", "waiting"});
  for (const auto& [name, seen] : all)
    for (const auto& link : seen.status.links) {
      const Rates rates = rates_of(before, name, seen, link);
      links.add({concat(seen.status.node, " - ", link.node), link.state,
                 link.shared_memory ? "shm" : "tcp", megabytes(static_cast<double>(link.bytes_out)),
                 megabytes(rates.out), megabytes(static_cast<double>(link.bytes_in)),
                 megabytes(rates.in), concat(link.waiting)});
    }
  std::cout << nodes.text() << '\n' << workers.text() << '\n' << links.text();
}

void print_json(const Gathered& before, const Gathered& all, const node::Status& asked) {
  using Json = nlohmann::ordered_json;
  Json json{{"job", asked.job},
            {"seconds", asked.seconds},
            {"nodes", Json::array()},
            {"workers", Json::array()},
            {"links", Json::array()}};
  for (std::uint32_t i = 0; i < asked.nodes.size(); ++i) {
    const auto found = all.find(asked.nodes[i]);
    Json node{{"node", i}, {"name", asked.nodes[i]}, {"answers", found != all.end()}};
    node["actors"] = Json::array();
    if (found != all.end())
      for (const Address actor : found->second.status.actors)
        node["actors"].push_back(concat(actor));
    json["nodes"].push_back(std::move(node));
  }
  for (const auto& [worker, clock] : clocks_of(all))
    json["workers"].push_back(
        {{"worker", worker.value()}, {"clock", clock}, {"waits", parked_text(all, worker)}});
  for (const auto& [name, seen] : all)
    for (const auto& link : seen.status.links) {
      const Rates rates = rates_of(before, name, seen, link);
      json["links"].push_back({{"from", seen.status.node},
                               {"to", link.node},
                               {"state", link.state},
                               {"shared_memory", link.shared_memory},
                               {"messages_out", link.messages_out},
                               {"messages_in", link.messages_in},
                               {"bytes_out", link.bytes_out},
                               {"bytes_in", link.bytes_in},
                               {"bytes_out_per_second", rates.out},
                               {"bytes_in_per_second", rates.in},
                               {"waiting", link.waiting}});
    }
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace

int show_status(const std::string& name, const ClusterOptions& options, bool json) {
  auto asker = Asker::open(options);
  if (!asker) {
    std::cerr << "leeway: " << asker.error().text << '\n';
    return 2;
  }
  const auto before = gather(**asker, name);
  if (!before) {
    std::cerr << "leeway: " << before.error().text << '\n';
    return 1;
  }
  std::this_thread::sleep_for(kBetween);
  const auto all = gather(**asker, name);
  if (!all) {
    std::cerr << "leeway: " << all.error().text << '\n';
    return 1;
  }
  const auto asked = (*asker)->ask(name);
  if (!asked) {
    std::cerr << "leeway: " << asked.error().text << '\n';
    return 1;
  }
  (json ? print_json : print_table)(*before, *all, asked->status);
  return 0;
}

}  // namespace leeway
