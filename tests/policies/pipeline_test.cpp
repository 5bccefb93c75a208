#include <rapidcheck/catch.h>

#include <algorithm>
#include <set>

#include "policies/pipeline/check.hpp"
#include "policies/pipeline/endless.hpp"
#include "tests/policies/pipeline_tables.hpp"

using namespace leeway;
using namespace leeway::pipeline;
using Catch::Contains;

namespace {

const Schedule& schedule_of(const Spec& spec) {
  const auto found = find_schedule(spec.schedule);
  LW_CHECK(found.has_value(), spec.schedule);
  return **found;
}

CheckedTable checked_of(const Table& table) {
  const auto checked = check(table);
  LW_CHECK(checked.has_value(), checked ? "" : checked.error().text);
  return *checked;
}

/// Any valid spec of `schedule`, with up to 16 stages, 64 micro-batches and 4 chunks.
Spec any_spec(std::string_view schedule, int most_updates = 3) {
  Spec spec{.schedule = std::string(schedule)};
  spec.stages = *rc::gen::inRange(1, 17);
  spec.micro_batches = *rc::gen::inRange(1, 65);
  spec.updates = *rc::gen::inRange(1, most_updates + 1);
  make_valid(spec, 65);
  return spec;
}

void show(const Spec& spec) {
  RC_LOG() << spec.schedule << " stages " << spec.stages << " micro-batches " << spec.micro_batches
           << " chunks " << spec.chunks << " updates " << spec.updates << '\n';
}

bool equal(const Share& a, const Share& b) {
  return a.part * b.whole == b.part * a.whole;
}

Timeline played(const Table& table, const OpCosts& costs, std::int64_t communication = 0) {
  auto timeline = play(table, Costs::equal(table.model_chunks(), costs, communication));
  LW_CHECK(timeline.has_value(), timeline ? "" : timeline.error().text);
  return *timeline;
}

template <class Property>
void for_each_schedule(Property property) {
  for (const auto& entry : catalogue())
    rc::prop(std::string(entry.name), [&] {
      const Spec spec = any_spec(entry.name);
      show(spec);
      property(spec);
    });
}

}  // namespace

TEST_CASE("each schedule of the catalogue has its name, and old names find it") {
  for (const auto& entry : catalogue()) {
    const auto found = find_schedule(entry.name);
    REQUIRE(found);
    CHECK((*found)->name() == entry.name);
    CHECK_FALSE(entry.paper.empty());
  }
  CHECK((*find_schedule("fill_drain"))->name() == "gpipe");
  CHECK((*find_schedule("zero_bubble_h1"))->name() == "zb_h1");
  CHECK(usual_chunks("fill_drain") == 1);
  CHECK(current_name("zero_bubble_h1") == "zb_h1");
  CHECK(current_name("wavefront") == "wavefront");
  CHECK(renaming_note("fill_drain") == "the schedule fill_drain is now called gpipe");
  CHECK(renaming_note("gpipe").empty());
  CHECK_FALSE(find_schedule(""));
  CHECK_THAT(find_schedule("1f1p").error().text, Contains("did you mean \"1f1b\"?"));
}

TEST_CASE("every table passes the checker and matches its closed forms") {
  for_each_schedule([](const Spec& spec) {
    const CheckedTable checked = checked_of(table_of(spec));
    for (int stage = 0; stage < spec.stages; ++stage) {
      const auto& use = checked.stages[static_cast<std::size_t>(stage)];
      const Schedule& schedule = schedule_of(spec);
      RC_ASSERT(use.activations == schedule.peak_activations(spec, stage));
      RC_ASSERT(use.pending_backwards == schedule.peak_pending_backwards(spec, stage));
      RC_ASSERT(use.versions <= schedule.weight_versions(spec, stage));
      RC_ASSERT(use.version_lag <= schedule.version_lag(spec, stage));
    }
  });
}

TEST_CASE("peak activations of the papers: M, min(M, S - s), S + (S - 1) / V chunks") {
  const auto peaks = [](const Spec& spec) {
    std::vector<int> out;
    for (const auto& use : checked_of(table_of(spec)).stages) out.push_back(use.activations);
    return out;
  };
  using Peaks = std::vector<int>;
  CHECK(peaks({"gpipe", 4, 8}) == Peaks{8, 8, 8, 8});
  CHECK(peaks({"1f1b", 4, 8}) == Peaks{4, 3, 2, 1});
  CHECK(peaks({"1f1b", 4, 2}) == Peaks{2, 2, 2, 1});
  CHECK(peaks({"zb_h1", 4, 8}) == Peaks{4, 4, 4, 4});
  CHECK(peaks({"interleaved", 4, 8, 2}) == Peaks{11, 9, 7, 5});  // each of one of two chunks
  CHECK(peaks({"interleaved_zb", 4, 8, 2}) == Peaks{8, 8, 8, 8});
  CHECK(peaks({"zb_v", 4, 8, 2}) == Peaks{8, 8, 8, 8});  // as much as four of 1f1b
  CHECK(peaks({"zb_v", 4, 3, 2}) == Peaks{4, 5, 6, 6});
  CHECK(peaks({"dualpipe_v", 4, 8, 2}) == Peaks{9, 9, 9, 9});
  CHECK(peaks({"weight_stashing", 4, 1, 1, 9}) == Peaks{4, 3, 2, 1});
  CHECK(peaks({"2bw", 4, 4, 1, 3}) == Peaks{4, 3, 2, 1});
}

