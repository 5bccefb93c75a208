#pragma once
// wait_for_end: waits for the end of a run, forwards Ctrl-C, and notices the loss of the monitor.
#include <chrono>
#include <cstdint>
#include <functional>

#include "cluster/local_node.hpp"
#include "core/text.hpp"
#include "messages/envelope.hpp"
#include "runtime/interrupt.hpp"

namespace leeway {

/// Why a run is to stop before its end, besides Ctrl-C.
struct StopRequest {
  std::function<bool()> requested;  // by the program
  std::function<void()> announce;   // called at Ctrl-C
  /// Number of the last checkpoint that the run has written; empty if it writes none.
  std::function<std::uint64_t()> last_checkpoint;
};

/// Forwards an interrupt, or the program's request, to the scheduler, once.
template <class Host>
class InterruptForwarder {
 public:
  InterruptForwarder(Host& host, StopRequest stop) : host_(host), stop_(std::move(stop)) {}
  void poll() {
    const bool interrupted = guard_.interrupted();
    if (sent_ || !(interrupted || stop_.requested())) return;
    if (interrupted) stop_.announce();
    host_.send(kScheduler, encode(Envelope{.body = msg::Interrupt{}}));
    sent_ = true;
  }

 private:
  Host& host_;
  const StopRequest stop_;
  const InterruptGuard guard_;
  bool sent_ = false;
};

/// Stops a run that has lost its monitor, with a checkpoint. Returns the end of an error text:
/// "; its state is saved in checkpoint 4".
inline std::string save_without_monitor(LocalNode& host, const std::function<bool()>& ended,
                                        const StopRequest& stop) {
  constexpr std::chrono::seconds kLimit(30);
  if (!stop.last_checkpoint) return "";
  const std::uint64_t before = stop.last_checkpoint();
  host.send(kScheduler, encode(Envelope{.body = msg::Interrupt{}}));
  const auto until = std::chrono::steady_clock::now() + kLimit;
  while (stop.last_checkpoint() == before && std::chrono::steady_clock::now() < until) ended();
  const std::uint64_t now = stop.last_checkpoint();
  if (now != before) return concat("; its state is saved in checkpoint ", now);
  return concat("; no checkpoint was written within ", kLimit.count(), " s",
                before == 0 ? std::string() : concat(", the last one is ", before));
}

/// Calls `ended`, which blocks for a short time, until it returns true. Fails if the monitor, which
/// reports the end, has ended itself; the run then stops with a checkpoint.
inline Status wait_for_end(LocalNode& host, const std::function<bool()>& ended, StopRequest stop) {
  InterruptForwarder interrupts(host, stop);
  while (!ended()) {
    interrupts.poll();
    if (const auto reason = host.end_reason(kMonitor))
      return Error{
          concat("the monitor ended: ", reason->text, save_without_monitor(host, ended, stop))};
  }
  return {};
}

}  // namespace leeway
