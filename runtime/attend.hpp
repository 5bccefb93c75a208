#pragma once
// wait_for_end: waits for the end of a run, forwards Ctrl-C, and notices the loss of the monitor.
#include <functional>

#include "cluster/node_host.hpp"
#include "core/text.hpp"
#include "messages/envelope.hpp"
#include "runtime/interrupt.hpp"

namespace leeway {

/// Forwards an interrupt to the scheduler, once.
template <class Host>
class InterruptForwarder {
 public:
  /// `announce` is called at the interrupt.
  InterruptForwarder(Host& host, std::function<void()> announce)
      : host_(host), announce_(std::move(announce)) {}
  void poll() {
    if (sent_ || !guard_.interrupted()) return;
    announce_();
    host_.send(kScheduler, encode(Envelope{.body = msg::Interrupt{}}));
    sent_ = true;
  }

 private:
  Host& host_;
  const std::function<void()> announce_;
  const InterruptGuard guard_;
  bool sent_ = false;
};

/// Calls `ended`, which blocks for a short time, until it returns true. Fails if the monitor, which
/// reports the end, has ended itself. Calls `announce` at Ctrl-C.
inline Status wait_for_end(NodeHost& host, const std::function<bool()>& ended,
                           std::function<void()> announce) {
  InterruptForwarder interrupts(host, std::move(announce));
  while (!ended()) {
    interrupts.poll();
    if (const auto reason = host.end_reason(kMonitor))
      return Error{concat("the monitor ended: ", reason->text)};
  }
  return {};
}

}  // namespace leeway
