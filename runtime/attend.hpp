#pragma once
// What a program does while a run of its is under way: it passes Ctrl-C on, and looks whether the
// monitor, who will tell the end, still lives.
#include <functional>

#include "cluster/node_host.hpp"
#include "core/text.hpp"
#include "messages/envelope.hpp"
#include "runtime/interrupt.hpp"

namespace leeway {

/// Passes an interrupt on to the scheduler, once.
template <class Host>
class Interrupts {
 public:
  explicit Interrupts(Host& host) : host_(host) {}
  void look() {
    if (told_ || !guard_.interrupted()) return;
    host_.send(kScheduler, encode(Envelope{.body = msg::Interrupt{}}));
    told_ = true;
  }

 private:
  Host& host_;
  const InterruptGuard guard_;
  bool told_ = false;
};

/// Until `ended`, which waits a little for it. The error says why the end will not come.
inline Status attend(NodeHost& host, const std::function<bool()>& ended) {
  Interrupts interrupts(host);
  while (!ended()) {
    interrupts.look();
    if (const auto reason = host.end_reason(kMonitor))
      return Error{concat("the monitor ended: ", reason->text)};
  }
  return {};
}

}  // namespace leeway
