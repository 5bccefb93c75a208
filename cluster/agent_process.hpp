#pragma once
// AgentProcess: a node of a cluster: a process that hosts actors for programs that call it. It
// carries out what its Agent decides.
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/cluster/agent.hpp"
#include "cluster/data_cache.hpp"
#include "cluster/link_meter.hpp"
#include "cluster/process.hpp"
#include "cluster/program_page.hpp"
#include "core/files.hpp"
#include "core/limits.hpp"
#include "core/log_level.hpp"

namespace leeway {

struct AgentProcessOptions {
  AgentOptions agent;
  MeshOptions mesh;
  std::function<void(LogLevel, const std::string& line)> log;
  OpenMesh open = open_mesh;
  std::shared_ptr<Files> disk = shared_disk();  // of this machine
  /// Of a process whose user computes; null: workers compute the model.
  std::shared_ptr<UserLoops> user_loops;
  /// What such a process declares, and to which launcher. `name` is added.
  struct Declaration {
    std::string launcher;  // "HOST:PORT"
    node::Declare declare;
    /// The launcher has refused it, or is gone before the job has begun.
    std::function<void(const std::string& reason)> refused;
  };
  std::optional<Declaration> declaration;
  std::size_t trace_kept = limits::kMaxTraceKept;
  std::size_t trace_underway = limits::kMaxTraceUnderway;
};

class AgentProcess final : private Agent::Site {
 public:
  /// Listens. With a program to join, also calls it and offers to host workers; with a declaration,
  /// calls the launcher.
  static Expected<std::unique_ptr<AgentProcess>> open(AgentProcessOptions options);
  ~AgentProcess() override;

  /// "127.0.0.1:4242".
  std::string name() const override;
  /// Serves until `interrupted`, then lets its workers stop. An agent that joined a job ends with
  /// it. The error says why the program refused it, or how it was lost.
  Status run(const std::function<bool()>& interrupted);
  /// For the server of a page of this node's job, which must end before this object.
  ProgramPage& page() { return page_; }
  /// Whether the program that the agent joined was lost before the end of the job.
  bool has_lost_program() const { return agent_.has_lost_program(); }

 private:
  struct Reserved;
  using MadeJob = Expected<std::shared_ptr<const Job>>;

  explicit AgentProcess(AgentProcessOptions options);
  Status join();
  Status declare();
  void lost_launcher(const std::string& reason);
  void received(PeerId peer, std::uint64_t job, node::Body& body);
  /// Makes the actors' job. Takes as long as a checkpoint takes to load.
  MadeJob make(const Reserved& reserved) const;
  /// The data is here, or cannot be loaded for `job`, which may have ended meanwhile.
  void loaded(std::uint64_t job, const node::DataMark& mark, std::optional<TrainTest> data);
  void set_job(std::shared_ptr<const Job> job);
  void to_program(node::Body body);
  /// Sends events and messages of this node, as many as may be under way, or all.
  void send_traces(bool all = false);
  node::Status status() const;
  node::Machine machine() const;

  // Agent::Site
  std::int64_t now_ns() const override;
  std::string time_of_day() const override;
  void say(const std::string& text) override { options_.log(LogLevel::info, text); }
  void warn(const std::string& text) override { options_.log(LogLevel::warning, text); }
  void call(NodeIndex node, const std::string& name) override;
  void call_program() override;
  void send(PeerId peer, std::uint64_t job, node::Body body) override {
    process_.send(peer, job, std::move(body));
  }
  void leave(PeerId peer) override { process_.mesh().leave(peer); }
  bool is_connected(PeerId peer) const override { return process_.mesh().is_connected(peer); }
  bool reserve(PeerId program, std::uint64_t job, const node::Ask& ask,
               node::Answer& answer) override;
  void load_data() override;
  Expected<std::int64_t> store(const node::DataPiece& piece, bool& complete) override;
  void make_actors() override;
  void link(NodeIndex node, PeerId peer, const std::string& name) override {
    process_.job()->routes().link(node, peer, name);
  }
  void begin() override { process_.job()->begin(); }
  void launch(Address actor, std::uint32_t launch) override {
    process_.job()->node().launch(actor, launch);
  }
  void end_launch(Address actor, std::uint32_t launch, const std::string& reason) override {
    process_.job()->node().end_launch(actor, launch, {EndReason::Kind::unreachable, reason});
  }
  void moved(Address actor, NodeIndex node, std::uint32_t launch) override {
    process_.job()->routes().moved(actor, node, launch);
  }
  std::vector<NodeHost::HostedActor> hosted() const override {
    return process_.job()->node().hosted();
  }
  bool has_replica() const override { return !process_.job()->node().replicas().empty(); }
  void end_job(const std::string& reason) override;

  const AgentProcessOptions options_;
  Agent agent_;
  std::shared_ptr<Reserved> reserved_;  // null: free
  std::optional<PeerId> launcher_;      // to which this process has declared its worker
  DataCache data_cache_;
  struct Load {
    node::DataMark mark;
    std::future<void> end;
  };
  std::map<std::uint64_t, Load> loads_;  // of data, by job; also of jobs that have ended
  Process process_;
  LinkMeter link_meter_{process_, [this] { return agent_.is_busy(); }};
  ProgramPage page_{process_, [this](const node::PageRequest& request) {
                      if (process_.job()) to_program(request);
                      return process_.job() != nullptr;
                    }};
};

}  // namespace leeway
