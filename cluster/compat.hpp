#pragma once
// The only header that includes CAF. Written against CAF 0.17; what differs between versions is
// kept here.
#include <caf/all.hpp>

#include "actors/outbox.hpp"
#include "messages/address.hpp"
#include "messages/message.hpp"

namespace leeway::cluster {

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

}  // namespace leeway::cluster

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::Delivery)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::Begin)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::RunPart)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::PartDone)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::PartFailed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(leeway::cluster::Tick)
