#include "runtime/cluster/node_status.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <future>
#include <iostream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "cluster/job_node.hpp"
#include "cluster/node_name.hpp"
#include "core/text.hpp"
#include "core/this_host.hpp"
#include "messages/node.hpp"
#include "monitoring/format.hpp"
#include "runtime/cluster/text_table.hpp"

namespace leeway {
namespace {

/// Limits for connecting and answering, of the named process and of each other process. The others
/// are asked in parallel.
constexpr Duration kNamedLimit = seconds(5);
constexpr Duration kOthersLimit = seconds(2);
/// Between the two samples from which rates are computed.
constexpr auto kRateInterval = std::chrono::milliseconds(500);

struct TimedStatus {
  node::Status status;
  std::int64_t at = 0;
};
/// By the process's name.
using StatusByName = std::map<std::string, TimedStatus>;

/// Fetches the status of processes. Thread-safe.
class StatusClient {
 public:
  static Expected<std::unique_ptr<StatusClient>> open(const ClusterOptions& options) {
    std::unique_ptr<StatusClient> client(new StatusClient);
    MeshEvents events;
    events.on_message = [it = client.get()](PeerId peer, Address, Address to,
                                            const Message& message) {
      if (to == kHost) it->record(peer, message);
    };
    MeshOptions mesh = mesh_options(options);
    mesh.address = "127.0.0.1";
    auto opened = open_mesh(mesh, std::move(events));
    if (!opened) return opened.error();
    client->mesh_ = std::move(*opened);
    return client;
  }

  Expected<TimedStatus> fetch(const std::string& name, Duration limit, const std::string& advice) {
    const std::int64_t until = steady_ns() + limit.ns;
    const auto where = parse_node(name);
    if (!where) return where.error();
    const auto peer = mesh_->connect(where->host, where->port, limit, advice);
    if (!peer) return peer.error();
    const std::int64_t sent_at = steady_ns();
    mesh_->send(*peer, kHost, kHost, encode(NodeEnvelope{0, node::StatusRequest{}}));
    std::unique_lock lock(mutex_);
    const auto& latest = latest_[*peer];
    const auto has_answered = [&] { return latest.at >= sent_at; };
    if (changed_.wait_for(lock, std::chrono::nanoseconds(until - steady_ns()), has_answered))
      return latest;
    return Error{concat(name, ": no answer within ", limit.seconds(), " s; is it stopped?")};
  }

