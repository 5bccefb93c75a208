// The checker of pipeline tables refuses tables with one error.
#include <rapidcheck/catch.h>

#include <algorithm>

#include "policies/pipeline/check.hpp"
#include "tests/policies/pipeline_tables.hpp"

using namespace leeway;
using namespace leeway::pipeline;
using Catch::Contains;

namespace {

using Ops = std::vector<Op>;

/// The checker's error for a table; empty if the table is valid.
std::string refusal(const Table& table) {
  const auto checked = check(table);
  return checked ? "" : checked.error().text;
}

Spec small_spec(std::string_view schedule) {
  Spec spec{.schedule = std::string(schedule)};
  spec.stages = *rc::gen::inRange(1, 9);
  spec.micro_batches = *rc::gen::inRange(1, 17);
  spec.updates = *rc::gen::inRange(1, 4);
  make_valid(spec, 25);
  return spec;
}

/// Changes one operation of one stage, for each schedule and any size. Requires that each changed
/// table is refused with an error that contains `expected`.
template <class Mutate>
void all_are_caught(const std::string& expected, Mutate mutate) {
  for (const auto& entry : catalogue())
    rc::prop(std::string(entry.name), [&] {
      const Spec spec = small_spec(entry.name);
      Table table = table_of(spec);
      RC_ASSERT(refusal(table) == "");
      const int stage = *rc::gen::inRange(0, spec.stages);
      Ops& ops = table.ops[static_cast<std::size_t>(stage)];
      const auto at = *rc::gen::inRange<std::size_t>(0, ops.size());
      RC_LOG() << entry.name << " stages " << spec.stages << " micro-batches " << spec.micro_batches
               << " chunks " << spec.chunks << " updates " << spec.updates << "; stage " << stage
               << " operation " << at << '\n';
      if (!mutate(ops, at)) return;
      const std::string text = refusal(table);
      RC_LOG() << text << '\n';
      RC_ASSERT(!text.empty());
      RC_ASSERT(text.find(expected) != std::string::npos);
    });
}

std::ptrdiff_t signed_of(std::size_t i) {
  return static_cast<std::ptrdiff_t>(i);
}

/// Whether `a`, which precedes `b` on a stage, must not come after it.
bool must_precede(const Op& a, const Op& b) {
  if (a.chunk != b.chunk) return false;
  if (a.kind == OpKind::update || b.kind == OpKind::update)
    return gives_weight_gradient(a.kind) || gives_weight_gradient(b.kind) || a.kind == b.kind ||
           (a.kind == OpKind::update && b.version >= a.version);
  return a.micro_batch == b.micro_batch;
}

}  // namespace

TEST_CASE("a table that lacks an operation is refused") {
  all_are_caught("stage ", [](Ops& ops, std::size_t at) {
    ops.erase(ops.begin() + signed_of(at));
    return true;
  });
}

TEST_CASE("a table with a repeated operation is refused") {
  all_are_caught("stage ", [](Ops& ops, std::size_t at) {
    const Op again = ops[at];
    const auto place = *rc::gen::inRange<std::size_t>(0, ops.size() + 1);
    ops.insert(ops.begin() + signed_of(place), again);
    return true;
  });
}

TEST_CASE("a table with an operation before another that it depends on is refused") {
  all_are_caught("stage ", [](Ops& ops, std::size_t at) {
    for (std::size_t other = at + 1; other < ops.size(); ++other) {
      if (!must_precede(ops[at], ops[other])) continue;
      const Op moved = ops[other];
      ops.erase(ops.begin() + signed_of(other));
      ops.insert(ops.begin() + signed_of(at), moved);
      return true;
    }
    return false;
  });
}

TEST_CASE("a table with a wrong version is refused") {
  all_are_caught("version", [](Ops& ops, std::size_t at) {
    ops[at].version += *rc::gen::element(-1, 1, 5);
    return true;
  });
}

