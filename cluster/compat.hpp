#pragma once
// The only header that includes CAF. Written against CAF 0.17; what differs between versions is
// kept here.
#include <caf/all.hpp>

#include "actors/outbox.hpp"
#include "messages/address.hpp"
#include "messages/message.hpp"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace leeway::cluster {

/// What happened before handing_over(x) on one thread has happened before taking_over(x) on
/// another. CAF orders the two by its mailboxes, which the thread sanitizer cannot see into; in
/// other builds these do nothing.
inline void handing_over([[maybe_unused]] const void* receiver) {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(const_cast<void*>(receiver));
#endif
}
inline void taking_over([[maybe_unused]] const void* receiver) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(const_cast<void*>(receiver));
#endif
}

// What the generic actor is sent. All of it stays inside the process.

/// A message from one role to another.
struct Delivery {
  Address from;
  Message message;
};
/// All actors of the host are there: begin.
struct Begin {};
/// Compute part `part` on the actor's own thread.
struct RunPart {
  std::shared_ptr<Work> work;
  int part = 0;
};
/// Part `part` has been computed.
struct PartDone {
  std::shared_ptr<Work> work;
  int part = 0;
};
/// A part threw.
struct PartFailed {
  std::string reason;
};
struct Tick {
  TimerToken token = 0;
};
/// Do nothing for so long, as if the process had been stopped.
struct Freeze {
  Duration time;
};

/// Sends one of these, from any thread.
template <class T>
void mail(const caf::actor& to, T message) {
  handing_over(caf::actor_cast<caf::abstract_actor*>(to));
  caf::anon_send(to, std::move(message));
}

}  // namespace leeway::cluster

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::Delivery)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::Begin)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::RunPart)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::PartDone)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::PartFailed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::Tick)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::Freeze)
