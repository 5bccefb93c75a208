// The checker of what stages have sent each other, fed by hand: for each schedule as much as it
// allows, and one more.
#include <catch2/catch.hpp>
#include <functional>

#include "core/text.hpp"
#include "sim/checkers/stage_queues.hpp"
#include "tests/sim/seen.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::sim {
namespace {

using Operation = event::StageComputed::Operation;

/// A pipeline, and short names for what its stages say. Part p is on stage p modulo stages.
class Story {
 public:
  Story(const std::string& schedule, std::uint32_t stages, std::uint32_t micro_batches,
        std::uint32_t chunks = 1)
      : stages_(stages), micro_batches_(micro_batches) {
    Plan plan = test::tiny_plan();
    plan.model.insert(plan.model.begin(), {plan::Linear{4}, plan::Tanh{}, plan::Linear{4}});
    plan.workers = plan.pipeline.stages = stages;
    plan.pipeline.schedule = schedule;
    plan.pipeline.chunks = chunks;
    plan.micro_batches = plan.batch = micro_batches;
    plan.consistency = plan::Ssp{4};
    checker_ = std::make_unique<StageQueueChecker>(test::job_of(plan));
    for (std::uint32_t stage = 0; stage < stages; ++stage) starts(stage);
  }

  void starts(std::uint32_t stage) {
    checker_->on_delivered({}, letter(kScheduler, worker(stage), msg::Start{{}, number}));
  }
  /// That stage `to` has so many samples, by the one before.
  void says(std::uint32_t to, std::int64_t iteration, std::int64_t samples = 1) {
    sends(to - 1, to,
          msg::MiniBatch{.start = number, .iteration = Iteration(iteration), .end = samples});
  }
  /// Micro-batches count on from iteration to iteration.
  void activation(std::uint32_t part, std::int64_t micro_batch) {
    sends(part - 1, part, msg::Activation{number, iteration(micro_batch), in(micro_batch), part});
  }
  void gradient(std::uint32_t part, std::int64_t micro_batch) {
    sends(part + 1, part,
          msg::OutputGradient{number, iteration(micro_batch), in(micro_batch), part});
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

  std::uint64_t number = 1;  // of the Start

 private:
  Address worker(std::uint32_t part) const { return address_of(WorkerId(part % stages_)); }
  static Letter letter(Address from, Address to, Body body) {
    return {from, to, encode({.body = std::move(body)})};
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

  std::uint32_t stages_, micro_batches_;
  std::unique_ptr<StageQueueChecker> checker_;
};

/// Of a sequence of deeds, how many there were before one is caught; and why that one was.
std::pair<int, std::string> most(const std::function<void(int)>& deed) {
  for (int i = 0; i < 100; ++i)
    if (const std::string why = seen([&] { deed(i); }); !why.empty()) return {i, why};
  return {100, ""};
}

struct Form {
  const char* schedule;
  std::uint32_t stages, micro_batches;
  int activations;  // of stage 0 that may wait
  int said;         // iterations that stage 1 may have to begin
};

const std::vector<Form> kForms = {{"1f1b", 3, 6, 3, 3},
                                  {"1f1b", 3, 2, 2, 3},
                                  {"gpipe", 3, 6, 6, 3},
                                  {"zb_h1", 3, 6, 3, 3},
                                  {"2bw", 3, 2, 3, 4},
                                  {"weight_stashing", 4, 1, 4, 6},
                                  {"weight_stashing", 4, 2, 4, 5},
                                  {"2bw", 4, 6, 4, 4}};

}  // namespace

TEST_CASE("a stage sends no more activations than its schedule keeps, however slow the next is") {
  for (const Form& form : kForms) {
    INFO(form.schedule << ", " << form.stages << " stages, " << form.micro_batches);
    Story story(form.schedule, form.stages, form.micro_batches);
    for (int m = 0; m < 5; ++m) {  // those that have gone forward do not count
      story.activation(1, m);
      story.forward(1, m);
    }
    CHECK(most([&](int i) { story.activation(1, 5 + i); }) ==
          std::pair(form.activations, concat(form.activations + 1,
                                             " activations sent but not computed; the schedule "
                                             "allows ",
                                             form.activations)));
  }
}

TEST_CASE("with several chunks their activations count together") {
  Story story("interleaved", 2, 4, 2);
  // Stage 0 keeps five: both chunks of two, and one.
  for (int m = 0; m < 3; ++m) story.activation(1, m);
  CHECK(most([&](int i) { story.activation(3, i); }).first == 2);
}

TEST_CASE("a stage is sent no more gradients than it keeps micro-batches") {
  Story story("1f1b", 3, 6);
  story.gradient(1, 0);
  story.backward(1, 0);
  CHECK(most([&](int i) { story.gradient(1, 1 + i); }) ==
        std::pair(2, std::string("3 gradients sent but not computed; the schedule allows 2")));
}

TEST_CASE(
    "a first stage leases one iteration ahead, and others have what it has in flight as well") {
  for (const Form& form : kForms) {
    INFO(form.schedule << ", " << form.stages << " stages, " << form.micro_batches);
    Story story(form.schedule, form.stages, form.micro_batches);
    story.says(1, 0);
    story.begins(0, 0);
    story.begins(1, 0);
    story.says(1, 1);
    story.says(1, 2);
    story.says(1, 3, 0);  // without samples, which holds nothing
    CHECK(seen([&] { story.says(1, 4); }) ==
          "3 iterations leased but not started; the schedule allows 2");

    Story slow(form.schedule, form.stages, form.micro_batches);
    const auto [said, why] = most([&](int i) {
      slow.says(1, i);
      slow.begins(0, i);
    });
    CHECK(said == form.said);
    CHECK(why == concat(form.said + 1,
                        " iterations announced but not started; the schedule allows ", form.said));
  }
}

TEST_CASE("under another Start everything is sent anew, and nothing of the old one counts") {
  Story story("1f1b", 2, 4);
  story.activation(1, 0);
  story.activation(1, 1);
  story.number = 2;
  story.starts(0);
  story.activation(1, 0);
  story.forward(1, 0);  // that of the old one: stage 1 has not heard of the new one
  story.activation(1, 1);
  CHECK(seen([&] { story.activation(1, 2); }) ==
        "3 activations sent but not computed; the schedule allows 2");
}

}  // namespace leeway::sim
