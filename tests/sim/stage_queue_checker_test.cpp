// StageQueueChecker accepts as many messages as each schedule allows, and reports one more.
#include <catch2/catch.hpp>
#include <functional>

#include "core/text.hpp"
#include "sim/checkers/stage_queues.hpp"
#include "tests/sim/seen.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::sim {
namespace {

using Operation = event::StageComputed::Operation;

/// A pipeline, with short names for its messages and events.
class QueueStory {
 public:
  QueueStory(const std::string& schedule, std::uint32_t stages, std::uint32_t micro_batches,
             std::uint32_t chunks = 1)
      : micro_batches_(micro_batches) {
    Plan plan = test::tiny_plan();
    plan.model.insert(plan.model.begin(), {plan::Linear{4}, plan::Tanh{}, plan::Linear{4}});
    plan.workers = plan.pipeline.stages = stages;
    plan.pipeline.schedule = schedule;
    plan.pipeline.chunks = chunks;
    plan.micro_batches = plan.batch = micro_batches;
    plan.consistency = plan::Ssp{4};
    const auto job = test::job_of(plan);
    placement_ = job->stages->placement();
    checker_ = std::make_unique<StageQueueChecker>(job);
    for (std::uint32_t stage = 0; stage < stages; ++stage) starts(stage);
  }

  void starts(std::uint32_t stage) {
    checker_->on_delivered({}, letter(kScheduler, worker(stage), msg::Start{}));
  }
  /// Stage `to` receives the number of samples from the previous stage.
  void announces(std::uint32_t to, std::int64_t iteration, std::int64_t samples = 1) {
    sends(to - 1, to, msg::MiniBatch{.iteration = Iteration(iteration), .end = samples});
  }
  /// Micro-batches are numbered continuously over all iterations.
  void activation(std::uint32_t chunk, std::int64_t micro_batch) {
    sends(chunk - 1, chunk, msg::Activation{iteration(micro_batch), in(micro_batch), chunk});
  }
  void gradient(std::uint32_t chunk, std::int64_t micro_batch) {
    sends(chunk + 1, chunk, msg::OutputGradient{iteration(micro_batch), in(micro_batch), chunk});
  }
  void begins(std::uint32_t stage, std::int64_t iteration) {
    checker_->on_event({}, worker(stage),
                       event::StepStarted{WorkerId(stage), Iteration(iteration), 1});
  }
  void forward(std::uint32_t chunk, std::int64_t micro_batch) {
    computes(Operation::forward, chunk, micro_batch);
  }
  void backward(std::uint32_t chunk, std::int64_t micro_batch) {
    computes(Operation::backward_inputs, chunk, micro_batch);
  }

  Session session{1};

 private:
  /// The stage of a chunk; of a stage's number, that stage.
  Address worker(std::uint32_t chunk) const {
    return address_of(
        WorkerId(static_cast<std::uint32_t>(placement_.stage_of(static_cast<int>(chunk)))));
  }
  Letter letter(Address from, Address to, Body body) const {
    return {from, to, encode({.session = session, .body = std::move(body)})};
  }
  template <class T>
  void sends(std::uint32_t from, std::uint32_t to, T body) {
    if constexpr (requires { body.tensor; }) body.tensor = {DType::f32, {1}, Blob::floats(1)};
    checker_->on_sent({}, letter(worker(from), worker(to), std::move(body)));
  }
  void computes(Operation operation, std::uint32_t chunk, std::int64_t micro_batch) {
    checker_->on_event({}, worker(chunk),
                       event::StageComputed{.worker = WorkerId(worker(chunk).index),
                                            .operation = operation,
                                            .iteration = iteration(micro_batch),
                                            .chunk = chunk,
                                            .micro_batch = in(micro_batch)});
  }
  Iteration iteration(std::int64_t micro_batch) const {
    return Iteration(micro_batch / micro_batches_);
  }
  std::uint32_t in(std::int64_t micro_batch) const {
    return static_cast<std::uint32_t>(micro_batch % micro_batches_);
  }

