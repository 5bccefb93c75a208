#pragma once
// What the system tells a process: its clock, its name, randomness that no seed repeats.
#include <cstdint>
#include <string>

namespace leeway {

/// Nanoseconds of this machine's steady clock.
std::int64_t steady_ns();

/// By which others may find this machine; "" when it has no name.
std::string host_name();

/// To tell processes and jobs apart, never zero. What a run computes is from the plan's seed.
std::uint64_t random_word();

}  // namespace leeway
