#pragma once
// Faults as the flag --fault spells them.
#include <string>

#include "core/expected.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// Reads one fault: whom, a colon, what, an at sign, when.
///
///     2:throws@100                worker 2 throws in its iteration 100
///     2:killed@100                ends after its first push of it: a partial push if there are
///     more 2:crash@3s                  ends after 3 seconds; 2:crash(500ms)@3s: and is started
///     again 2:joins@3s                  is not there before 2:leaves@3s                 finishes
///     its iteration, and takes part no longer 2:freeze(500ms)@100         does nothing for half a
///     second scheduler:slow(5ms,2s)@1s   hears everything 5 ms later, for 2 seconds
///     2:break(shard0,100ms)@1s    the connection ends, and is made again after 100 ms
///     2:delay(shard0,5ms,2s)@1s   messages between the two take 5 ms longer, for 2 seconds
///     2:silence(shard0,2s)@1s     nothing that worker 2 says reaches shard 0 for 2 seconds
///     2:partition(2s)@1s          cut off from all; 2:partition(3+shard1,2s)@1s: with these
///     2:slow-link(10x,2s)@1s      the link of its node is 10 times as slow
///     2:stop-clock(2s)@1s         the clock of its node stands still
///
/// When: an iteration or a time; 100~50 and 1s~500ms: up to so much later, drawn from the seed. The
/// error says what is missing where, and shows how to write it. Whether the values make sense is
/// for validate() to say.
Expected<plan::Fault> parse_fault(const std::string& text);

}  // namespace leeway
