// The tables of interleaved_zb, zb_v and dualpipe_v are those of PyTorch.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "policies/pipeline/schedule.hpp"

using namespace leeway;
using namespace leeway::pipeline;

namespace {

/// A stage's operations as PyTorch prints them: model chunk, kind, micro-batch.
std::string text_of(const Table& table, int stage) {
  std::string text;
  for (const Op& op : table.ops[static_cast<std::size_t>(stage)]) {
    if (op.kind == OpKind::update) continue;
    text += text.empty() ? "" : " ";
    text += std::to_string(table.model_chunk(stage, op.chunk)) + letter_of(op.kind);
    text += std::to_string(op.micro_batch);
  }
  return text;
}

struct Printed {
  Spec spec;
  std::vector<std::string> stages;
};

/// The pipeline_order of ScheduleInterleavedZeroBubble, ScheduleZBVZeroBubble and ScheduleDualPipeV
/// in PyTorch 2.15, without empty steps. Pairs that overlap are in their order.
const std::vector<Printed> kPrinted = {
    {{"interleaved_zb", 3, 6, 2},
     {"0F0 0F1 0F2 3F0 3F1 3F2 3I0 3W0 0F3 3I1 3W1 0F4 3I2 3W2 0F5 0I0 0W0 3F3 0I1 0W1 3F4 0I2 0W2 "
      "3F5 3I3 3W3 3I4 3W4 3I5 3W5 0I3 0W3 0I4 0W4 0I5 0W5",
      "1F0 1F1 1F2 4F0 4F1 4I0 4F2 4I1 4W0 1F3 4I2 4W1 1F4 1I0 4W2 1F5 1I1 1W0 4F3 1I2 1W1 4F4 4I3 "
      "1W2 4F5 4I4 4W3 4I5 4W4 1I3 4W5 1I4 1W3 1I5 1W4 1W5",
      "2F0 2F1 2F2 5F0 5I0 5F1 5I1 5F2 5I2 5W0 2F3 2I0 5W1 2F4 2I1 5W2 2F5 2I2 2W0 5F3 5I3 2W1 5F4 "
      "5I4 2W2 5F5 5I5 5W3 2I3 5W4 2I4 5W5 2I5 2W3 2W4 2W5"}},
    {{"interleaved_zb", 4, 5, 2},
     {"0F0 0F1 0F2 0F3 0F4 4F0 4F1 4F2 4F3 4I0 4W0 4F4 4I1 4W1 4I2 4W2 4I3 4W3 4I4 4W4 0I0 0W0 0I1 "
      "0W1 0I2 0W2 0I3 0W3 0I4 0W4",
      "1F0 1F1 1F2 1F3 1F4 5F0 5F1 5F2 5I0 5F3 5I1 5W0 5F4 5I2 5W1 5I3 5W2 5I4 5W3 1I0 5W4 1I1 1W0 "
      "1I2 1W1 1I3 1W2 1I4 1W3 1W4",
      "2F0 2F1 2F2 2F3 2F4 6F0 6F1 6I0 6F2 6I1 6F3 6I2 6W0 6F4 6I3 6W1 6I4 6W2 2I0 6W3 2I1 6W4 2I2 "
      "2W0 2I3 2W1 2I4 2W2 2W3 2W4",
      "3F0 3F1 3F2 3F3 3F4 7F0 7I0 7F1 7I1 7F2 7I2 7F3 7I3 7W0 7F4 7I4 7W1 3I0 7W2 3I1 7W3 3I2 7W4 "
      "3I3 3W0 3I4 3W1 3W2 3W3 3W4"}},
    {{"interleaved_zb", 2, 4, 3},
     {"0F0 0F1 2F0 2F1 4F0 4F1 4I0 4W0 0F2 4I1 4W1 0F3 2I0 2W0 2F2 2I1 2W1 2F3 0I0 0W0 4F2 0I1 0W1 "
      "4F3 4I2 4W2 4I3 4W3 2I2 2W2 2I3 2W3 0I2 0W2 0I3 0W3",
      "1F0 1F1 3F0 3F1 5F0 5I0 5F1 5I1 5W0 1F2 3I0 5W1 1F3 3I1 3W0 3F2 1I0 3W1 3F3 1I1 1W0 5F2 5I2 "
      "1W1 5F3 5I3 5W2 3I2 5W3 3I3 3W2 1I2 3W3 1I3 1W2 1W3"}},
    {{"zb_v", 3, 6, 2},
     {"0F0 0F1 0F2 0F3 0F4 5F0 5I0 5W0 5F1 5I1 5W1 5F2 5I2 5W2 0F5 0I0 0W0 5F3 5I3 5W3 0I1 0W1 5F4 "
      "5I4 5W4 0I2 0W2 5F5 5I5 5W5 0I3 0W3 0I4 0W4 0I5 0W5",
      "1F0 1F1 1F2 4F0 1F3 4F1 4I0 4W0 4F2 4I1 4W1 1F4 1I0 1W0 4F3 4I2 4W2 1F5 1I1 1W1 4F4 4I3 4W3 "
      "1I2 1W2 4F5 4I4 4W4 1I3 4I5 1I4 1W3 1I5 1W4 4W5 1W5",
      "2F0 3F0 2F1 3F1 2F2 3F2 3I0 3W0 2F3 2I0 2W0 3F3 3I1 3W1 2F4 2I1 2W1 3F4 3I2 3W2 2F5 2I2 2W2 "
      "3F5 3I3 3W3 2I3 3I4 2I4 3I5 2I5 2W3 3W4 3W5 2W4 2W5"}},
    {{"zb_v", 4, 5, 2},
     {"0F0 0F1 0F2 0F3 0F4 7F0 7I0 7W0 7F1 7I1 7W1 7F2 7I2 7W2 7F3 7I3 7W3 0I0 0W0 7F4 7I4 7W4 0I1 "
      "0W1 0I2 0W2 0I3 0W3 0I4 0W4",
      "1F0 1F1 1F2 1F3 1F4 6F0 6F1 6I0 6W0 6F2 6I1 6W1 6F3 6I2 6W2 1I0 1W0 6F4 6I3 6W3 1I1 1W1 6I4 "
      "6W4 1I2 1W2 1I3 1I4 1W3 1W4",
      "2F0 2F1 2F2 5F0 2F3 5F1 2F4 5F2 5I0 5W0 5F3 5I1 5W1 2I0 2W0 5F4 5I2 5W2 2I1 2W1 5I3 5W3 2I2 "
      "2W2 5I4 5W4 2I3 2I4 2W3 2W4",
      "3F0 4F0 3F1 4F1 3F2 4F2 3F3 4F3 4I0 4W0 3F4 3I0 3W0 4F4 4I1 4W1 3I1 3W1 4I2 4W2 3I2 3W2 4I3 "
      "4W3 3I3 4I4 3I4 3W3 4W4 3W4"}},
    {{"dualpipe_v", 3, 6, 2},
     {"0F0 0F1 0F2 0F3 0F4 5F0 5I0 5W0 5F1 5I1 5W1 5F2 0F5 5B2 5F3 0B0 5B3 5F4 0B1 5B4 5F5 0B2 5B5 "
      "0I3 0W3 0I4 0W4 0I5 0W5",
      "1F0 1F1 1F2 4F0 1F3 4F1 4I0 4W0 4F2 1F4 4B1 4F3 1B0 1F5 4B2 4F4 1B1 4B3 4F5 1B2 4B4 1B3 4I5 "
      "1I4 4W5 1I5 1W4 1W5",
      "2F0 3F0 2F1 3F1 2F2 3F2 2F3 3B0 3F3 2B0 2F4 3B1 3F4 2B1 2F5 3B2 3F5 2B2 3B3 2B3 3B4 2I4 3I5 "
      "2I5 2W4 3W5 2W5"}},
    {{"dualpipe_v", 2, 5, 2},
     {"0F0 0F1 0F2 3F0 3I0 3W0 3F1 0F3 3B1 3F2 0B0 0F4 3B2 3F3 0B1 3B3 3F4 0B2 3B4 0I3 0W3 0I4 0W4",
      "1F0 2F0 1F1 2F1 1F2 2B0 2F2 1B0 1F3 2B1 2F3 1B1 1F4 2B2 2F4 1B2 2B3 1B3 2I4 1I4 2W4 1W4"}}};

}  // namespace

TEST_CASE("tables with two backwards and several chunks are those that PyTorch prints") {
  for (const auto& [spec, stages] : kPrinted) {
    CAPTURE(spec.schedule, spec.stages, spec.micro_batches, spec.chunks);
    const auto table = make_table(spec);
    REQUIRE(table);
    for (int stage = 0; stage < spec.stages; ++stage)
      CHECK(text_of(*table, stage) == stages[static_cast<std::size_t>(stage)]);
  }
}

TEST_CASE("interleaved_zb with one chunk is zb_h1") {
  for (int stages = 1; stages <= 8; ++stages)
    for (int micro_batches = 1; micro_batches <= 20; ++micro_batches) {
      const auto split = make_table({"interleaved_zb", stages, micro_batches});
      if (!split) continue;  // without equal groups
      CAPTURE(stages, micro_batches);
      CHECK(split->ops == make_table({"zb_h1", stages, micro_batches})->ops);
    }
}
