#pragma once
// Queries for events of any type.
#include <cstdint>
#include <optional>

#include "messages/events.hpp"

namespace leeway {

/// The worker that the event concerns; of a Refused, the index of the sender, whatever its role.
std::optional<WorkerId> worker_of(const Event& event);
std::optional<Iteration> iteration_of(const Event& event);
/// A hash of the type and all numbers, the same on every processor. Excludes texts, which may
/// contain losses, and durations, which follow from the times of events.
std::uint64_t hash_of(const Event& event);

}  // namespace leeway
