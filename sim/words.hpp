#pragma once
// Messages and events in words, for reports of violations and of differences between runs.
#include <map>
#include <optional>
#include <string>

#include "actors/outbox.hpp"
#include "messages/envelope.hpp"

namespace leeway::sim {

/// "0.001250000 s".
std::string in_words(Instant at);
/// "clock moved, worker 2, clock 5".
std::string in_words(const Event& event);
/// The iteration field of a message, if it has one.
std::optional<Iteration> iteration_of(const Body& body);
/// "push of iteration 5, session 1". For a malformed message, the error.
std::string in_words(const Message& message);

/// The states of scheduler and shards, for a report of a deadlock.
std::string who_waits(const std::map<Address, const Role*>& roles);

}  // namespace leeway::sim
