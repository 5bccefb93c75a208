#pragma once
// RunOutputs: everything that a run writes or serves besides its result: the events and messages
// in its folder, its page and its metrics.
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/driver.hpp"
#include "cluster/local_node.hpp"
#include "cluster/record_filter.hpp"
#include "dashboard/server.hpp"
#include "messages/message_log.hpp"
#include "monitoring/event_file.hpp"
#include "monitoring/event_log.hpp"
#include "monitoring/prometheus.hpp"
#include "monitoring/run_folder.hpp"
#include "monitoring/tensorboard.hpp"
#include "runtime/scenario.hpp"
#include "sim/observer.hpp"

namespace leeway {

class RunOutputs {
 public:
  using OnEvent = std::function<void(Address, Instant, const Event&)>;
  /// Starts the servers that the options ask for. `on_event`: may be empty. Error: an address
  /// cannot be served.
  static Expected<std::unique_ptr<RunOutputs>> open(const Job& job, const RunOptions& options,
                                                    OnEvent on_event);
  /// Opens the files that the options ask for.
  void open_files(const RunFolder& folder, const Job& job, const RunOptions& options);

  /// They write the events and messages, and call `on_event`.
  ActorObservers observers();
  std::vector<Audience*> audience();
  /// Lines for the user, such as the URL of the page.
  const std::vector<std::string>& notes() const { return notes_; }
  /// Whether a user of the page wants the run to stop.
  bool stop_requested() const { return stop_requested_; }
  /// The page for nodes that serve it as well; empty without --serve.
  Driver::Page page_for_nodes();

  /// Call at the end of the run. `error`: why it has failed; empty if its monitor has reported its
  /// end.
  void finish(const std::string& error);
  /// After finish(): which files are kept, and what they lack.
  OutputFiles files();

 private:
  RunOutputs() = default;
  Status open_page(const Job& job, const RunOptions& options);

  std::unique_ptr<EventFile> events_;
  std::unique_ptr<EventLog> event_lines_;
  std::unique_ptr<MessageLog> messages_;
  Status messages_written_;
  RecordFilter records_;
  std::atomic<std::uint64_t> lost_events_ = 0, lost_messages_ = 0;  // by other nodes
  OnEvent on_event_;
  std::atomic<bool> stop_requested_{false};
  std::vector<std::string> notes_;
  std::unique_ptr<PrometheusExporter> metrics_;
  std::optional<TensorBoardFile> tensorboard_;
  std::unique_ptr<dashboard::Feed> feed_;
  std::unique_ptr<dashboard::Server> page_;  // after the feed that it serves
};

/// Passes the messages that a simulation delivers to `on_message`.
std::shared_ptr<sim::Observer> message_observer(OnMessage on_message);

}  // namespace leeway
