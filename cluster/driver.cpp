#include "cluster/driver.hpp"

#include <algorithm>
#include <utility>

#include "checkpoint/store.hpp"
#include "cluster/effects.hpp"
#include "cluster/hints.hpp"
#include "cluster/machine.hpp"
#include "cluster/node_name.hpp"
#include "cluster/shipped.hpp"
#include "core/text.hpp"
#include "core/this_host.hpp"
#include "messages/envelope.hpp"

namespace leeway {
namespace {

constexpr Duration kPollTime = milliseconds(20);
/// Viewers of a node's page ask several times in this time.
constexpr Duration kPageTime = milliseconds(400);
/// For a call of a lost node.
constexpr Duration kAgainLimit = seconds(2);

}  // namespace

Expected<std::unique_ptr<Driver>> Driver::open(DriverOptions options, const Plan& plan) {
  std::vector<std::string> names = options.nodes;
  names.insert(names.begin(), "");  // this program's, not known yet
  auto placement = place_actors(static_cast<std::uint32_t>(options.nodes.size()), plan,
                                options.place, hosts_of(names));
  if (!placement) return placement.error();
  auto grouped = with_host_groups(plan, *placement);
  if (!grouped) return grouped.error();
  if (const Status valid = validate(*grouped); !valid) return valid.error();
  std::unique_ptr<Driver> driver(new Driver(std::move(options), std::move(*grouped)));
  const auto& own = driver->options_;
  if (const auto opened = driver->process_.open(own.mesh, own.open); !opened) return opened.error();
  driver->host_ = reachable_at(driver->process_.mesh().address(), own.nodes);
  CoordinatorOptions coordinator{.placement = std::move(*placement),
                                 .names = own.nodes,
                                 .who = own.who,
                                 .arithmetic = arithmetic_of(plan),
                                 .measure_clocks = own.trace || own.trace_messages,
                                 .answer_limit = own.answer_limit,
                                 .end_limit = own.end_limit,
                                 .silence = own.mesh.silence,
                                 .patience = own.patience,
                                 .at_least = own.at_least};
  coordinator.names.insert(coordinator.names.begin(), driver->name());
  Coordinator::Site& site = *driver;
  driver->coordinator_ = std::make_unique<Coordinator>(std::move(coordinator), random_word(), site);
  return driver;
}

Driver::Driver(DriverOptions options, Plan plan)
    : options_(std::move(options)),
      plan_(std::move(plan)),
      process_(
          {[this](PeerId peer, std::uint64_t job, node::Body& body) { received(peer, job, body); },
           [this](PeerId peer) { coordinator_->silent(peer); },
           [this](PeerId peer) { coordinator_->heard(peer); },
           [this](PeerId peer, const std::string& reason) { coordinator_->gone(peer, reason); },
           [this](const std::string& text) { say(text); }}) {}

Driver::~Driver() {
  const std::string why = "the program ends";
  if (coordinator_) coordinator_->abandon(why);
  for (const auto& [node, files] : files_) files.exchange->close(why);
  process_.set_job(nullptr);
  files_.clear();
  process_.close();
}

std::string Driver::name() const {
  return node_name(host_, process_.mesh().port());
}

Status Driver::prepare(const Job& job) {
  data_ = job.data;
  ask_.version = leeway_version();
  ask_.who = options_.who;
  ask_.plan = Message(encode(plan_), {});
  ask_.data = job.data_checksum > 0 ? mark_of(job.data, job.data_checksum) : mark_of(job.data);
  ask_.trace = options_.trace;
  ask_.trace_messages = options_.trace_messages;
  ask_.initial_weights = job.initial_weights;
  ask_.user_loops = job.computed_by_users;
  if (const auto& store = job.checkpoints)
    ask_.checkpoints = {store->folder(), job.run, store->writer(),
                        !plan_.checkpoints.directory.empty()};
  if (job.resumed)
    ask_.resumed = {job.resumed->folder, job.resumed->manifest.number,
                    to_json(job.resumed->manifest)};
  coordinator_->prepare(job.stages, job.faults, ask_);
  return pass(Coordinator::Phase::calling, Coordinator::Phase::shipping);
}

Status Driver::start(const std::shared_ptr<const Job>& job, const std::vector<Audience*>& audience,
                     ActorObservers observers) {
  observers_ = std::move(observers);
  JobNode::Options options{.number = coordinator_->number(),
                           .placement = placement(),
                           .self = kProgramNode,
                           .names = coordinator_->names(),
                           .silence = options_.mesh.silence,
                           .on_event = {},
                           .on_message = observers_.on_message};
  options.on_event = [this](Address actor, Instant at, const Event& event, std::uint64_t record) {
    if (observers_.on_event) observers_.on_event(actor, at, event, record);
    if (actor == kScheduler && Coordinator::concerns(event))
      process_.post([this, event] { coordinator_->on_event(event); });
  };
  options.on_return = [this](WorkerId worker) {
    process_.post([this, worker] { coordinator_->returned(worker); });
  };
  options.on_ended = [this](Address actor, std::uint32_t launch) {
    process_.post([this, actor, launch] { coordinator_->ended(actor, launch); });
  };
  process_.set_job(
      std::make_shared<JobNode>(process_.mesh(), with_copies(job), audience, std::move(options)));
  coordinator_->start(job->clips_rounds());
  return pass(Coordinator::Phase::linking, Coordinator::Phase::linking);
}

Status Driver::pass(Coordinator::Phase first, Coordinator::Phase last) {
  while (coordinator_->phase() >= first && coordinator_->phase() <= last) {
    if (options_.interrupted && options_.interrupted())
      return Error{"interrupted before the start"};
    poll(kPollTime);
  }
  if (coordinator_->phase() == Coordinator::Phase::failed) return coordinator_->problems();
  return {};
}

void Driver::poll(Duration limit) {
  process_.poll(limit);
  coordinator_->tick();
}

void Driver::finish() {
  // Meanwhile, the viewers at nodes see the end of the run.
  const std::int64_t began = steady_ns();
  const bool has_viewers = page_asked_at_ > 0 && began - page_asked_at_ < kPageTime.ns;
  while (has_viewers && steady_ns() - began < kPageTime.ns) poll(kPollTime);
  coordinator_->finish();
  while (coordinator_->phase() == Coordinator::Phase::ending) poll(kPollTime);
}

// ---- messages ----

void Driver::received(PeerId peer, std::uint64_t job, node::Body& body) {
  if (std::holds_alternative<node::StatusRequest>(body)) return send_status(peer);
  const auto node = coordinator_->node_of(peer);
  if (node && job == coordinator_->number() && handle(*node, peer, body)) return;
  coordinator_->received(peer, job, body);
}

bool Driver::handle(NodeIndex node, PeerId peer, node::Body& body) {
  const auto files = files_.find(node);
  if (files != files_.end() && files->second.exchange->handle(body)) return true;
  if (const auto* effects = std::get_if<node::Effects>(&body)) {
    on_effects(node, *effects);
  } else if (const auto* events = std::get_if<node::Events>(&body)) {
    on_events(node, *events);
    taken(node, peer, events->events.size());
  } else if (auto* messages = std::get_if<node::Messages>(&body)) {
    const std::size_t count = messages->messages.size();
    on_messages(node, *messages);
    taken(node, peer, count);
  } else if (const auto* request = std::get_if<node::PageRequest>(&body)) {
    on_page_request(peer, *request);
  } else {
    return false;
  }
  return true;
}

void Driver::on_effects(NodeIndex node, const node::Effects& effects) {
  if (!process_.job() || !counted_.insert(node).second) return;
  if (const auto added = add_effects(effects, *process_.job()->job()); !added)
    say(concat("node ", coordinator_->name_of(node), " sent ", added.error().text));
}

void Driver::on_events(NodeIndex node, const node::Events& events) {
  if (events.lost > 0 && observers_.on_lost_events) observers_.on_lost_events(events.lost);
  if (!observers_.on_event || !process_.job()) return;
  const std::int64_t began = coordinator_->clock_ahead(node) + process_.job()->began_ns();
  for (const auto& emitted : events.events)
    observers_.on_event(emitted.actor, Instant{emitted.ns - began}, emitted.event, emitted.record);
}

void Driver::on_messages(NodeIndex node, node::Messages& messages) {
  if (messages.lost > 0 && observers_.on_lost_messages) observers_.on_lost_messages(messages.lost);
  if (!observers_.on_message || !process_.job()) return;
  const std::int64_t began = coordinator_->clock_ahead(node) + process_.job()->began_ns();
  for (auto& one : messages.messages)
    observers_.on_message(
        {Instant{one.ns - began}, one.from, one.to, std::move(one.header), one.tensor_bytes});
}

void Driver::taken(NodeIndex node, PeerId peer, std::size_t count) {
  send(peer, coordinator_->number(), node::TraceTaken{taken_[node] += count});
}

void Driver::on_page_request(PeerId peer, const node::PageRequest& request) {
  node::PageState state{.problem = "the program serves no page; start it with --serve 0"};
  if (page_) {
    state = page_(request);
    page_asked_at_ = steady_ns();
  }
  state.number = request.number;
  if (!state.json) state.json = Blob::allocate(0);
  send(peer, coordinator_->number(), std::move(state));
}

void Driver::send_status(PeerId peer) {
  node::Status status;
  status.version = leeway_version();
  status.program = true;
  status.name = name();
  if (process_.job()) process_.job()->fill(status);
  send(peer, 0, std::move(status));
}

// ---- Coordinator::Site ----

std::int64_t Driver::now_ns() const {
  return steady_ns();
}

void Driver::call(NodeIndex node, const std::string& name) {
  // The end of this program waits for a call.
  const bool again = coordinator_->phase() == Coordinator::Phase::running;
  process_.call(name, again ? std::min(kAgainLimit, options_.call_limit) : options_.call_limit,
                concat("check the address, and start `",
                       cluster::node_command(name, options_.mesh.tls), "` there"),
                [this, node](const Expected<PeerId>& peer) { coordinator_->called(node, peer); });
}

node::DataPiece Driver::piece(const node::DataMark& mark, std::int64_t first) {
  const bool test = first >= mark.train_samples;
  return data_piece(data_, mark, test, test ? first - mark.train_samples : first);
}

void Driver::ask_to_leave(WorkerId worker) {
  host().send(kScheduler, encode(Envelope{.body = msg::Leave{worker}}));
}

// ---- the files of checkpoints ----

void Driver::accepted(NodeIndex index, PeerId peer, const std::string& name,
                      const node::Answer& answer) {
  taken_.erase(index);  // of an earlier node with this number
  NodeFiles& node = files_[index];
  const std::string& folder = ask_.checkpoints.folder;
  const bool writes =
      !folder.empty() && (placement().has_shard(index) || !placement().standbys.empty());
  node.exchange = std::make_unique<FileExchange>(
      name, disk(),
      FileRights{.write_folder = writes ? folder : "", .read_folder = ask_.resumed.folder},
      [this, peer, job = coordinator_->number()](node::Body body) {
        process_.mesh().send(peer, kHostFiles, kHostFiles,
                             encode(NodeEnvelope{job, std::move(body)}));
      });
  if (!writes || answer.checkpoints == node::Answer::Checkpoints::shared) return;
  if (ask_.checkpoints.copies) {
    node.checkpoints = answer.checkpoints;
    node.next_checkpoint = answer.next_checkpoint;
  }
  say(concat("node ", name, " does not see ", folder,
             ": it sends its files of checkpoints to this program",
             ask_.checkpoints.copies ? ", and keeps copies in its own folder" : ""));
}

void Driver::has_left(NodeIndex node, const std::string& reason) {
  if (const auto files = files_.find(node); files != files_.end())
    files->second.exchange->close(reason);
}

std::shared_ptr<const Job> Driver::with_copies(const std::shared_ptr<const Job>& job) const {
  std::vector<std::shared_ptr<Files>> places;
  std::uint64_t next = job->next_checkpoint;
  for (const auto& [node, files] : files_) {
    next = std::max(next, files.next_checkpoint);
    if (files.checkpoints == node::Answer::Checkpoints::copied)
      places.push_back(files.exchange->remote());
  }
  if (places.empty()) return job;
  auto copy = std::make_shared<Job>(*job);
  copy->next_checkpoint = next;
  copy->checkpoints =
      std::make_shared<const checkpoint::Store>(job->checkpoints->with_copies(std::move(places)));
  return copy;
}

std::int64_t Driver::last_file_request_ns() const {
  std::int64_t last = 0;
  for (const auto& [node, files] : files_) last = std::max(last, files.exchange->last_request_ns());
  return last;
}

}  // namespace leeway
