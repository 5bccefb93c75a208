#pragma once
// The text form of stragglers, for the flag --slow.
#include <string>

#include "core/expected.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// Reads one straggler: a worker or "all", a colon, its kind and possibly its start.
///
///     3:4x                    worker 3 takes 4 times as long
///     3:4x@20%/50             in 20% of its iterations, in bursts of 50 on average
///     all:pareto(1.5,20x)     every worker, heavy-tailed with exponent 1.5, up to 20 times
///     3:pauses(200ms/50)      200 ms every 50 iterations; pauses(200ms/2s): every 2 seconds
///     3:decay(8x/1000)        rises linearly to 8 times over 1000 iterations
///     3:sharing(3x,100/300)   3 times for 100 iterations, full speed for 300, and so on
///     3:sharing(3x,100/300,50)  the same, beginning after 50 iterations of its cycle
///     3:repeated(4,4,1,1)     these factors, again and again
///     3:delay(5ms)            5 ms more in each iteration
///     3:custom(name)          the factors of a function of the program
///     3:trace(factors.txt)    the factors of a file, one per line
///     2+3:4x@20%              workers 2 and 3 by the same random numbers
///     3:4x@from=50%           from the second half of the run on; @from=100: from iteration 100 on
///
/// `/50` and `,20x` are optional. An error names the missing element and its position, and shows
/// the correct form. validate() checks the values.
Expected<plan::Straggler> parse_straggler(const std::string& text);

}  // namespace leeway
