#pragma once
// Envelope: a decoded message. `encode` and `decode` are the only way between it and the wire form.
#include <variant>

#include "core/expected.hpp"
#include "messages/message.hpp"
#include "messages/monitor.hpp"
#include "messages/scheduler_shard.hpp"
#include "messages/stage_stage.hpp"
#include "messages/worker_scheduler.hpp"
#include "messages/worker_shard.hpp"

namespace leeway {

inline constexpr std::uint16_t kProtocolVersion = 1;

/// In the order of the union in envelope.capnp, less its `none`.
using Body =
    std::variant<msg::Pull, msg::Weights, msg::Push, msg::Pushed, msg::Refused, msg::Join,
                 msg::Start, msg::WantLease, msg::Lease, msg::NoData, msg::Idle, msg::Diverged,
                 msg::Stop, msg::Stopped, msg::Admit, msg::Admitted, msg::Raise, msg::Fence,
                 msg::Fenced, msg::Remove, msg::Snapshot, msg::SnapshotVote, msg::Finish,
                 msg::SnapshotState, msg::WorkerReport, msg::ShardReport, msg::SchedulerReport,
                 msg::Evicted, msg::RunEnded, msg::Evaluated, msg::Interrupt, msg::Bound,
                 msg::PushDropped, msg::RoundClosed, msg::CloseRound, msg::Leave, msg::MiniBatch,
                 msg::NoMore, msg::Activation, msg::OutputGradient, msg::GivenUp>;

struct Envelope {
  Incarnation incarnation{1};  // of the worker that speaks or is spoken to
  std::uint32_t placement = 1;
  Incarnation shard_incarnation{1};  // in messages to and from a shard
  Body body;
};

Message encode(const Envelope& envelope);

/// Validates as if the sender were hostile: sizes, enums, counts against core/limits.hpp, every
/// tensor against its blob. The error names the message, the field, what was found and what is
/// allowed.
Expected<Envelope> decode(const Message& message);

/// "push"; for traces and refusals.
std::string_view name_of(const Body& body);

}  // namespace leeway
