#pragma once
// What happens in a run, in words: for reports of violations and of differences between runs.
#include <map>
#include <optional>
#include <string>

#include "actors/outbox.hpp"
#include "messages/envelope.hpp"

namespace leeway::sim {

/// "0.001250000 s".
std::string in_words(Instant at);
/// "clock_moved, worker 2, iteration 0, value 5, value2 0".
std::string in_words(const Event& event);
/// The iteration that a message speaks of.
std::optional<Iteration> iteration_of(const Body& body);
/// "push of iteration 5, incarnation 1"; for a malformed message what is wrong with it.
std::string in_words(const Message& message);

/// For a run in which nothing happens any more: where scheduler and shards stand.
std::string who_waits(const std::map<Address, const Role*>& roles);

}  // namespace leeway::sim