TEST_CASE(
    "with enough updates, asynchronous schedules keep the number of versions of their closed "
    "form") {
  for (const char* name : {"weight_stashing", "2bw"})
    rc::prop(name, [&] {
      Spec spec = any_spec(name);
      spec.updates = 2 * spec.stages / spec.micro_batches + 2;
      show(spec);
      const CheckedTable checked = checked_of(table_of(spec));
      for (int stage = 0; stage < spec.stages; ++stage) {
        const auto& use = checked.stages[static_cast<std::size_t>(stage)];
        RC_ASSERT(use.versions == schedule_of(spec).weight_versions(spec, stage));
        RC_ASSERT(use.version_lag == schedule_of(spec).version_lag(spec, stage));
      }
    });
}

TEST_CASE("the bubble is (S - 1) / (V * M + S - 1) for any cost of backward") {
  for (const char* name : {"gpipe", "1f1b", "interleaved", "weight_stashing", "2bw"})
    rc::prop(name, [&] {
      Spec spec = any_spec(name);
      if (spec.chunks > 1) spec.micro_batches = spec.stages * *rc::gen::inRange(1, 5);
      show(spec);
      const OpCosts costs{*rc::gen::inRange(1, 9), *rc::gen::inRange(0, 9), *rc::gen::inRange(0, 9),
                          0};
      RC_LOG() << costs.forward << ' ' << costs.backward_input << ' ' << costs.backward_weights
               << '\n';
      const auto bubble = played(table_of(spec), costs).bubble();
      const auto theory = schedule_of(spec).bubble(spec, costs);
      RC_ASSERT(theory.has_value());
      RC_ASSERT(equal(bubble, *theory));
      const bool flushed = !schedule_of(spec).asynchronous();
      const int passes = spec.chunks * spec.micro_batches * (flushed ? 1 : spec.updates);
      RC_ASSERT(equal(bubble, {spec.stages - 1, passes + spec.stages - 1}));
    });
}

TEST_CASE("the bubble of ZB-H1 is the paper's, a third of 1f1b's for equal costs") {
  rc::prop("costs", [&] {
    Spec spec = any_spec("zb_h1");
    spec.micro_batches = std::max(spec.micro_batches, spec.stages);
    show(spec);
    const int weights = *rc::gen::inRange(1, 9);
    const OpCosts costs{weights + *rc::gen::inRange(0, 9), weights + *rc::gen::inRange(0, 9),
                        weights, 0};
    RC_LOG() << costs.forward << ' ' << costs.backward_input << ' ' << weights << '\n';
    const auto theory = schedule_of(spec).bubble(spec, costs);
    RC_ASSERT(theory.has_value());
    RC_ASSERT(equal(played(table_of(spec), costs).bubble(), *theory));
  });
  const Spec spec{"zb_h1", 4, 8};
  const auto idle = [](Spec of, const char* name) {
    of.schedule = name;
    return played(table_of(of), {}).bubble().part;
  };
  CHECK(idle(spec, "1f1b") == 3 * idle(spec, "zb_h1"));
  CHECK_FALSE(schedule_of(spec).bubble(spec, {1, 1, 2, 0}));
  CHECK_FALSE(schedule_of(spec).bubble({"zb_h1", 4, 3}, {}));
}

TEST_CASE("the bubbles of interleaved_zb, zb_v and dualpipe_v match their formulas") {
  const auto matches = [](const char* name, auto fewest, auto any_costs) {
    rc::prop(name, [&] {
      Spec spec = any_spec(name);
      spec.micro_batches = std::max(spec.micro_batches, fewest(spec.stages));
      show(spec);
      const OpCosts costs = any_costs();
      RC_LOG() << costs.forward << ' ' << costs.backward_input << ' ' << costs.backward_weights
               << '\n';
      const auto theory = schedule_of(spec).bubble(spec, costs);
      RC_ASSERT(theory.has_value());
      RC_ASSERT(equal(played(table_of(spec), costs).bubble(), *theory));
    });
  };
  const auto any = [](int least, int most) { return *rc::gen::inRange(least, most + 1); };
  matches(
      "interleaved_zb", [](int stages) { return stages; },
      [&] {
        return OpCosts{any(1, 9), any(1, 9), any(1, 9), 0};
      });
  matches(
      "zb_v", [](int stages) { return 2 * stages - 1; },
      [&] {
        const int inputs = any(1, 9);
        return OpCosts{any(1, inputs), inputs, any(1, inputs), 0};
      });
  matches(
      "dualpipe_v", [](int stages) { return 2 * stages; },
      [&] {
        const int inputs = any(1, 9), weights = any(1, 9);
        return OpCosts{any(inputs, inputs + weights), inputs, weights, 0};
      });
}

