#pragma once
// CoordinatedProgram: a Coordinator whose nodes are written by tests, message by message.
#include <catch2/catch.hpp>
#include <map>

#include "actors/cluster/coordinator.hpp"
#include "core/text.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {

using Catch::Contains;

/// A program whose nodes are peers 1, 2, ...
class CoordinatedProgram final : public Coordinator::Site {
 public:
  explicit CoordinatedProgram(const Plan& plan, std::uint32_t agents, const std::string& place,
                              std::uint32_t at_least = 0)
      : job_(job_of(plan)),
        coordinator({.placement = *place_actors(agents, plan, place),
                     .names = names(agents),
                     .who = "the test",
                     .at_least = at_least},
                    7, *this) {}

  void prepare() { coordinator.prepare(job_->stages, job_->faults, ask()); }
  /// Brings the job to its start.
  void run(bool norms = false) {
    prepare();
    for (std::uint32_t node = 1; node < coordinator.names().size(); ++node)
      coordinator.called(NodeIndex(node), PeerId(node));
    for (std::uint32_t node = 1; node < coordinator.names().size(); ++node) answer(node);
    REQUIRE(coordinator.phase() == Coordinator::Phase::ready);
    coordinator.start(norms);
    for (std::uint32_t node = 1; node < coordinator.names().size(); ++node)
      receive(node, node::Linked{});
    REQUIRE(coordinator.phase() == Coordinator::Phase::running);
    sent.clear();
  }
  void receive(std::uint32_t peer, const node::Body& body, std::uint64_t job = 7) {
    coordinator.received(PeerId(peer), job, body);
  }
  void offer(std::uint32_t peer, Duration wait = seconds(30)) {
    receive(peer, node::Offer{name_of(peer), wait}, 0);
  }
  void answer(std::uint32_t peer, const std::string& busy = {}) {
    node::Answer answer;
    answer.version = ask().version;
    answer.cores = 8;
    answer.busy = busy;
    answer.arithmetic = arithmetic;
    receive(peer, answer);
  }
  void report(std::uint32_t peer, std::uint32_t node, node::LinkState::State state) {
    receive(peer, node::LinkState{node, state});
  }
  /// The peer's process ends, and the coordinator calls its node again for the first time.
  void lose_and_call(std::uint32_t peer) {
    coordinator.gone(PeerId(peer), "its process ended");
    pass(milliseconds(250));
  }
  void pass(Duration time) {
    now += time.ns;
    coordinator.tick();
  }
  /// All nodes answer the pings that they have got.
  void answer_pings() {
    for (std::uint32_t peer = 1; peer < 10; ++peer)
      for (const auto& ping : take<node::Ping>(peer)) receive(peer, node::Pong{ping.ns, now});
  }
  /// Messages of this type to a peer since the last call.
  template <class T>
  std::vector<T> take(std::uint32_t peer) {
    std::vector<T> taken;
    std::erase_if(sent, [&](const auto& one) {
      if (one.first != PeerId(peer) || !std::holds_alternative<T>(one.second)) return false;
      taken.push_back(std::get<T>(one.second));
      return true;
    });
    return taken;
  }
  /// "2/3": worker 2, launch 3. "standby0/2": a standby.
  std::vector<std::string> begun(std::uint32_t peer) {
    std::vector<std::string> launches;
    for (const auto& one : take<node::Launch>(peer))
      launches.push_back(launch_text(one.actor, one.launch));
    return launches;
  }
  std::vector<std::string> ended(std::uint32_t peer) {
    std::vector<std::string> launches;
    for (const auto& one : take<node::EndLaunch>(peer)) {
      launches.push_back(launch_text(one.actor, one.launch));
      reason = one.reason;
    }
    return launches;
  }
  static std::string name_of(std::uint32_t peer) { return concat("node", peer, ":4242"); }

  std::int64_t now = 1;
  std::string log, reason;
  std::vector<std::pair<PeerId, node::Body>> sent;
  std::vector<std::string> own_launches;
  std::vector<NodeIndex> called;
  std::set<PeerId> ended_connections;
  std::map<NodeIndex, std::string> unlinked, lost_nodes;
  std::set<WorkerId> asked_to_leave;
  std::map<Address, std::string> lost_actors;
  std::string arithmetic;  // of the next node that answers

 private:
  static std::vector<std::string> names(std::uint32_t agents) {
    std::vector<std::string> all = {"program:1"};
    for (std::uint32_t node = 1; node <= agents; ++node) all.push_back(name_of(node));
    return all;
  }
  static node::Ask ask() {
    node::Ask ask;
    ask.version = "1.2.3";
    return ask;
  }

  std::int64_t now_ns() const override { return now; }
  void say(const std::string& text) override { log += text + '\n'; }
  void call(NodeIndex node, const std::string&) override { called.push_back(node); }
  void send(PeerId peer, std::uint64_t, node::Body body) override {
    sent.emplace_back(peer, std::move(body));
  }
  void leave(PeerId peer) override { ended_connections.insert(peer); }
  node::DataPiece piece(const node::DataMark&, std::int64_t) override { return {}; }
  std::int64_t last_file_request_ns() const override { return 0; }
  void accepted(NodeIndex, PeerId, const std::string&, const node::Answer&) override {}
  void has_left(NodeIndex node, const std::string& why) override { lost_nodes[node] = why; }
  void link(NodeIndex, PeerId, const std::string&) override {}
  void unlink(NodeIndex node, const std::string& why) override { unlinked[node] = why; }
  void begin() override {}
  void launch(Address actor, std::uint32_t launch) override {
    own_launches.push_back(launch_text(actor, launch));
  }
  void end_launch(Address actor, std::uint32_t launch, const std::string&) override {
    own_launches.push_back(concat("end ", launch_text(actor, launch)));
  }
  void ask_to_leave(WorkerId worker) override { asked_to_leave.insert(worker); }
  void report_lost(Address actor, const std::string& why) override { lost_actors[actor] = why; }
  static std::string launch_text(Address actor, std::uint32_t launch) {
    const std::string name = actor.kind == RoleKind::worker ? concat(actor.index) : spelled(actor);
    return concat(name, '/', launch);
  }

  std::shared_ptr<const Job> job_;

 public:
  Coordinator coordinator;  // last: it uses the others
};

using Launches = std::vector<std::string>;

/// Four workers, of which 1 and 3 are on node 2; the shards are on node 1.
inline Plan four_workers() {
  Plan plan = tiny_plan();
  plan.workers = 4;
  return plan;
}
inline constexpr const char* kShardsOnOne = "shards=1,workers=1+2";

/// Two pipelines of two stages. Node 2 has the last stage of the second one.
inline Plan two_pipelines() {
  Plan plan = four_workers();
  plan.pipeline.stages = 2;
  return plan;
}
inline constexpr const char* kOneStageApart = "shards=0,workers=1,worker3=2";

}  // namespace leeway::test
