#pragma once
// Scenes for mutants that the search does not meet: a few messages to one shard.
#include <string>

namespace leeway {

/// Returns what is wrong with how it plays; empty when all is well.
using Scene = std::string (*)();

// Two stages that share a table.

/// The halves of an iteration come one after the other.
std::string halves_come_apart();
/// A stage is fenced while its half waits for the other.
std::string stage_is_fenced();
/// One stage pulls the next iteration before the other has pushed this one.
std::string sibling_is_behind();

}  // namespace leeway