TEST_CASE("with equal costs a V idles only while the first activation is on its way") {
  for (const char* name : {"zb_v", "dualpipe_v", "interleaved_zb"})
    for (int stages = 1; stages <= 8; ++stages) {
      CAPTURE(name, stages);
      const Spec spec{name, stages, 2 * stages, 2};
      const auto timeline = played(table_of(spec), {});
      for (int stage = 0; stage < stages; ++stage)
        CHECK(timeline.length - timeline.busy[static_cast<std::size_t>(stage)] == stages - 1);
      // zb_v fills the end of an update with the begin of the next.
      Spec longer = spec;
      longer.updates = 4;
      const Share bubble = played(table_of(longer), {}).bubble();
      const int times = spec.schedule == "zb_v" ? 1 : 4;
      CHECK(equal(bubble, {times * (stages - 1), 4 * 12 * stages + times * (stages - 1)}));
    }
  const auto known = [](const Spec& spec, const OpCosts& costs) {
    return schedule_of(spec).bubble(spec, costs).has_value();
  };
  CHECK(known({"zb_v", 4, 7, 2}, {1, 1, 1, 0}));
  CHECK_FALSE(known({"zb_v", 4, 6, 2}, {1, 1, 1, 0}));
  CHECK_FALSE(known({"zb_v", 4, 8, 2}, {2, 1, 1, 0}));
  CHECK_FALSE(known({"zb_v", 4, 8, 2}, {1, 1, 2, 0}));
  CHECK_FALSE(known({"dualpipe_v", 4, 8, 2}, {1, 2, 1, 0}));
  CHECK_FALSE(known({"dualpipe_v", 4, 8, 2}, {4, 1, 2, 0}));
  CHECK_FALSE(known({"interleaved_zb", 4, 3, 2}, {1, 1, 1, 0}));
}

TEST_CASE("each chunk completes its gradients in order, and after the later chunks of its stage") {
  for_each_schedule([](const Spec& spec) {
    for (const auto& ops : table_of(spec).ops) {
      std::vector<int> done(static_cast<std::size_t>(spec.chunks));
      for (const Op& op : ops) {
        if (!gives_weight_gradient(op.kind)) continue;
        const auto chunk = static_cast<std::size_t>(op.chunk);
        RC_ASSERT(op.micro_batch == done[chunk]++);
        for (std::size_t later = chunk + 1; later < done.size(); ++later)
          RC_ASSERT(done[later] >= done[chunk]);
      }
    }
  });
}

TEST_CASE("gpipe waits for the messages of each link once per direction") {
  rc::prop("communication", [] {
    const Spec spec = any_spec("gpipe", 1);
    show(spec);
    const auto communication = *rc::gen::inRange(0, 9);
    const OpCosts costs{*rc::gen::inRange(1, 9), *rc::gen::inRange(1, 9), *rc::gen::inRange(1, 9),
                        0};
    RC_ASSERT(played(table_of(spec), costs, communication).length ==
              (spec.micro_batches + spec.stages - 1) * costs.of_micro_batch() +
                  2 * (spec.stages - 1) * communication);
  });
}

TEST_CASE("channels need room for one message with one chunk, and for the peak to avoid waits") {
  for_each_schedule([](const Spec& spec) {
    const Table table = table_of(spec);
    const auto bound = least_channel_bound(table);
    RC_ASSERT(bound.has_value());
    if (spec.chunks == 1) RC_ASSERT(*bound == 1);
    if (*bound > 1)
      RC_ASSERT_FALSE(play(table, Costs::equal(table.model_chunks(), {}), *bound - 1));
    RC_ASSERT(check(table, *bound).has_value());
    const Costs costs = Costs::equal(table.model_chunks(), {2, 2, 1, 1}, 1);
    const auto narrow = play(table, costs, *bound), wide = play(table, costs);
    RC_ASSERT(wide->length <= narrow->length);
    const auto enough = play(table, costs, std::max(1, wide->most_in_channel));
    RC_ASSERT(enough.has_value());
    RC_ASSERT(enough->slots == wide->slots);
  });
}

