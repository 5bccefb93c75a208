#pragma once
// The system's clocks, host name, processor, loopback addresses and random numbers.
#include <cstdint>
#include <string>

namespace leeway {

/// Nanoseconds of the steady clock.
std::int64_t steady_ns();

/// The system's time in UTC as "2026-11-25T14:03:59Z", or "2026-11-25T14:03:59.120Z".
std::string utc_now(bool milliseconds = false);

/// "" if the host has no name.
std::string host_name();

/// "AMD EPYC 7R13 Processor"; "" if the system does not say.
std::string processor_name();

/// Whether the address is one of the loopback interface, or "localhost". A name such as
/// 127.evil.example is not.
bool is_loopback(const std::string& address);

/// Identifies processes and jobs; never zero. Runs draw from the plan's seed instead.
std::uint64_t random_word();

}  // namespace leeway