  std::uint32_t micro_batches_;
  pipeline::Placement placement_;
  std::unique_ptr<StageQueueChecker> checker_;
};

/// The number of actions before the first violation, and its observation.
std::pair<int, std::string> first_violation(const std::function<void(int)>& action) {
  for (int i = 0; i < 100; ++i)
    if (const std::string why = seen([&] { action(i); }); !why.empty()) return {i, why};
  return {100, ""};
}

struct Case {
  const char* schedule;
  std::uint32_t stages, micro_batches;
  int activations;  // limit for stage 0
  int announced;    // limit of iterations for stage 1
};

const std::vector<Case> kCases = {{"1f1b", 3, 6, 3, 3},
                                  {"1f1b", 3, 2, 2, 3},
                                  {"gpipe", 3, 6, 6, 3},
                                  {"zb_h1", 3, 6, 3, 3},
                                  {"2bw", 3, 2, 3, 4},
                                  {"weight_stashing", 4, 1, 4, 6},
                                  {"weight_stashing", 4, 2, 4, 5},
                                  {"2bw", 4, 6, 4, 4}};

}  // namespace

TEST_CASE("a stage sends at most as many activations as its schedule keeps") {
  for (const Case& entry : kCases) {
    INFO(entry.schedule << ", " << entry.stages << " stages, " << entry.micro_batches);
    QueueStory story(entry.schedule, entry.stages, entry.micro_batches);
    for (int m = 0; m < 5; ++m) {  // computed ones do not count
      story.activation(1, m);
      story.forward(1, m);
    }
    CHECK(first_violation([&](int i) { story.activation(1, 5 + i); }) ==
          std::pair(entry.activations, concat(entry.activations + 1,
                                              " activations sent but not computed; the schedule "
                                              "allows ",
                                              entry.activations)));
  }
}

TEST_CASE("the activations of all chunks count together") {
  QueueStory story("interleaved", 2, 4, 2);
  // Stage 0 keeps five activations of its two chunks.
  for (int m = 0; m < 3; ++m) story.activation(1, m);
  CHECK(first_violation([&](int i) { story.activation(3, i); }).first == 2);
}

TEST_CASE("in a V, a stage's gradients count for the stage that they are sent to") {
  // Each of three stages keeps six activations of its two chunks.
  const auto after_last_stage = [](int count) {
    QueueStory story("zb_v", 3, 6, 2);
    for (int m = 0; m < count; ++m) story.gradient(3, m);  // from stage 1 to stage 2
    return first_violation([&](int i) { story.gradient(0, i); });
  };
  CHECK(after_last_stage(0) == after_last_stage(5));
  CHECK(after_last_stage(5).first == 6);
  QueueStory story("zb_v", 3, 6, 2);
  for (int m = 0; m < 6; ++m) story.activation(4, m);  // from stage 2 to stage 1
  story.forward(4, 0);
  CHECK(first_violation([&](int i) { story.activation(4, 6 + i); }).first == 1);
}

TEST_CASE("a stage receives at most as many gradients as it keeps micro-batches") {
  QueueStory story("1f1b", 3, 6);
  story.gradient(1, 0);
  story.backward(1, 0);
  CHECK(first_violation([&](int i) { story.gradient(1, 1 + i); }) ==
        std::pair(2, std::string("3 gradients sent but not computed; the schedule allows 2")));
}

TEST_CASE("a first stage leases one iteration ahead, and the next may also have those in flight") {
  for (const Case& entry : kCases) {
    INFO(entry.schedule << ", " << entry.stages << " stages, " << entry.micro_batches);
    QueueStory story(entry.schedule, entry.stages, entry.micro_batches);
    story.announces(1, 0);
    story.begins(0, 0);
    story.begins(1, 0);
    story.announces(1, 1);
    story.announces(1, 2);
    story.announces(1, 3, 0);  // without samples, so it occupies no memory
    CHECK(seen([&] { story.announces(1, 4); }) ==
          "3 iterations leased but not started; the schedule allows 2");

    QueueStory slow(entry.schedule, entry.stages, entry.micro_batches);
    const auto [announced, why] = first_violation([&](int i) {
      slow.announces(1, i);
      slow.begins(0, i);
    });
    CHECK(announced == entry.announced);
    CHECK(why == concat(entry.announced + 1,
                        " iterations announced but not started; the schedule allows ",
                        entry.announced));
  }
}

TEST_CASE("messages of an earlier session do not count") {
  QueueStory story("1f1b", 2, 4);
  story.activation(1, 0);
  story.activation(1, 1);
  story.session = Session(2);
  story.starts(0);
  story.activation(1, 0);
  story.forward(1, 0);  // in the old session, because stage 1 has not received the new Start
  story.activation(1, 1);
  CHECK(seen([&] { story.activation(1, 2); }) ==
        "3 activations sent but not computed; the schedule allows 2");
}

}  // namespace leeway::sim
