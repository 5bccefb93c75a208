#pragma once
// Random messages for property tests.
#include <cstdint>
#include <vector>

#include "messages/envelope.hpp"

namespace leeway::test {

/// Counts are below this.
inline constexpr std::int64_t kCountEnd = std::int64_t{1} << 62;

/// A random envelope of each kind of body; to be called in a property. Numbers at the ends of their
/// ranges are among them.
std::vector<Envelope> any_envelopes();

}  // namespace leeway::test
