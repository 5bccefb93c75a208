// The tables of interleaved are those of PyTorch's ScheduleInterleaved1F1B.
#include <rapidcheck/catch.h>

#include <algorithm>

#include "policies/pipeline/check.hpp"
#include "tests/policies/pipeline_tables.hpp"

using namespace leeway;
using namespace leeway::pipeline;

namespace {

/// A stage's forwards and backwards: "F0a F1a B0b ...", with a letter for the chunk.
std::string text_of(const std::vector<Op>& ops) {
  std::string text;
  for (const Op& op : ops) {
    if (op.kind == OpKind::update) continue;
    text += text.empty() ? "" : " ";
    text += op.kind == OpKind::forward ? 'F' : 'B';
    text += std::to_string(op.micro_batch) + static_cast<char>('a' + op.chunk);
  }
  return text;
}

/// The operations of a rank as PyTorch numbers them: step by step, a warm-up of forwards, then one
/// forward and one backward each, then backwards. In both directions a rank passes to the next
/// local stage after each `microbatches_per_round` operations, and counts the micro-batches of
/// each.
std::string pytorch(int ranks, int microbatches, int local_stages, int rank) {
  const int rounds = std::max(1, microbatches / ranks);
  const int per_round = microbatches / rounds;
  const int all = microbatches * local_stages;
  const int warmup = std::min(all, (local_stages - 1) * per_round + 2 * (ranks - 1 - rank));
  std::vector<int> forwards(static_cast<std::size_t>(local_stages)), backwards = forwards;
  std::string text;
  const auto add = [&](char kind, std::vector<int>& counts, int stage) {
    text += text.empty() ? "" : " ";
    text += kind + std::to_string(counts[static_cast<std::size_t>(stage)]++);
    text += static_cast<char>('a' + stage);
  };
  for (int step = 0; step < all + warmup; ++step) {
    if (step < all) add('F', forwards, step / per_round % local_stages);
    if (step >= warmup)
      add('B', backwards, local_stages - 1 - (step - warmup) / per_round % local_stages);
  }
  return text;
}

}  // namespace

TEST_CASE("interleaved accepts the micro-batches and has the tables of PyTorch") {
  for (int stages = 2; stages <= 8; ++stages)
    for (int micro_batches = 1; micro_batches <= 40; ++micro_batches)
      for (int chunks = 2; chunks <= 4; ++chunks) {
        CAPTURE(stages, micro_batches, chunks);
        const auto table = make_table({"interleaved", stages, micro_batches, chunks});
        const bool accepted = micro_batches % std::max(1, micro_batches / stages) == 0;
        REQUIRE(table.has_value() == accepted);
        if (!accepted) continue;
        REQUIRE(check(*table).has_value());
        for (int stage = 0; stage < stages; ++stage)
          REQUIRE(text_of(table->ops[static_cast<std::size_t>(stage)]) ==
                  pytorch(stages, micro_batches, chunks, stage));
      }
}

TEST_CASE("tables by the rules of PyTorch's interleaved schedule, where S does not divide M") {
  // 5 micro-batches on 4 ranks make one round of 5.
  const auto table = table_of({"interleaved", 4, 5, 2});
  CHECK(text_of(table.ops[3]) ==
        "F0a F1a F2a F3a F4a F0b B0b F1b B1b F2b B2b F3b B3b F4b B4b B0a B1a B2a B3a B4a");
  CHECK(text_of(table.ops[0]) ==
        "F0a F1a F2a F3a F4a F0b F1b F2b F3b F4b B0b B1b B2b B3b B4b B0a B1a B2a B3a B4a");
  // 10 micro-batches on 4 ranks make two rounds of 5.
  CHECK(text_of(table_of({"interleaved", 4, 10, 2}).ops[3])
            .starts_with("F0a F1a F2a F3a F4a F0b B0b F1b B1b F2b B2b F3b B3b F4b B4b F5a B0a F6a "
                         "B1a F7a B2a"));
}
