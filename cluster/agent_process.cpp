#include "cluster/agent_process.hpp"

#include <algorithm>
#include <ctime>
#include <exception>
#include <utility>

#include "cluster/check_request.hpp"
#include "cluster/effects.hpp"
#include "cluster/machine.hpp"
#include "cluster/node_checkpoints.hpp"
#include "cluster/node_name.hpp"
#include "cluster/shipped.hpp"
#include "core/limits.hpp"
#include "core/text.hpp"
#include "core/this_host.hpp"

namespace leeway {
namespace {

constexpr Duration kCallLimit = seconds(5);
constexpr const char* kProgramAdvice =
    "give the address that the program prints at its start, while it runs";

}  // namespace

/// What this process keeps for the job of the program to which the agent belongs.
struct AgentProcess::Reserved {
  PeerId program;
  std::uint64_t number = 0;  // of the job
  node::Ask ask;
  Plan plan;
  std::optional<TrainTest> data;
  std::optional<ShippedData> arriving;
  std::unique_ptr<FileExchange> files;  // of the program
  std::optional<NodeCheckpoints> checkpoints;
  std::uint64_t trace_sent = 0, trace_taken = 0;  // events and messages
  MadeJob made = Error{"not made"};
  /// Last: its destructor waits for the thread, which uses all of the above.
  std::future<void> making;
};

Expected<std::unique_ptr<AgentProcess>> AgentProcess::open(AgentProcessOptions options) {
  std::unique_ptr<AgentProcess> agent(new AgentProcess(std::move(options)));
  const auto& own = agent->options_;
  if (const auto opened = agent->process_.open(own.mesh, own.open); !opened) return opened.error();
  if (!own.agent.join.empty())
    if (const auto offered = agent->join(); !offered) return offered.error();
  if (own.declaration)
    if (const auto declared = agent->declare(); !declared) return declared.error();
  return agent;
}

AgentProcess::AgentProcess(AgentProcessOptions options)
    : options_(std::move(options)),
      agent_(options_.agent, *this),
      process_(
          {[this](PeerId peer, std::uint64_t job, node::Body& body) { received(peer, job, body); },
           [this](PeerId peer) { agent_.silent(peer); },
           [this](PeerId peer) { agent_.heard(peer); },
           [this](PeerId peer, const std::string& reason) {
             link_meter_.gone(peer, reason);
             if (peer == launcher_) return lost_launcher(concat("the launcher is gone: ", reason));
             agent_.gone(peer, reason);
           },
           [this](const std::string& text) { warn(text); }}) {}

AgentProcess::~AgentProcess() {
  agent_.close();
  process_.close();
  if (!loads_.empty()) warn("waits until the data is read; press Ctrl-C again to end at once");
  loads_.clear();
}

std::string AgentProcess::name() const {
  return node_name(process_.mesh().address(), process_.mesh().port());
}

Status AgentProcess::join() {
  const auto program = parse_node(options_.agent.join);
  if (!program) return program.error();
  const auto peer =
      process_.mesh().connect(program->host, program->port, kCallLimit, kProgramAdvice);
  if (!peer) return peer.error();
  agent_.called_program(*peer);
  return {};
}

Status AgentProcess::declare() {
  const auto launcher = parse_node(options_.declaration->launcher);
  if (!launcher) return launcher.error();
  const auto peer = process_.mesh().connect(launcher->host, launcher->port, kCallLimit,
                                            "start the program with `leeway launch`");
  if (!peer) return peer.error();
  launcher_ = *peer;
  node::Declare declare = options_.declaration->declare;
  declare.name = name();
  send(*launcher_, 0, std::move(declare));
  return {};
}

void AgentProcess::lost_launcher(const std::string& reason) {
  launcher_.reset();
  // The program of a job is in the same process, and its loss ends the job.
  if (!agent_.is_busy()) options_.declaration->refused(reason);
}

Status AgentProcess::run(const std::function<bool()>& interrupted) {
  bool leaves = false;
  while (!agent_.finished()) {
    process_.poll(Agent::kTick);
    if (!leaves && interrupted()) {
      leaves = true;
      agent_.leave();
    }
    agent_.tick();
    link_meter_.tick();
    send_traces();
  }
  page_.close();
  return agent_.outcome();
}

// ---- messages ----

void AgentProcess::received(PeerId peer, std::uint64_t job, node::Body& body) {
  if (std::holds_alternative<node::StatusRequest>(body)) return send(peer, 0, status());
  if (std::holds_alternative<node::MachineRequest>(body)) return send(peer, 0, machine());
  if (link_meter_.handle(peer, body)) return;
  if (const auto* refused = std::get_if<node::Refused>(&body); refused && peer == launcher_)
    return options_.declaration->refused(refused->text);
  const bool orders = reserved_ && reserved_->number == job && reserved_->program == peer;
  if (auto* state = std::get_if<node::PageState>(&body); state && orders)
    return page_.handle(std::move(*state));
  if (const auto* taken = std::get_if<node::TraceTaken>(&body); taken && orders) {
    reserved_->trace_taken =
        std::clamp(taken->count, reserved_->trace_taken, reserved_->trace_sent);
    return send_traces();
  }
  if (!orders || !reserved_->files->handle(body)) agent_.received(peer, job, body);
}

void AgentProcess::to_program(node::Body body) {
  send(reserved_->program, reserved_->number, std::move(body));
}

void AgentProcess::send_traces(bool all) {
  const auto& here = process_.job();
  if (!here) return;
  auto& sent = reserved_->trace_sent;
  const auto send_from = [&](auto& buffer, auto make) {
    while (true) {
      const std::size_t underway = sent - reserved_->trace_taken;
      const std::size_t room = all ? limits::kMaxEventBatch : options_.trace_underway - underway;
      if (room == 0) return;
      auto batch = buffer.take(std::min(limits::kMaxEventBatch, room));
      if (batch.empty()) return;
      sent += batch.items.size();
      to_program(make(std::move(batch.items), batch.lost));
    }
  };
  if (reserved_->ask.trace)
    send_from(here->events(), [](auto items, std::uint64_t lost) {
      return node::Events{std::move(items), lost};
    });
  if (reserved_->ask.trace_messages)
    send_from(here->messages(), [](auto items, std::uint64_t lost) {
      return node::Messages{std::move(items), lost};
    });
}

node::Status AgentProcess::status() const {
  node::Status status;
  status.version = leeway_version();
  status.name = name();
  if (process_.job()) process_.job()->fill(status);
  return status;
}

node::Machine AgentProcess::machine() const {
  node::Machine machine = this_machine(options_.mesh.tls);
  machine.job = agent_.job_text();
  return machine;
}

// ---- Agent::Site ----

std::int64_t AgentProcess::now_ns() const {
  return steady_ns();
}

std::string AgentProcess::time_of_day() const {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[16];
  std::strftime(text, sizeof text, "%H:%M:%S", &local);
  return text;
}

void AgentProcess::call(NodeIndex node, const std::string& name) {
  process_.call(name, kCallLimit, "check that its node runs and can be reached from here",
                [this, node, job = std::weak_ptr(reserved_)](const Expected<PeerId>& peer) {
                  if (!job.expired()) agent_.called(node, peer);
                });
}

void AgentProcess::call_program() {
  process_.call(options_.agent.join, kCallLimit, kProgramAdvice,
                [this](const Expected<PeerId>& peer) { agent_.called_program(peer); });
}

bool AgentProcess::reserve(PeerId program, std::uint64_t job, const node::Ask& ask,
                           node::Answer& answer) {
  const node::Machine machine = this_machine({});
  answer.version = machine.version;
  answer.cores = machine.cores;
  answer.memory_bytes = machine.memory_bytes;
  answer.gpus = static_cast<std::uint32_t>(machine.gpus.size());
  auto plan = check_request(ask, *options_.disk, options_.user_loops != nullptr, answer);
  if (!plan) return false;
  auto reserved = std::make_shared<Reserved>();
  reserved->program = program;
  reserved->number = job;
  reserved->plan = std::move(*plan);
  reserved->ask = ask;
  reserved->checkpoints.emplace(reserved->ask, answer.checkpoints, options_.disk);
  reserved->files = std::make_unique<FileExchange>(
      "the program", *options_.disk, reserved->checkpoints->program_rights(),
      [this, program, job](node::Body body) {
        process_.mesh().send(program, kHostFiles, kHostFiles,
                             encode(NodeEnvelope{job, std::move(body)}));
      });
  reserved_ = std::move(reserved);
  return true;
}

void AgentProcess::load_data() {
  const node::DataMark& mark = reserved_->ask.data;
  const std::uint64_t job = reserved_->number;
  if (const auto data = data_cache_.find(mark))
    return process_.post([this, job, mark, data] { loaded(job, mark, data); });
  // An earlier job may have begun to load the same data.
  if (std::ranges::any_of(loads_, [&](const auto& load) { return load.second.mark == mark; }))
    return;
  auto end = std::async(std::launch::async, [this, job, mark, plan = reserved_->plan] {
    std::optional<TrainTest> data;
    try {
      data = load_matching(plan, mark);
    } catch (const std::exception&) {  // no memory: as if the file were missing
    }
    process_.post([this, job, mark, data = std::move(data)] {
      loads_.erase(job);
      if (data) data_cache_.keep(mark, *data);
      loaded(job, mark, data);
    });
  });
  loads_[job] = {mark, std::move(end)};
}

void AgentProcess::loaded(std::uint64_t job, const node::DataMark& mark,
                          std::optional<TrainTest> data) {
  const bool is_awaited =
      reserved_ && reserved_->ask.data == mark && !reserved_->data && !reserved_->arriving;
  if (!is_awaited) return;
  // Another job may have named another file.
  if (!data && reserved_->number != job) return load_data();
  if (!data) reserved_->arriving.emplace(mark);
  const bool has_data = data.has_value();
  reserved_->data = std::move(data);
  agent_.loaded(has_data);
}

Expected<std::int64_t> AgentProcess::store(const node::DataPiece& piece, bool& complete) {
  auto& arriving = reserved_->arriving;
  if (const auto added = arriving->add(piece); !added) return added.error();
  const std::int64_t samples = arriving->samples();
  complete = arriving->complete();
  if (!complete) return samples;
  auto data = arriving->take();
  arriving.reset();
  if (!data) return data.error();
  reserved_->data = *data;
  data_cache_.keep(reserved_->ask.data, std::move(*data));
  return samples;
}

void AgentProcess::make_actors() {
  const auto made = [this, job = std::weak_ptr(reserved_)] {
    const auto reserved = job.lock();
    if (!reserved) return;
    if (reserved->made) set_job(*reserved->made);
    agent_.made(reserved->made ? Status() : reserved->made.error());
  };
  reserved_->making = std::async(std::launch::async, [this, made, &reserved = *reserved_] {
    try {
      reserved.made = make(reserved);
    } catch (const std::exception& error) {  // no memory
      reserved.made = Error{error.what()};
    }
    process_.post(made);
  });
}

AgentProcess::MadeJob AgentProcess::make(const Reserved& reserved) const {
  const Placement placement = placement_of(reserved.ask);
  const NodeIndex self(reserved.ask.self);
  JobOptions job_options{.here = [&](Address actor) { return placement.node_of(actor) == self; },
                         .initial_weights = reserved.ask.initial_weights};
  const auto model = make_model(reserved.plan, *reserved.data->train);
  if (!model) return model.error();
  job_options.model = *model;
  if (reserved.ask.user_loops) {
    job_options.user_loops = options_.user_loops;
    job_options.computed_by_users = true;
  }
  if (const auto opened =
          reserved.checkpoints->open(reserved.files->remote(), **model, job_options);
      !opened)
    return opened.error();
  return make_job(reserved.plan, *reserved.data, std::move(job_options));
}

void AgentProcess::set_job(std::shared_ptr<const Job> job) {
  const node::Ask& ask = reserved_->ask;
  JobNode::Options options{.number = reserved_->number,
                           .placement = placement_of(ask),
                           .self = NodeIndex(ask.self),
                           .names = ask.nodes,
                           .silence = options_.mesh.silence,
                           .trace = ask.trace,
                           .trace_messages = ask.trace_messages,
                           .trace_kept = options_.trace_kept,
                           .on_event = {},
                           .on_message = {}};
  options.on_return = [this](WorkerId worker) {
    process_.post([this, worker] { agent_.returned(worker); });
  };
  process_.set_job(std::make_shared<JobNode>(process_.mesh(), std::move(job),
                                             std::vector<Audience*>{}, std::move(options)));
}

void AgentProcess::end_job(const std::string& reason) {
  send_traces(/*all=*/true);
  reserved_->files->close(reason);
  page_.job_ended();
  const auto job = process_.job() ? process_.job()->job() : nullptr;
  process_.set_job(nullptr);
  if (job) to_program(effects_of(*job));
  reserved_.reset();
  // Its loss was noticed first, and the user's loop may not have begun.
  if (options_.declaration && !launcher_) options_.declaration->refused("the launcher is gone");
}

}  // namespace leeway
