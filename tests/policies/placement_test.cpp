// Placement: which stage has which chunk of the model.
#include "policies/pipeline/placement.hpp"

#include <rapidcheck/catch.h>

#include <algorithm>
#include <vector>

#include "tests/policies/pipeline_tables.hpp"

using namespace leeway;
using namespace leeway::pipeline;

namespace {

using Form = Placement::Shape;

/// The stage of each model chunk.
std::vector<int> stages_of(const Placement& placement, int model_chunks) {
  std::vector<int> stages;
  for (int chunk = 0; chunk < model_chunks; ++chunk) stages.push_back(placement.stage_of(chunk));
  return stages;
}

std::vector<int> links_of(const Placement& placement, int model_chunks) {
  std::vector<int> links;
  for (int chunk = 0; chunk + 1 < model_chunks; ++chunk)
    links.push_back(placement.link_after(chunk));
  return links;
}

}  // namespace

TEST_CASE("chunks go round all stages, or back and forth") {
  using Numbers = std::vector<int>;
  const Placement round{Form::round_robin, 3}, v{Form::v, 3};
  CHECK(stages_of(round, 6) == Numbers{0, 1, 2, 0, 1, 2});
  CHECK(stages_of(v, 6) == Numbers{0, 1, 2, 2, 1, 0});
  CHECK(links_of(round, 6) == Numbers{0, 1, 2, 0, 1});
  CHECK(links_of(v, 6) == Numbers{0, 1, 2, 1, 0});  // link 2 is within stage 2
  CHECK(v.stays(2));
  CHECK_FALSE((v.stays(1) || v.stays(3) || round.stays(2)));
  CHECK((v.runs_back(1) && !v.runs_back(0) && !round.runs_back(1)));
}

TEST_CASE("each model chunk has one place, and neighbours are on one stage or linked stages") {
  rc::prop("placements", [] {
    const Placement placement{*rc::gen::element(Form::round_robin, Form::v),
                              *rc::gen::inRange(1, 17)};
    const int chunks = *rc::gen::inRange(1, 5), stages = placement.stages;
    for (int stage = 0; stage < stages; ++stage)
      for (int chunk = 0; chunk < chunks; ++chunk) {
        const int model_chunk = placement.model_chunk(stage, chunk);
        RC_ASSERT(model_chunk >= 0 && model_chunk < stages * chunks);
        RC_ASSERT(placement.stage_of(model_chunk) == stage);
        RC_ASSERT(placement.chunk_of(model_chunk) == chunk);
      }
    for (int model_chunk = 0; model_chunk + 1 < stages * chunks; ++model_chunk) {
      if (placement.stays(model_chunk)) continue;
      const int a = placement.stage_of(model_chunk), b = placement.stage_of(model_chunk + 1);
      const int link = placement.link_after(model_chunk);
      RC_ASSERT(link == a || link == b);
      RC_ASSERT((link + 1) % stages == (link == a ? b : a));
    }
  });
}

TEST_CASE("a table has the placement of its schedule") {
  for (const auto& entry : catalogue()) {
    const bool v = entry.name == "zb_v" || entry.name == "dualpipe_v";
    Spec spec{std::string(entry.name), 3, 6, entry.chunks};
    CHECK(table_of(spec).shape == (v ? Form::v : Form::round_robin));
    CHECK(placement_of(spec) == Placement{v ? Form::v : Form::round_robin, 3});
  }
}
