#pragma once
// Stragglers as the flag --slow spells them.
#include <string>

#include "core/expected.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// Reads one straggler: who, a colon, how.
///
///     3:4x                    worker 3 takes 4 times as long
///     3:4x@20%/50             in 20% of its iterations, in bursts of 50 on average
///     all:pareto(1.5,20x)     every worker, by a heavy tail of exponent 1.5, up to 20 times
///     3:pauses(200ms/50)      200 ms every 50 iterations; pauses(200ms/2s): every 2 seconds
///     3:decay(8x/1000)        evenly up to 8 times over 1000 iterations
///     3:sharing(3x,100/300)   3 times in 100 iterations, not slow in 300, and again
///     3:trace(factors.txt)    the factors of a file, one a line
///
/// `/50` and `,20x` may be left out. The error says what is missing where, and shows how to write
/// it. Whether the values make sense is for validate() to say.
Expected<plan::Straggler> parse_straggler(const std::string& text);

}  // namespace leeway