 private:
  StatusClient() = default;
  void record(PeerId peer, const Message& message) {
    auto decoded = decode_node(message);
    auto* const status = decoded ? std::get_if<node::Status>(&decoded->body) : nullptr;
    if (!status) return;
    std::lock_guard lock(mutex_);
    latest_[peer] = {std::move(*status), steady_ns()};
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<PeerId, TimedStatus> latest_;
  std::unique_ptr<Mesh> mesh_;  // last, because its threads use the other members
};

struct JobStatus {
  node::Status asked;
  StatusByName all;  // includes `asked`
};

/// Fetches the status of the process at `name` and of all nodes that it lists, in parallel. Adds
/// nodes without an answer to `unreachable`, with the reason; nodes in `unreachable` are not asked.
Expected<JobStatus> fetch_job(StatusClient& client, const std::string& name,
                              std::map<std::string, std::string>& unreachable) {
  auto first =
      client.fetch(name, kNamedLimit, "give the address of a node, or of a running program");
  if (!first) return first.error();
  JobStatus found{first->status, {}};
  found.all.emplace(first->status.name, std::move(*first));
  std::map<std::string, std::future<Expected<TimedStatus>>> others;
  for (const auto& other : found.asked.nodes)
    if (!other.empty() && !found.all.contains(other) && !unreachable.contains(other))
      others.try_emplace(other, std::async(std::launch::async, [&client, other] {
                           return client.fetch(other, kOthersLimit,
                                               "it has ended, or cannot be reached from here");
                         }));
  for (auto& [other, answer] : others) {
    auto seen = answer.get();
    if (seen)
      found.all.emplace(other, std::move(*seen));
    else
      unreachable.emplace(other, seen.error().text);
  }
  return found;
}

struct Rates {
  double out = 0, in = 0;  // bytes per second
};

Rates rates_of(const StatusByName& before, const std::string& name, const TimedStatus& now,
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

/// The clock of each worker: the smallest that a shard has.
std::map<WorkerId, std::int64_t> clocks_of(const StatusByName& all) {
  std::map<WorkerId, std::int64_t> clocks;
  for (const auto& [name, seen] : all)
    for (const auto& clock : seen.status.clocks) {
      const auto known = clocks.try_emplace(clock.worker, clock.clock).first;
      known->second = std::min(known->second, clock.clock);
    }
  return clocks;
}

std::string parked_text(const StatusByName& all, WorkerId worker) {
  for (const auto& [name, seen] : all)
    for (const auto& parked : seen.status.parked)
      if (parked.worker == worker)
        return concat("parked at shard ", parked.shard, " with iteration ", parked.iteration,
                      ", waits for ", workers_text(parked.behind));
  return {};
}

/// The latest operation of a stage, "forward of micro-batch 3 of iteration 17"; empty without one.
std::string last_operation_text(const StatusByName& all, WorkerId worker) {
  const node::Status::Operation* last = nullptr;
  for (const auto& [name, seen] : all)
    for (const auto& did : seen.status.did)
      if (did.worker == worker && (!last || did.iteration > last->iteration)) last = &did;
  if (!last) return {};
  // A backward in one piece ends with the gradients of the weights as well.
  using Operation = event::StageComputed::Operation;
  const char* what = last->operation == Operation::forward           ? "forward"
                     : last->operation == Operation::backward_inputs ? "backward for the inputs"
                                                                     : "backward";
  return concat(what, " of micro-batch ", last->micro_batch, " of iteration ", last->iteration);
}

/// The workers, their clocks and the workers that each of them waits for.
std::string workers_table(const StatusByName& all, const node::Status& asked) {
  const bool piped = asked.stages > 1;
  TextTable rows;
  if (piped)
    rows.add({"pipeline", "stage", "worker", "clock", "last operation", ""});
  else
    rows.add({"worker", "clock", ""});
  for (const auto& [worker, clock] : clocks_of(all)) {
    std::vector<std::string> row;
    if (piped) row = {concat(worker.value() / asked.stages), concat(worker.value() % asked.stages)};
    row.push_back(concat(worker));
    row.push_back(concat(clock));
    if (piped) row.push_back(last_operation_text(all, worker));
    row.push_back(parked_text(all, worker));
    rows.add(std::move(row));
  }
  return rows.text();
}

/// The number of the node that hosts the actor; "-" if none that answers does.
std::string node_of(const StatusByName& all, Address actor) {
  for (const auto& [name, seen] : all)
    if (std::ranges::find(seen.status.actors, actor) != seen.status.actors.end())
      return concat(seen.status.node);
  return "-";
}

/// "in sync, 3 inputs behind".
std::string standby_text(const node::Status::Replica& replica) {
  using Standby = node::Status::Replica::Standby;
  if (replica.standby == Standby::none) return "none";
  return concat(replica.standby == Standby::seeding ? "gets the state" : "in sync", ", ",
                replica.behind, replica.behind == 1 ? " input behind" : " inputs behind");
}

/// Where the replicas of each shard are; empty if shards have no standbys.
std::string replicas_table(const StatusByName& all) {
  std::map<ShardId, const node::Status::Replica*> replicas;
  for (const auto& [name, seen] : all)
    for (const auto& replica : seen.status.replicas) replicas[replica.shard] = &replica;
  if (replicas.empty()) return {};
  TextTable rows;
  rows.add({"shard", "primary on node", "standby on node", "standby"});
  for (const auto& [shard, replica] : replicas)
    rows.add({concat(shard), node_of(all, address_of(shard)), node_of(all, standby_of(shard)),
              standby_text(*replica)});
  return rows.text() + '\n';
}

/// The status of the job's program, which hosts scheduler and monitor; otherwise of the node that
/// was asked.
const node::Status& program_of(const StatusByName& all, const node::Status& asked) {
  for (const auto& [name, seen] : all)
    if (seen.status.program && seen.status.job == asked.job) return seen.status;
  return asked;
}

/// "epoch 3.2 of 10, 51,234 samples/s, loss 0.3121, test 87.2%, bound 3, 4 workers".
std::string progress_text(const node::Status::Progress& progress) {
  std::string text = concat("epoch ", fixed(progress.epoch, 1));
  if (progress.epochs > 0)
    text += concat(" of ",
                   fixed(progress.epochs, progress.epochs == std::floor(progress.epochs) ? 0 : 1));
  text +=
      concat(", ", grouped(static_cast<std::uint64_t>(progress.samples_per_second)), " samples/s");
  if (!std::isnan(progress.train_loss)) text += concat(", loss ", fixed(progress.train_loss, 4));
  if (!std::isnan(progress.test_accuracy))
    text += concat(", test ", percent(progress.test_accuracy));
  else if (!std::isnan(progress.test_loss))
    text += concat(", test loss ", fixed(progress.test_loss, 4));
  if (progress.bound >= 0) text += concat(", staleness bound ", progress.bound);
  return text + concat(", ", progress.workers, progress.workers == 1 ? " worker" : " workers");
}

void print_table(const StatusByName& before, const StatusByName& all, const node::Status& asked) {
  if (asked.job.empty()) {
    std::cout << asked.name << ": Leeway " << asked.version << ", free\n";
    return;
  }
  const node::Status& program = program_of(all, asked);
  std::cout << "job " << asked.job << ", " << fixed(program.seconds, 1) << " s";
  if (program.progress.iterations > 0) std::cout << ", " << progress_text(program.progress);
  std::cout << '\n';
  const auto& traffic = program.progress;
  for (const auto& [name, text] :
       {std::pair("gradients ", codec_text(traffic.push_bytes, traffic.plain_push_bytes)),
        std::pair("weights ", codec_text(traffic.pull_bytes, traffic.plain_pull_bytes)),
        std::pair("stages ", codec_text(traffic.stage_bytes, traffic.plain_stage_bytes))})
    if (!text.empty()) std::cout << name << text << '\n';
  if (const auto& last = program.checkpoint; last.number > 0)
    std::cout << "checkpoint " << last.number << " written " << duration(last.seconds) << " ago ("
              << grouped(last.samples) << " samples)\n";
  std::cout << '\n';
  TextTable nodes;
  nodes.add({"node", "listens on", "actors"});
  for (std::uint32_t i = 0; i < asked.nodes.size(); ++i) {
    const std::string& name = asked.nodes[i];
    const auto found = all.find(name);
    // A worker that is started again is a new node, usually with the same address.
    const auto later = std::find(asked.nodes.begin() + i + 1, asked.nodes.end(), name);
    std::string actors =
        found == all.end() ? "no answer" : actors_text(found->second.status.actors);
    if (!name.empty() && later != asked.nodes.end())
      actors = concat("gone; node ", later - asked.nodes.begin(), " is at its address");
    nodes.add({concat(i), name.empty() ? "-" : name, actors});
  }
  TextTable links;
  links.add({"link", "state", "via", "MB out", "MB/s", "MB in", "MB/s", "waiting"});
  for (const auto& [name, seen] : all)
    for (const auto& link : seen.status.links) {
      const Rates rates = rates_of(before, name, seen, link);
      links.add({concat(seen.status.node, " - ", link.node), link.state,
                 link.shared_memory ? "shm" : "tcp", megabytes(static_cast<double>(link.bytes_out)),
                 megabytes(rates.out), megabytes(static_cast<double>(link.bytes_in)),
                 megabytes(rates.in), concat(link.waiting)});
    }
  std::cout << nodes.text() << '\n'
            << replicas_table(all) << workers_table(all, asked) << '\n'
            << links.text();
}

nlohmann::ordered_json progress_json(const node::Status::Progress& progress) {
  // NaN becomes null.
  nlohmann::ordered_json json{{"epoch", progress.epoch},
                              {"epochs", progress.epochs},
                              {"iterations", progress.iterations},
                              {"samples", progress.samples},
                              {"samples_per_second", progress.samples_per_second},
                              {"train_loss", progress.train_loss},
                              {"test_loss", progress.test_loss},
                              {"test_accuracy", progress.test_accuracy},
                              {"staleness_bound", progress.bound},
                              {"workers", progress.workers},
                              {"pushed_bytes", progress.push_bytes},
                              {"pushed_bytes_without_codec", progress.plain_push_bytes},
                              {"pulled_bytes", progress.pull_bytes},
                              {"pulled_bytes_without_codec", progress.plain_pull_bytes},
                              {"stage_bytes", progress.stage_bytes},
                              {"stage_bytes_without_codec", progress.plain_stage_bytes}};
  if (progress.bound < 0) json["staleness_bound"] = nullptr;
  return json;
}

void print_json(const StatusByName& before, const StatusByName& all, const node::Status& asked) {
  using Json = nlohmann::ordered_json;
  const node::Status& program = program_of(all, asked);
  Json json{{"job", asked.job},
            {"seconds", program.seconds},
            {"nodes", Json::array()},
            {"workers", Json::array()},
            {"links", Json::array()}};
  if (program.progress.iterations > 0) json["progress"] = progress_json(program.progress);
  if (const auto& last = program.checkpoint; last.number > 0)
    json["checkpoint"] = {
        {"number", last.number}, {"samples_trained", last.samples}, {"seconds_ago", last.seconds}};
  for (std::uint32_t i = 0; i < asked.nodes.size(); ++i) {
    const auto found = all.find(asked.nodes[i]);
    Json node{{"node", i}, {"name", asked.nodes[i]}, {"answers", found != all.end()}};
    node["actors"] = Json::array();
    if (found != all.end())
      for (const Address actor : found->second.status.actors)
        node["actors"].push_back(concat(actor));
    json["nodes"].push_back(std::move(node));
  }
  for (const auto& [name, seen] : all)
    for (const auto& replica : seen.status.replicas)
      json["shards"].push_back({{"shard", replica.shard.value()},
                                {"primary", node_of(all, address_of(replica.shard))},
                                {"standby", node_of(all, standby_of(replica.shard))},
                                {"state", standby_text(replica)},
                                {"inputs_behind", replica.behind}});
  for (const auto& [worker, clock] : clocks_of(all)) {
    Json row{{"worker", worker.value()}};
    if (asked.stages > 1) {
      row["pipeline"] = worker.value() / asked.stages;
      row["stage"] = worker.value() % asked.stages;
      row["did"] = last_operation_text(all, worker);
    }
    row["clock"] = clock;
    row["waits"] = parked_text(all, worker);
    json["workers"].push_back(std::move(row));
  }
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
  const auto fail = [](const std::string& text, int code) {
    std::cerr << "leeway: " << text << std::endl;
    return code;
  };
  if (const auto where = parse_node(name); !where) return fail(where.error().text, 2);
  auto client = StatusClient::open(options);
  if (!client) return fail(client.error().text, 2);
  std::map<std::string, std::string> unreachable;
  const auto before = fetch_job(**client, name, unreachable);
  if (!before) return fail(before.error().text, 1);
  for (const auto& [node, reason] : unreachable) fail(reason, 1);
  std::this_thread::sleep_for(kRateInterval);
  const auto now = fetch_job(**client, name, unreachable);
  if (!now) return fail(now.error().text, 1);
  (json ? print_json : print_table)(before->all, now->all, now->asked);
  return 0;
}

}  // namespace leeway
