#include "runtime/outputs.hpp"

#include "core/text.hpp"
#include "monitoring/format.hpp"
#include "runtime/cluster/options.hpp"
#include "runtime/flags/values.hpp"

namespace leeway {
namespace {

class MessageObserver final : public sim::Observer {
 public:
  explicit MessageObserver(OnMessage on_message) : on_message_(std::move(on_message)) {}
  void on_delivered(Instant at, const sim::Letter& letter) override {
    on_message_(received(at, letter.from(), letter.to(), letter.message()));
  }

 private:
  const OnMessage on_message_;
};

dashboard::RunInfo page_info(const Job& job, const RunOptions& options) {
  const Plan& plan = job.plan;
  const bool on_nodes = options.cluster && !options.cluster->nodes.empty();
  dashboard::RunInfo info =
      dashboard::info_of(plan, policy_name(plan.consistency), job.first_bound());
  info.kind = plan.simulated ? "simulation" : on_nodes ? "cluster" : "threads";
  info.has_accuracy = job.data.train->classes() > 0;
  info.has_losses = job.has_losses();
  info.can_stop = true;
  return info;
}

}  // namespace

Expected<std::unique_ptr<RunOutputs>> RunOutputs::open(const Job& job, const RunOptions& options,
                                                       OnEvent on_event) {
  std::unique_ptr<RunOutputs> outputs(new RunOutputs);
  outputs->on_event_ = std::move(on_event);
  if (!options.serve.empty())
    if (const auto served = outputs->open_page(job, options); !served) return served.error();
  if (!options.metrics.empty()) {
    auto opened = PrometheusExporter::open(options.metrics, job);
    if (!opened) return opened.error();
    outputs->metrics_ = std::move(*opened);
    outputs->notes_.push_back(concat("metrics: ", outputs->metrics_->url()));
  }
  return outputs;
}

void RunOutputs::open_files(const RunFolder& folder, const Job& job, const RunOptions& options) {
  if (options.tensorboard) tensorboard_.emplace(options.folder, job);
  if (options.trace)
    events_ = std::make_unique<EventFile>(folder.path("events.bin"), job.plan.simulated
                                                                         ? EventFile::IfSlow::wait
                                                                         : EventFile::IfSlow::lose);
  if (options.trace_json) event_lines_ = std::make_unique<EventLog>(folder.path("events.jsonl"));
  if (options.trace_messages) messages_ = std::make_unique<MessageLog>(folder.path("messages.bin"));
}

Status RunOutputs::open_page(const Job& job, const RunOptions& options) {
  const auto serve = dashboard::server_options(options.serve, options.serve_token,
                                               options.cluster ? options.cluster->tls : "");
  if (!serve) return serve.error();
  using Feed = dashboard::Feed;
  const dashboard::RunInfo info = page_info(job, options);
  // The nodes of a cluster send their events several times per second.
  const Duration lateness = milliseconds(info.kind == "cluster" ? 300 : 0);
  feed_ = std::make_unique<Feed>(info, job.plan.simulated ? Feed::IfFull::wait : Feed::IfFull::lose,
                                 lateness);
  // A second of a simulation shows minutes of the run.
  constexpr std::chrono::milliseconds kRun(100), kSimulation(33);
  auto page = dashboard::Server::open(
      *serve, {.state = [feed = feed_.get()](std::uint64_t since) { return feed->state(since); },
               .stop =
                   [this] {
                     stop_requested_ = true;
                     return Status();
                   },
               .predict = {},
               .period = job.plan.simulated ? kSimulation : kRun});
  if (!page) return Error{concat("--serve: ", page.error().text)};
  page_ = std::move(*page);
  notes_.push_back(concat("page: ", page_->url()));
  return {};
}

ActorObservers RunOutputs::observers() {
  ActorObservers observers;
  if (events_ || event_lines_ || feed_ || metrics_ || on_event_)
    observers.on_event = [this](Address actor, Instant at, const Event& event,
                                std::uint64_t record) {
      if (!records_.is_new(actor, record)) return;
      if (events_) events_->add(actor, at, event);
      if (event_lines_) event_lines_->write(actor, at, event);
      if (feed_) feed_->event(actor, at, event);
      if (metrics_) metrics_->event(actor, at, event);
      if (on_event_) on_event_(actor, at, event);
    };
  observers.on_lost_events = [this](std::uint64_t count) {
    lost_events_ += count;
    if (feed_) feed_->lost(count);
  };
  observers.on_lost_messages = [this](std::uint64_t count) { lost_messages_ += count; };
  if (messages_)
    observers.on_message = [this](const ReceivedMessage& received) { messages_->write(received); };
  return observers;
}

Driver::Page RunOutputs::page_for_nodes() {
  if (!feed_) return {};
  return [this](const node::PageRequest& request) {
    node::PageState state;
    if (request.stop) {
      stop_requested_ = true;
      return state;
    }
    const auto [json, revision, has_ended] = feed_->state(request.since);
    state.json = Blob::copy_of(std::as_bytes(std::span(json)));
    state.revision = revision;
    state.ended = has_ended;
    return state;
  };
}

std::vector<Audience*> RunOutputs::audience() {
  std::vector<Audience*> audience;
  if (feed_) audience.push_back(feed_.get());
  if (metrics_) audience.push_back(metrics_.get());
  if (tensorboard_) audience.push_back(&*tensorboard_);
  return audience;
}

void RunOutputs::finish(const std::string& error) {
  if (feed_ && !error.empty()) feed_->failed(error);
  if (page_) page_->finish();
  if (events_) events_->finish();
  if (event_lines_) event_lines_->finish();
  if (messages_) messages_written_ = messages_->finish();
}

OutputFiles RunOutputs::files() {
  OutputFiles files;
  const std::uint64_t by_nodes = lost_events_;
  const auto cause_of = [&](const std::string& cause) {
    return cause.empty() && by_nodes > 0
               ? std::string("this program recorded the events of other nodes too slowly")
               : cause;
  };
  if (events_)
    files.lossy.push_back({"events.bin", "events", events_->written(), events_->lost() + by_nodes,
                           cause_of(events_->cause())});
  if (event_lines_) {
    const LineFile& lines = event_lines_->finish();
    files.lossy.push_back({"events.jsonl", "lines", lines.written(), lines.lost() + by_nodes,
                           cause_of(lines.cause())});
  }
  files.messages = messages_written_;
  if (lost_messages_ > 0 && files.messages)
    files.messages =
        Error{concat("messages.bin lacks ", grouped(lost_messages_),
                     " messages of other nodes, which this program recorded too slowly")};
  if (tensorboard_) files.tensorboard = tensorboard_->finish();
  return files;
}

std::shared_ptr<sim::Observer> message_observer(OnMessage on_message) {
  return std::make_shared<MessageObserver>(std::move(on_message));
}

}  // namespace leeway
