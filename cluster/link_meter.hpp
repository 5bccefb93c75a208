#pragma once
// LinkMeter: measures connections of this process to others, for `leeway doctor`, and answers the
// messages of such measurements. One measurement runs at a time.
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cluster/process.hpp"

namespace leeway {

class LinkMeter {
 public:
  using Then = std::function<void(const node::Measured&)>;

  /// `needs_links`: whether the process uses its connections otherwise. Then it measures nothing
  /// for others, and keeps the connections that it measured. All calls are of the thread of
  /// process.poll().
  LinkMeter(Process& process, std::function<bool()> needs_links)
      : process_(process), needs_links_(std::move(needs_links)) {}

  /// Calls the node at `name`, and measures round trips and the rate of large tensors. `advice`: as
  /// in Process::call.
  void measure(const std::string& name, const std::string& advice, Then then);
  /// True if the message belonged to a measurement.
  bool handle(PeerId peer, const node::Body& body);
  void gone(PeerId peer, const std::string& reason);
  /// To be called every 50 ms. Ends a measurement without answers.
  void tick();

 private:
  struct Order {
    std::string name, advice;
    Then then;
  };
  struct Measurement {
    Order order;
    std::optional<PeerId> peer;
    int pings = 0;
    std::int64_t least_round_trip = 0;
    std::int64_t loading_since = 0;        // 0: not yet
    std::int64_t last_answer = 0;          // when it came
    std::uint64_t sent = 0, answered = 0;  // loads
    bool called_again = false;             // after the loss of the connection
  };

  void begin_next();
  void call();
  void called(const Expected<PeerId>& peer);
  void on_pong(const node::Pong& pong);
  void on_loaded(const node::Loaded& loaded);
  void send_loads();
  void end(node::Measured result);

  Process& process_;
  const std::function<bool()> needs_links_;
  Blob load_;
  std::uint64_t last_load_ = 0;  // the number of the last one, over all measurements
  std::deque<Order> waiting_;
  std::optional<Measurement> now_;
};

}  // namespace leeway
