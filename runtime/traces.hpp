#pragma once
// Traces: the events and messages of a run in its folder.
#include <memory>

#include "cluster/local_node.hpp"
#include "cluster/record_filter.hpp"
#include "messages/message_log.hpp"
#include "monitoring/event_log.hpp"
#include "monitoring/run_folder.hpp"
#include "runtime/scenario.hpp"
#include "sim/observer.hpp"

namespace leeway {

class Traces {
 public:
  using OnEvent = std::function<void(Address, Instant, const Event&)>;
  /// Opens the files that the options ask for. `folder`: null without a run folder. `on_event`: may
  /// be empty.
  Traces(const RunFolder* folder, const RunOptions& options, OnEvent on_event);

  /// They write the traces, and call `on_event`.
  ActorObservers observers();
  /// Call at the end of the run. Error: a trace is incomplete.
  Status finish();
  /// The lines of the events after the end of the run; null without them.
  const LineFile* events() const { return events_ ? &events_->finish() : nullptr; }

 private:
  std::unique_ptr<EventLog> events_;
  std::unique_ptr<MessageLog> messages_;
  RecordFilter records_;
  OnEvent on_event_;
};

/// Passes the messages that a simulation delivers to `on_message`.
std::shared_ptr<sim::Observer> message_observer(OnMessage on_message);

}  // namespace leeway