TEST_CASE("a stage with a full channel continues when the neighbour takes a message") {
  const Table table = table_of({"gpipe", 2, 5});
  Costs costs = Costs::equal(2, {1, 1, 0, 0}, 1);
  costs.chunks[1].forward = 5;
  const auto begins = [&](int bound) {
    std::vector<std::int64_t> out;
    const auto timeline = play(table, costs, bound);
    for (std::size_t i = 0; i < 5; ++i) out.push_back(timeline->slots[0][i].begin);
    return out;
  };
  using Begins = std::vector<std::int64_t>;
  // The slow stage begins a forward at 2, 7, 12, ...
  CHECK(begins(kUnboundedChannel) == Begins{0, 1, 2, 3, 4});
  CHECK(begins(3) == Begins{0, 1, 2, 3, 4});
  CHECK(begins(2) == Begins{0, 1, 2, 3, 7});
  CHECK(begins(1) == Begins{0, 1, 2, 7, 12});
  CHECK(play(table, costs)->most_in_channel == 4);
}

TEST_CASE("an endless schedule unrolls to the table of any number of updates") {
  for_each_schedule([](const Spec& given) {
    Spec spec = given;
    const int times = *rc::gen::inRange(1, 5);
    for (int stage = 0; stage < spec.stages; ++stage) {
      const Endless program = endless(spec, stage);
      spec.updates = program.updates + times;
      RC_ASSERT(program.played(spec.micro_batches, times) == schedule_of(spec).stage(spec, stage));
      RC_ASSERT(std::count_if(program.again.begin(), program.again.end(), [](const Op& op) {
                  return op.kind == OpKind::update;
                }) == spec.chunks);
    }
  });
}

TEST_CASE("the error of an invalid spec names the setting and the nearest valid value") {
  const auto refusal = [](const Spec& spec) {
    const auto table = make_table(spec);
    return table ? std::string() : table.error().text;
  };
  CHECK(refusal({"interleaved", 4, 9, 2}) ==
        "interleaved: 9 micro-batches on 4 stages do not make 2 equal groups; give "
        "--micro-batches 8 or 10");
  CHECK(refusal({"interleaved", 4, 6, 2}).empty());
  CHECK(refusal({"interleaved", 4, 3, 2}).empty());
  CHECK_THAT(refusal({"1f1b", 4, 8, 2}), Contains("one chunk") && Contains("--chunks 1"));
  CHECK(refusal({"zb_v", 4, 8}) == "zb_v: needs two chunks per stage, not 1; give --chunks 2");
  CHECK_THAT(refusal({"dualpipe_v", 4, 8, 3}), Contains("not 3; give --chunks 2"));
  CHECK(refusal({"dualpipe_v", 4, 7, 2}) ==
        "dualpipe_v: 7 micro-batches on 4 stages are too few; give --micro-batches 8 or more, or "
        "--stages 3 or fewer");
  CHECK_THAT(refusal({"dualpipe_v", 2, 1, 2}), Contains("give --micro-batches 4 or more"));
  CHECK_THAT(refusal({"interleaved_zb", 4, 9, 2}), Contains("interleaved_zb: 9 micro-batches") &&
                                                       Contains("give --micro-batches 8 or 10"));
  CHECK_THAT(refusal({"2bw", 8, 4}), Contains("give --micro-batches 7, or --stages 5"));
  CHECK(refusal({"2bw", 5, 4}).empty());
  CHECK(refusal({"1f1b", 0, 4}) == "stages: 0 is not allowed; give --stages 1 to 1024");
  CHECK_THAT(refusal({"1f1b", 4, 0}), Contains("give --micro-batches 1 to "));
  CHECK_THAT(refusal({"1f1b", 4, 4, 27}), Contains("give --chunks 1 to 26"));
  CHECK_THAT(refusal({"1f1b", 4, 4, 1, -1}), Contains("give --updates 1 to "));
  CHECK_THAT(refusal({"1f1b", 1024, 65536}), Contains("--micro-batches 5208 at most"));
  CHECK(validate({"1f1b", 1024, 5208}));
  CHECK_THAT(refusal({"1f1b", 1024, 1024, 1, 65536}), Contains("--updates 5 at most"));
  CHECK(validate({"1f1b", 1024, 1024, 1, 5}));
  CHECK_THAT(refusal({"zb_h", 4, 4}), Contains("did you mean \"zb_h1\"?"));
}

TEST_CASE(
    "with fewer micro-batches than 2bw requires, a forward would read a version before its "
    "update") {
  const Spec spec{"2bw", 6, 4, 1, 3};
  REQUIRE_FALSE(make_table(spec));
  Table table = table_of({"2bw", 6, 5, 1, 3});
  table.micro_batches = spec.micro_batches;
  for (int stage = 0; stage < spec.stages; ++stage)
    table.ops[static_cast<std::size_t>(stage)] = schedule_of(spec).stage(spec, stage);
  CHECK_THAT(check(table).error().text, Contains("stage 0") && Contains("reads version 1"));
}
