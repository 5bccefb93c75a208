#pragma once
// wait_for_end: waits for the end of a run, forwards Ctrl-C, and notices the loss of the monitor.
#include <functional>

#include "cluster/node_host.hpp"
#include "core/text.hpp"
#include "messages/envelope.hpp"
#include "runtime/interrupt.hpp"

namespace leeway {

/// Why a run is to stop before its end, besides Ctrl-C.
struct StopRequest {
  std::function<bool()> requested;  // by the program
  std::function<void()> announce;   // called at Ctrl-C
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

/// Calls `ended`, which blocks for a short time, until it returns true. Fails if the monitor, which
/// reports the end, has ended itself.
inline Status wait_for_end(NodeHost& host, const std::function<bool()>& ended, StopRequest stop) {
  InterruptForwarder interrupts(host, std::move(stop));
  while (!ended()) {
    interrupts.poll();
    if (const auto reason = host.end_reason(kMonitor))
      return Error{concat("the monitor ended: ", reason->text)};
  }
  return {};
}

}  // namespace leeway
