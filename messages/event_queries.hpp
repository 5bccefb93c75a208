#pragma once
// Questions about an event whose type does not matter.
#include <cstdint>
#include <optional>

#include "messages/events.hpp"

namespace leeway {

/// The worker that the event concerns.
std::optional<WorkerId> worker_of(const Event& event);
std::optional<Iteration> iteration_of(const Event& event);
/// A hash of the type and all numbers, the same on every processor. Excludes texts, which may
/// contain losses.
std::uint64_t hash_of(const Event& event);

}  // namespace leeway
