#include "policies/pipeline/partition.hpp"

#include <rapidcheck/catch.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "core/text.hpp"

using namespace leeway;
using namespace leeway::pipeline;
using Catch::Contains;

namespace {

using Ends = std::vector<int>;

Piece piece_of(int index, std::int64_t ns, std::int64_t output_bytes = 0) {
  Piece piece;
  piece.name = concat(index);
  piece.kind = "linear";
  piece.ns = {ns, ns, ns, 0};
  piece.output_bytes = piece.handed_bytes = output_bytes;
  return piece;
}

PartitionProblem problem_of(const std::vector<std::int64_t>& ns, int stages) {
  PartitionProblem problem;
  for (std::size_t i = 0; i < ns.size(); ++i)
    problem.pieces.push_back(piece_of(static_cast<int>(i), ns[i]));
  problem.spec = {"1f1b", stages, 8};
  problem.devices.resize(static_cast<std::size_t>(stages));
  return problem;
}

PartitionProblem any_problem() {
  PartitionProblem problem;
  const int count = *rc::gen::inRange(1, 8);
  const auto figure = [](int most) { return std::int64_t{*rc::gen::inRange(0, most)}; };
  for (int i = 0; i < count; ++i) {
    Piece piece = piece_of(i, 0, figure(30));
    piece.ns = {figure(20), figure(20), figure(20), 0};
    piece.handed_bytes = figure(30);
    piece.kept_bytes = 10 + figure(30);
    piece.first_bytes = figure(5);
    piece.unread_bytes = figure(10);
    piece.gradient_bytes = figure(10);
    piece.working_bytes = figure(20);
    piece.weight_bytes = figure(40);
    piece.statistic_bytes = figure(5);
    problem.pieces.push_back(piece);
  }
  const int stages = *rc::gen::inRange(1, count + 1);
  problem.spec = {*rc::gen::element<std::string>("gpipe", "1f1b", "zb_h1", "weight_stashing"),
                  stages, *rc::gen::inRange(1, 6)};
  problem.input_bytes = figure(30);
  problem.key_bytes = figure(5);
  problem.label_bytes = figure(5);
  problem.link_bytes_per_second = figure(3) * 500'000'000;
  problem.optimizer_slots = *rc::gen::inRange(0, 3);
  for (int stage = 0; stage < stages; ++stage) {
    problem.devices.push_back({500 * (1 + figure(6)), 50 + figure(700)});
    problem.recompute.push_back(*rc::gen::inRange(0, 3) == 0);
  }
  return problem;
}

/// The memory, pace and bytes of a split, computed naively.
struct Evaluation {
  bool fits = true;
  std::int64_t pace = 0, bytes = 0;
  std::vector<std::int64_t> memory;  // per stage
};

Evaluation evaluate(const PartitionProblem& problem, const Ends& ends) {
  Evaluation result;
  const Schedule& schedule = **find_schedule(problem.spec.schedule);
  Spec endless = problem.spec;
  endless.updates = 20;  // enough to reach the peaks
  int first = 0;
  for (std::size_t stage = 0; stage < ends.size(); ++stage) {
    std::int64_t f = 0, i = 0, w = 0, kept = 0, gradients = 0, working = 0, weights = 0, other = 0;
    for (int p = first; p < ends[stage]; ++p) {
      const Piece& piece = problem.pieces[static_cast<std::size_t>(p)];
      f += piece.ns.forward;
      i += piece.ns.backward_input;
      w += piece.ns.backward_weights;
      kept += piece.kept_bytes + (p == first ? piece.first_bytes : 0);
      gradients += piece.gradient_bytes;
      working = std::max(working, piece.working_bytes);
      weights += piece.weight_bytes;
      other += piece.statistic_bytes;
    }
    const auto& device = problem.devices[stage];
    const auto slowed = [&](std::int64_t ns) {
      return (ns * 1000 + device.speed - 1) / device.speed;
    };
    result.pace = std::max(result.pace, slowed(f) + slowed(i) + slowed(w));
    std::int64_t input = problem.input_bytes;
    if (first > 0) {
      const Piece& before = problem.pieces[static_cast<std::size_t>(first) - 1];
      input = before.handed_bytes;
      result.bytes += before.output_bytes;
      const std::int64_t rate = problem.link_bytes_per_second;
      const std::int64_t there_and_back =
          rate > 0 ? 2 * ((before.output_bytes * 1'000'000'000 + rate - 1) / rate) : 0;
      result.pace = std::max(result.pace, there_and_back);
    }
    const int s = static_cast<int>(stage);
    const bool last = stage + 1 == ends.size();
    if (!last) kept -= problem.pieces[static_cast<std::size_t>(ends[stage]) - 1].unread_bytes;
    const std::int64_t keys_and_labels = problem.key_bytes + (last ? problem.label_bytes : 0);
    const bool again = stage < problem.recompute.size() && problem.recompute[stage];
    const std::int64_t sums = problem.spec.micro_batches > 1 ? 2 : 1;
    const std::int64_t memory =
        (weights + other) * (schedule.weight_versions(endless, s) + sums) +
        weights * problem.optimizer_slots +
        (input + keys_and_labels + (again ? 0 : kept)) * schedule.peak_activations(endless, s) +
        (again ? kept * std::max(1, schedule.peak_pending_backwards(endless, s)) : 0) +
        gradients * schedule.peak_pending_backwards(endless, s) + working;
    result.memory.push_back(memory);
    result.fits = result.fits && memory <= device.memory_bytes;
    first = ends[stage];
  }
  return result;
}

/// Visits all splits of `pieces` pieces into `chunks` chunks.
void for_each_split(int pieces, int chunks, Ends& ends,
                    const std::function<void(const Ends&)>& visit) {
  const int from = ends.empty() ? 1 : ends.back() + 1;
  if (chunks == 1) {
    ends.push_back(pieces);
    visit(ends);
    ends.pop_back();
    return;
  }
  for (int end = from; end <= pieces - chunks + 1; ++end) {
    ends.push_back(end);
    for_each_split(pieces, chunks - 1, ends, visit);
    ends.pop_back();
  }
}

std::optional<Evaluation> best_of_all(const PartitionProblem& problem) {
  std::optional<Evaluation> best;
  Ends ends;
  for_each_split(static_cast<int>(problem.pieces.size()), problem.spec.stages, ends,
                 [&](const Ends& split) {
                   const Evaluation one = evaluate(problem, split);
                   if (!one.fits) return;
                   if (!best || std::tie(one.pace, one.bytes) < std::tie(best->pace, best->bytes))
                     best = one;
                 });
  return best;
}

Ends ends_of(const Partition& partition) {
  Ends ends;
  for (const PieceRange& chunk : partition.chunks) ends.push_back(chunk.end);
  return ends;
}

std::string refusal(const PartitionProblem& problem) {
  const auto partition = best_partition(problem);
  return partition ? "" : partition.error().text;
}

}  // namespace

TEST_CASE(
    "the search finds the fastest split that fits, and among equals the one with fewest bytes") {
  rc::prop("any model", [] {
    const PartitionProblem problem = any_problem();
    const auto best = best_of_all(problem);
    const auto found = best_partition(problem);
    RC_CLASSIFY(best.has_value());
    RC_ASSERT(found.has_value() == best.has_value());
    if (!found) return;
    const Evaluation naive = evaluate(problem, ends_of(*found));
    RC_ASSERT(naive.fits);
    RC_ASSERT(naive.pace == best->pace);
    RC_ASSERT(naive.bytes == best->bytes);
    RC_ASSERT(found->slowest_ns == best->pace);
    RC_ASSERT(found->crossing_bytes == best->bytes);
    for (std::size_t stage = 0; stage < naive.memory.size(); ++stage)
      RC_ASSERT(found->memory[stage].total() == naive.memory[stage]);
  });
}

TEST_CASE("the remedy of each error works") {
  rc::prop("any model", [] {
    const PartitionProblem problem = any_problem();
    const std::string text = refusal(problem);
    if (text.empty()) return;
    RC_LOG() << text << '\n';
    const auto after = [&](const std::string& flag) -> std::optional<std::int64_t> {
      const auto at = text.find(flag);
      if (at == std::string::npos) return std::nullopt;
      return std::stoll(text.substr(at + flag.size()));
    };
    const auto memory = after("--memory ");
    RC_ASSERT(memory.has_value());
    PartitionProblem other = problem;
    for (auto& device : other.devices) device.memory_bytes = *memory;
    RC_ASSERT(best_of_all(other).has_value());
    for (auto& device : other.devices) device.memory_bytes = *memory - 1;
    RC_ASSERT(!best_of_all(other));  // the nearest
    if (const auto stages = after("--stages ")) {
      other = problem;
      other.spec.stages = static_cast<int>(*stages);
      other.devices.resize(static_cast<std::size_t>(*stages), problem.devices.front());
      RC_ASSERT(best_of_all(other).has_value());
    }
    if (text.find("--schedule 1f1b") != std::string::npos) {
      other = problem;
      other.spec.schedule = "1f1b";
      RC_ASSERT(best_of_all(other).has_value());
    }
  });
}

TEST_CASE("equal layers are divided equally, or in proportion to the speed of devices") {
  const auto equal = best_partition(problem_of({5, 5, 5, 5, 5, 5}, 3));
  REQUIRE(equal);
  CHECK(ends_of(*equal) == Ends{2, 4, 6});
  CHECK(equal->slowest_ns == 30);
  CHECK(ends_of(*best_partition(problem_of({5, 5, 5}, 2))) ==
        Ends{1, 3});  // the shorter last chunk begins first
  PartitionProblem unequal = problem_of({5, 5, 5, 5, 5, 5}, 2);
  unequal.devices = {{1000}, {2000}};
  const auto found = best_partition(unequal);
  REQUIRE(found);
  CHECK(ends_of(*found) == Ends{2, 6});
  CHECK(found->slowest_ns == 30);
  CHECK(found->costs().chunks[1] == OpCosts{10, 10, 10, 0});
}

TEST_CASE("a split avoids links that would be slower than the stages") {
  PartitionProblem problem = problem_of({10, 10, 10, 10}, 2);
  for (auto& piece : problem.pieces) piece.output_bytes = 100;
  problem.pieces[2].output_bytes = 10;
  CHECK(ends_of(*best_partition(problem)) == Ends{2, 4});
  problem.link_bytes_per_second = 1'000'000'000;
  const auto found = best_partition(problem);
  CHECK(ends_of(*found) == Ends{3, 4});
  CHECK(found->slowest == 0);
  CHECK_FALSE(found->by_link);
  CHECK(found->costs().links == std::vector<std::int64_t>{10});
  const auto by_hand = partition_at(problem, {2, 4});
  CHECK(by_hand->by_link);
  CHECK(by_hand->slowest_ns == 200);
}

TEST_CASE(
    "predicted memory is divided into weights, gradients, optimizer, activations and working "
    "memory") {
  PartitionProblem problem = problem_of({1, 1}, 2);
  for (auto& piece : problem.pieces) {
    piece.weight_bytes = 1000;
    piece.statistic_bytes = 7;
    piece.kept_bytes = 100;
    piece.output_bytes = piece.handed_bytes = 10;
    piece.gradient_bytes = 30;
    piece.working_bytes = 5;
  }
  problem.input_bytes = 3;
  problem.optimizer_slots = 2;
  const auto memory = [&](const char* schedule) {
    problem.spec.schedule = schedule;
    return best_partition(problem)->memory;
  };
  CHECK(memory("gpipe")[0].activations == 8 * 103);
  CHECK(memory("1f1b")[0].activations == 2 * 103);
  CHECK(memory("1f1b")[1].activations == 110);
  CHECK(memory("zb_h1")[1].activations == 2 * 110 + 2 * 30);
  CHECK(memory("1f1b")[0].weights == 1007);
  CHECK(memory("1f1b")[0].gradients == 2 * 1007);  // the sum, and a micro-batch
  CHECK(memory("2bw")[0].weights == 2 * 1007);
  problem.spec.micro_batches = 1;
  CHECK(memory("weight_stashing")[0].weights == 2 * 1007);
  CHECK(memory("weight_stashing")[1].weights == 1007);
  // Also with one micro-batch an update: the pipeline is not emptied for the next one.
  CHECK(memory("weight_stashing")[0].activations == 2 * 103);
  const StageMemory first = memory("1f1b")[0];
  CHECK(first.gradients == 1007);
  CHECK(first.optimizer == 2000);
  CHECK(first.working == 5);
  CHECK(first.total() == 1007 + 1007 + 2000 + 103 + 5);
}

TEST_CASE("predicted memory includes keys and labels, and follows unread outputs and recompute") {
  PartitionProblem problem = problem_of({1, 1}, 2);
  for (auto& piece : problem.pieces) {
    piece.kept_bytes = 100;
    piece.handed_bytes = 10;
    piece.unread_bytes = 20;
  }
  problem.input_bytes = 3;
  problem.key_bytes = 4;
  problem.label_bytes = 5;
  const auto memory = [&] { return best_partition(problem)->memory; };
  CHECK(memory()[0].activations == 2 * (3 + 4 + 80));
  CHECK(memory()[1].activations == 10 + 4 + 5 + 100);
  problem.recompute = {true, true};
  CHECK(memory()[0].activations == 2 * (3 + 4) + 80);
  CHECK(memory()[1].activations == 10 + 4 + 5 + 100);
}

TEST_CASE("in a V, no link leads out of the last stage, and both ways share a link") {
  PartitionProblem problem = problem_of({4, 4, 4, 4}, 2);
  for (auto& piece : problem.pieces) piece.output_bytes = 100;
  problem.link_bytes_per_second = 1'000'000'000;
  problem.spec = {"zb_v", 2, 4, 2};
  const auto found = best_partition(problem);
  REQUIRE(found);
  CHECK(ends_of(*found) == Ends{1, 2, 3, 4});
  CHECK(found->chunks[0].link_bytes == 100);
  CHECK(found->chunks[1].link_bytes == 0);
  CHECK(found->chunks[2].link_bytes == 100);
  CHECK(found->crossing_bytes == 200);
  CHECK((found->by_link && found->slowest == 0));
  CHECK(found->slowest_ns == 400);  // an activation and a gradient of each of two chunks
}

TEST_CASE("in a V, a stage has the memory of a chunk from each half of the model") {
  PartitionProblem problem = problem_of({4, 4, 4, 4, 4, 4}, 3);
  for (std::size_t i = 0; i < 6; ++i) problem.pieces[i].weight_bytes = std::int64_t{1} << (4 * i);
  problem.spec = {"dualpipe_v", 3, 6, 2};
  const auto found = best_partition(problem);
  REQUIRE(found);
  CHECK(found->memory[0].weights == 0x100001);
  CHECK(found->memory[1].weights == 0x010010);
  CHECK(found->memory[2].weights == 0x001100);
}

TEST_CASE("chunks alternate between stages, and a stage has the memory of all of its chunks") {
  PartitionProblem problem = problem_of({4, 4, 4, 4, 4, 4, 4, 4}, 2);
  for (auto& piece : problem.pieces) piece.weight_bytes = 10;
  problem.spec = {"interleaved", 2, 4, 2};
  const auto found = best_partition(problem);
  REQUIRE(found);
  CHECK(ends_of(*found) == Ends{2, 4, 6, 8});
  CHECK(found->memory[0].weights == 40);
  CHECK(found->memory[0].gradients == 80);
  CHECK(found->slowest_ns == 4 * 3 * 4);  // of both chunks
  problem.devices.assign(2, {kUnitSpeed, 119});
  CHECK_THAT(refusal(problem),
             Contains("stage 0 (layers 0-1 and its other chunks) needs 120 bytes") &&
                 Contains("--memory 120"));
}

TEST_CASE("too many stages or chunks are refused with the nearest number that works") {
  CHECK(refusal(problem_of({1, 1, 1}, 4)) ==
        "stages: 4 are too many for a model that can be split into 3 pieces; give --stages 3");
  PartitionProblem problem = problem_of({1, 1, 1}, 2);
  problem.spec = {"interleaved", 2, 4, 2};
  CHECK_THAT(refusal(problem),
             Contains("chunks: 2 on each of 2 stages") && Contains("give --chunks 1"));
  problem.spec.micro_batches = 5;
  CHECK_THAT(refusal(problem), Contains("give --micro-batches 4 or 6"));
  // One chunk per stage is no V.
  problem = problem_of({1, 1, 1, 1, 1}, 3);
  for (const char* schedule : {"zb_v", "dualpipe_v"}) {
    problem.spec = {schedule, 3, 8, 2};
    CHECK_THAT(refusal(problem),
               Contains("chunks: 2 on each of 3 stages") && Contains("--stages 2"));
  }
  problem = problem_of({1}, 1);
  problem.spec = {"zb_v", 1, 8, 2};
  CHECK(
      refusal(problem) ==
      "chunks: 2 on each of 1 stage are too many for a model that can be split into 1 piece; give "
      "--schedule 1f1b, and --stages 1");
}

TEST_CASE("an error names the stage that does not fit, and settings that fit") {
  PartitionProblem problem = problem_of({1, 1, 1, 1}, 2);
  for (auto& piece : problem.pieces) piece.kept_bytes = 100;
  problem.spec.schedule = "gpipe";
  problem.devices.assign(2, {kUnitSpeed, 500});
  CHECK(refusal(problem) ==
        "stage 0 (layers 0-1) needs 1600 bytes with gpipe, and its device has 500 bytes; no "
        "other "
        "split fits; give --schedule 1f1b, or --memory 1600");
  problem.devices.assign(2, {kUnitSpeed, 800});
  CHECK_THAT(refusal(problem), Contains("--stages 4"));
  // Large sizes print in larger units, and the suggested memory is enough.
  PartitionProblem large = problem;
  for (auto& piece : large.pieces) piece.kept_bytes = 1'000'001;
  CHECK_THAT(refusal(large), Contains("needs 16001 kB with") && Contains("--memory 16001kB"));
  large.devices.assign(2, {kUnitSpeed, 16'001'000});
  CHECK(best_partition(large).has_value());
  problem.spec.schedule = "1f1b";
  problem.devices.assign(2, {kUnitSpeed, 300});
  const auto by_hand = partition_at(problem, {2, 4});
  REQUIRE_FALSE(by_hand);
  CHECK_THAT(by_hand.error().text,
             Contains("stage 0 (layers 0-1) needs 400 bytes") && Contains("the split 0,1-3 fits"));
}

TEST_CASE("a split names layers by number or by kind, and prints as it reads") {
  std::vector<Piece> pieces;
  const char* kinds[] = {"flatten", "linear", "relu", "linear"};
  for (int i = 0; i < 4; ++i) {
    pieces.push_back(piece_of(i, 1));
    pieces.back().kind = kinds[i];
  }
  CHECK(*parse_split("0-1,2-3", pieces) == Ends{2, 4});
  CHECK(*parse_split("flatten,1,relu-3", pieces) == Ends{1, 2, 4});
  CHECK(*parse_split("0-3", pieces) == Ends{4});
  const auto wrong = [&](const std::string& text) {
    return parse_split(text, pieces).error().text;
  };
  CHECK(wrong("0,2-3") == "the split \"0,2-3\": layer 1 is in no chunk; begin \"2-3\" with it");
  CHECK_THAT(wrong("0-1,1-3"), Contains("layer 1 is in two chunks; begin \"1-3\" with 2"));
  CHECK_THAT(wrong("0-3,3"), Contains("layer 3 is in two chunks; remove \"3\""));
  CHECK_THAT(wrong("0-1,2"), Contains("layer 3 is in no chunk; end with 3"));
  CHECK_THAT(wrong("0-linear,3"), Contains("several layers of the kind linear; give one of 1, 3"));
  CHECK_THAT(wrong("0-7"), Contains("no layer \"7\"") && Contains("it has 0, 1, 2, 3"));
  CHECK_THAT(wrong("1-0,2-3"), Contains("ends before it begins; give 0-1"));
  CHECK_THAT(wrong(""), Contains("no layer \"\""));
  CHECK_THAT(wrong("0-1,,2-3"), Contains("no layer \"\""));
  rc::prop("any split", [] {
    PartitionProblem problem = any_problem();
    for (auto& device : problem.devices) device.memory_bytes = kNoLimit;
    const auto partition = best_partition(problem);
    RC_ASSERT(partition.has_value());
    RC_ASSERT(*parse_split(text_of(*partition, problem.pieces), problem.pieces) ==
              ends_of(*partition));
    RC_ASSERT(partition_at(problem, ends_of(*partition))->chunks == partition->chunks);
  });
  const auto few = partition_at(problem_of({1, 1, 1, 1}, 2), {1, 2, 4});
  REQUIRE_FALSE(few);
  CHECK_THAT(few.error().text, Contains("3 chunks") && Contains("or --stages 3"));
}
