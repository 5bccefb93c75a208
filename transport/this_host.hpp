#pragma once
// The system's clock, host name and random numbers.
#include <cstdint>
#include <string>

namespace leeway {

/// Nanoseconds of the steady clock.
std::int64_t steady_ns();

/// "" if the host has no name.
std::string host_name();

/// Identifies processes and jobs; never zero. Runs draw from the plan's seed instead.
std::uint64_t random_word();

}  // namespace leeway
