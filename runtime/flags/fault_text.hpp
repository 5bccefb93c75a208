#pragma once
// parse_fault: reads the value of --fault.
#include <string>

#include "core/expected.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// Reads one fault, ACTOR:KIND(ARGUMENTS)@WHEN:
///
///     2:throws@100                worker 2 throws in iteration 100
///     2:killed@100                ends after its first push of iteration 100
///     2:crash@3s                  ends after 3 s; 2:crash(500ms)@3s: restarts after 500 ms
///     2:joins@3s                  joins after 3 s
///     2:leaves@3s                 finishes its iteration and leaves
///     2:freeze(500ms)@100         does nothing for 500 ms
///     scheduler:slow(5ms,2s)@1s   receives everything 5 ms later, for 2 s
///     2:break(shard0,100ms)@1s    the connection breaks, and is restored after 100 ms
///     2:delay(shard0,5ms,2s)@1s   messages between the two take 5 ms longer, for 2 s
///     2:silence(shard0,2s)@1s     messages from worker 2 to shard 0 are lost for 2 s
///     2:partition(2s)@1s          is cut off from all others for 2 s
///     2:partition(3,2s)@1s        the same, together with worker 3
///     2:slow-link(10x,2s)@1s      the link of its node is 10 times as slow for 2 s
///     2:stop-clock(2s)@1s         the clock of its node stops for 2 s
///     node5:competes(2s)@1s       another program calls the nodes, and gives up after 2 s
///
/// WHEN is an iteration or a time. A random delay can follow: 100~50 is up to 50 iterations later,
/// 1s~500ms up to 500 ms. The error names what is missing and shows an example. validate() checks
/// the values.
Expected<plan::Fault> parse_fault(const std::string& text);

}  // namespace leeway