TEST_CASE("a table that reads weights older than its version lag is refused") {
  for (const auto& entry : catalogue())
    rc::prop(std::string(entry.name), [&] {
      Spec spec = small_spec(entry.name);
      spec.updates = 9;  // more than the version lag of up to eight stages
      Table table = table_of(spec);
      const auto stage = *rc::gen::inRange<std::size_t>(0, table.ops.size());
      const int most = table.version_lag[stage];
      const int update = *rc::gen::inRange(most + 1, spec.updates);
      const int micro_batch =
          update * spec.micro_batches + *rc::gen::inRange(0, spec.micro_batches);
      const int chunk = *rc::gen::inRange(0, spec.chunks);
      for (Op& op : table.ops[stage])
        if (op.kind != OpKind::update && op.micro_batch == micro_batch && op.chunk == chunk)
          op.version = update - most - 1;
      RC_ASSERT(refusal(table).find("promises at most") != std::string::npos);
    });
  Table table = table_of({"1f1b", 3, 2, 1, 2});
  for (auto& op : table.ops[1])
    if (op.micro_batch == 2 && op.kind != OpKind::update) op.version = 0;
  CHECK_THAT(refusal(table), Contains("stage 1") && Contains("promises at most 0") &&
                                 Contains("let it read version 1"));
}

TEST_CASE("a table with an operation of another micro-batch, chunk or kind is refused") {
  all_are_caught("stage ", [](Ops& ops, std::size_t at) {
    const Op before = ops[at];
    Op& op = ops[at];
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        op.micro_batch += *rc::gen::element(-1, 1, 1000);
        break;
      case 1:
        op.chunk += *rc::gen::element(-1, 1);
        break;
      case 2:
        op.kind = *rc::gen::element(OpKind::forward, OpKind::backward_input,
                                    OpKind::backward_weights, OpKind::backward, OpKind::update);
        break;
      default:
        op.kind = op.kind == OpKind::backward ? OpKind::backward_input : OpKind::backward;
    }
    return !(op == before);
  });
}

TEST_CASE("an update after a gradient of the next update is refused") {
  Table table = table_of({"2bw", 2, 2, 1, 3});
  Ops& ops = table.ops[1];
  const auto update =
      std::find_if(ops.begin(), ops.end(), [](const Op& op) { return op.kind == OpKind::update; });
  std::rotate(update, update + 1, update + 3);  // behind the next forward and backward
  CHECK_THAT(refusal(table), Contains("stage 1") && Contains("gives gradients of update 1"));
}

TEST_CASE("an update before all of its gradients is refused") {
  Table table = table_of({"zb_h1", 2, 2});
  Ops& ops = table.ops[0];
  REQUIRE(ops.back().kind == OpKind::update);
  std::swap(ops.back(), ops[ops.size() - 2]);
  CHECK_THAT(refusal(table), Contains("before the gradient of micro-batch 1"));
  ops.pop_back();
  CHECK_THAT(refusal(table), Contains("before the gradient of micro-batch 1") &&
                                 Contains("add the gradient if it is missing"));
  std::erase_if(ops, [](const Op& op) { return op.micro_batch == 1; });
  CHECK_THAT(refusal(table), Contains("stage 0: the update after micro-batch 1 of chunk 0 is "
                                      "missing; add it"));
}

TEST_CASE("stages that deadlock are refused, and the error names the operation") {
  // The order of each stage is valid, but stage 0 waits for a gradient before it has sent the
  // activation that stage 1 needs first.
  Table table = table_of({"1f1b", 2, 2});
  auto& first = table.ops[0];
  REQUIRE(first[1].kind == OpKind::forward);
  REQUIRE(first[2].kind == OpKind::backward);
  std::swap(first[1], first[2]);
  CHECK(refusal(table).empty());  // slower, but no deadlock
  auto& second = table.ops[1];
  REQUIRE(second[1].kind == OpKind::backward);
  REQUIRE(second[2].kind == OpKind::forward);
  std::swap(second[1], second[2]);
  CHECK_THAT(refusal(table), Contains("deadlocks") && Contains("B0"));
}

TEST_CASE("a table that deadlocks with the given channel bound is refused") {
  // Stage 0 sends four activations before it takes a gradient; stage 1 takes them in reverse.
  Table table = table_of({"gpipe", 2, 4});
  std::reverse(table.ops[1].begin(), table.ops[1].begin() + 4);
  const auto checked = check(table);
  REQUIRE(checked);
  CHECK(checked->channel_bound == 4);
  CHECK_FALSE(check(table, 3));
  CHECK_THAT(check(table, 3).error().text, Contains("the channel holds 3"));
}

TEST_CASE("a table that lacks a stage is refused") {
  Table table = table_of({"1f1b", 2, 2});
  table.ops.pop_back();
  CHECK_THAT(refusal(table), Contains("give one of each per stage"));
}
