// PipelineChecker accepts a valid history of an iteration, and reports omitted, repeated and
// changed steps.
#include <catch2/catch.hpp>
#include <functional>

#include "tests/sim/pipeline_story.hpp"
#include "tests/sim/seen.hpp"

namespace leeway::sim {
namespace {

using Operation = event::StageComputed::Operation;

using Action = std::function<void(PipelineStory&)>;
/// Named actions in order.
using History = std::vector<std::pair<std::string, Action>>;

/// Iteration 0 of two micro-batches under 1f1b. "F1.0" is the forward of micro-batch 0 on stage 1.
History valid_history() {
  return {{"join", [](PipelineStory& s) { s.joins(0), s.joins(1); }},
          {"start", [](PipelineStory& s) { s.starts(0), s.starts(1); }},
          {"announces", [](PipelineStory& s) { s.announces(0, 4); }},
          {"pull0", [](PipelineStory& s) { s.pulls(0, 0, 0); }},
          {"pull1", [](PipelineStory& s) { s.pulls(1, 0, 0); }},
          {"F0.0", [](PipelineStory& s) { s.forward(0, 0, 0, 0); }},
          {"A0", [](PipelineStory& s) { s.activation(0, 0); }},
          {"F1.0", [](PipelineStory& s) { s.forward(1, 0, 0, 0); }},
          {"F0.1", [](PipelineStory& s) { s.forward(0, 0, 1, 0); }},
          {"A1", [](PipelineStory& s) { s.activation(0, 1); }},
          {"I1.0", [](PipelineStory& s) { s.computes(Operation::backward_inputs, 1, 0, 0, 0); }},
          {"G0", [](PipelineStory& s) { s.gradient(0, 0); }},
          {"W1.0", [](PipelineStory& s) { s.computes(Operation::backward_weights, 1, 0, 0, 0); }},
          {"B0.0", [](PipelineStory& s) { s.backward(0, 0, 0, 0); }},
          {"F1.1", [](PipelineStory& s) { s.forward(1, 0, 1, 0); }},
          {"B1.1", [](PipelineStory& s) { s.backward(1, 0, 1, 0); }},
          {"G1", [](PipelineStory& s) { s.gradient(0, 1); }},
          {"B0.1", [](PipelineStory& s) { s.backward(0, 0, 1, 0); }},
          {"push0", [](PipelineStory& s) { s.pushes(0, 0, 0); }},
          {"push1", [](PipelineStory& s) { s.pushes(1, 0, 0); }},
          {"done", [](PipelineStory& s) { s.finishes(0, 0, 4), s.finishes(1, 0, 4); }}};
}

std::size_t at(const History& history, const std::string& name) {
  for (std::size_t i = 0; i < history.size(); ++i)
    if (history[i].first == name) return i;
  FAIL("no action " << name);
  return 0;
}
History without(const std::string& name) {
  History history = valid_history();
  history.erase(history.begin() + static_cast<std::ptrdiff_t>(at(history, name)));
  return history;
}
History twice(const std::string& name) {
  History history = valid_history();
  const auto one = history.begin() + static_cast<std::ptrdiff_t>(at(history, name));
  history.insert(one, *one);
  return history;
}
History with(const std::string& name, Action action) {
  History history = valid_history();
  history[at(history, name)].second = std::move(action);
  return history;
}
History and_then(Action action) {
  History history = valid_history();
  history.emplace_back("then", std::move(action));
  return history;
}

/// The observation of the violation that the history causes; empty without a violation.
std::string seen_in_history(const History& history) {
  PipelineStory story(pipeline_plan("1f1b", 2));
  return seen([&] {
    for (const auto& [name, action] : history) action(story);
  });
}

}  // namespace

TEST_CASE("a pipeline that follows its schedule is accepted, and so are repeated messages") {
  CHECK(seen_in_history(valid_history()) == "");
  for (const char* name :
       {"join", "start", "announces", "A0", "A1", "G0", "G1", "push0", "push1"}) {
    INFO(name);
    CHECK(seen_in_history(twice(name)) == "");
  }
  CHECK(seen_in_history(and_then([](PipelineStory& s) {
          s.announces(1, 0);  // without samples
          s.pushes(0, 1, 0, msg::Push::Kind::empty);
          s.pushes(1, 1, 0, msg::Push::Kind::empty);
          s.no_more(2);
        })) == "");
}

TEST_CASE("a backward for inputs or weights on other weights than its forward is caught") {
  const std::string forward_read = ", its forward read those of 0";
  CHECK(
      seen_in_history(with(
          "I1.0", [](PipelineStory& s) { s.computes(Operation::backward_inputs, 1, 0, 0, 1); })) ==
      "backward inputs of micro-batch 0 of iteration 0 reads the weights of pull 1" + forward_read);
  CHECK(
      seen_in_history(with(
          "W1.0", [](PipelineStory& s) { s.computes(Operation::backward_weights, 1, 0, 0, 2); })) ==
      "backward weights of micro-batch 0 of iteration 0 reads the weights of pull 2" +
          forward_read);
}

TEST_CASE("weights of another session or an earlier iteration are caught") {
  const std::string not_answered =
      "forward of iteration 0 on pull 0, which was not answered in session ";
  CHECK(seen_in_history(without("pull1")) == not_answered + "1");
  CHECK(seen_in_history(with("pull1", [](PipelineStory& s) { s.sends_pull(1, 0, 0); })) ==
        not_answered + "1");
  CHECK(seen_in_history(with("pull1", [](PipelineStory& s) { s.answered(1, 0, 0); })) ==
        not_answered + "1");
  CHECK(seen_in_history(with("pull1", [](PipelineStory& s) {
          s.pulls(1, 0, 0);
          s.nonce = first_nonce(2);
          s.joins(1);
          s.session = Session(2);
          s.starts(1);
          s.announces(0, 4);
          s.activation(0, 0);
          s.forward(1, 0, 0, 0);
        })) == not_answered + "2");
  CHECK(seen_in_history(and_then([](PipelineStory& s) {
          s.announces(1, 4);
          s.forward(0, 1, 0, 0);
        })) == "forward of iteration 1 on the weights of the earlier pull 0");
  CHECK(seen_in_history(and_then([](PipelineStory& s) {
          s.announces(1, 4);
          s.pulls(0, 1, 0);
          s.forward(0, 1, 0, 1);
        })) ==
        "forward of iteration 1 on weights with its own updates below 0; the schedule allows a "
        "version lag of 0");
}

TEST_CASE("a push that names versions on which it was not computed is caught") {
  CHECK(seen_in_history(with("push1", [](PipelineStory& s) { s.pushes(1, 0, 1); })) ==
        "bucket 0 of iteration 0 names versions on which it was not computed");
}

TEST_CASE("a micro-batch that is repeated, out of order or on the wrong stage is caught") {
  CHECK(seen_in_history(twice("F0.0")) ==
        "forward of micro-batch 0 of iteration 0 through chunk 0 again");
  const std::string back = "backward inputs of micro-batch ";
  CHECK(seen_in_history(twice("I1.0")) == back + "0 of iteration 0 through chunk 1 again");
  CHECK(seen_in_history(twice("W1.0")) ==
        "backward weights of micro-batch 0 of iteration 0 through chunk 1 again");
  CHECK(seen_in_history(without("F0.1")) ==
        back + "1 of iteration 0 through chunk 0 before its forward");
  CHECK(seen_in_history(without("I1.0")) ==
        "backward weights of micro-batch 0 of iteration 0 through chunk 1 before backward inputs");
  CHECK(seen_in_history(with("F0.1", [](PipelineStory& s) { s.forward(0, 0, 2, 0); })) ==
        "micro-batch 2 of chunk 0 does not belong to this stage");
  CHECK(seen_in_history(and_then([](PipelineStory& s) { s.forward(0, 0, 0, 0); })) ==
        "forward of iteration 0, which the stage has pushed");
}

TEST_CASE("an iteration pushed without some of its samples is caught") {
  CHECK(seen_in_history(without("B0.1")) ==
        "iteration 0 was pushed without backward of micro-batch 1 through chunk 0");
  CHECK(seen_in_history(with("B1.1", [](PipelineStory& s) {
          s.computes(Operation::backward_inputs, 1, 0, 1, 0);
        })) == "iteration 0 was pushed without backward of micro-batch 1 through chunk 1");
  CHECK(seen_in_history(with("announces", [](PipelineStory& s) { s.announces(0, 5); })) ==
        "iteration 0 was pushed, but 4 of its 5 samples passed chunk 0");
  CHECK(seen_in_history(with("A1", [](PipelineStory& s) {
          s.activation(0, 1);
          s.activation(0, 1, 3);
        })) == "micro-batch 1 has 3 samples, but had 2");
  CHECK(seen_in_history(with("announces", [](PipelineStory& s) {
          s.announces(0, 4);
          s.announces(0, 3);
        })) == "iteration 0 has positions 0 to 3, but had 0 to 4");
}

TEST_CASE("an input that a stage did not receive in its present session is caught") {
  CHECK(seen_in_history(without("announces")) == "forward of iteration 0, which was not announced");
  CHECK(seen_in_history(without("A0")) ==
        "forward of micro-batch 0 of iteration 0 through chunk 1 without its activation");
  CHECK(seen_in_history(without("G0")) ==
        "backward inputs of micro-batch 0 of iteration 0 through chunk 0 without the gradient of "
        "its output");
  // Sent in another session.
  const auto under_another = [](PipelineStory& s, const Action& action) {
    s.session = Session(7);
    action(s);
    s.session = Session(1);
  };
  CHECK(seen_in_history(with("A0", [&](PipelineStory& s) {
          under_another(s, [](PipelineStory& other) { other.activation(0, 0); });
        })) == "forward of micro-batch 0 of iteration 0 through chunk 1 without its activation");
  CHECK(seen_in_history(with("G0",
                             [&](PipelineStory& s) {
                               under_another(s, [](PipelineStory& other) { other.gradient(0, 0); });
                             })) ==
        "backward inputs of micro-batch 0 of iteration 0 through chunk 0 without the gradient of "
        "its output");
}

TEST_CASE("messages that precede their Start may be used after it, but not after a crash") {
  const auto early = [](bool crash) {
    PipelineStory story(pipeline_plan("1f1b", 2));
    return seen([&] {
      story.joins(0), story.joins(1);
      story.announces(0, 4);
      story.starts(0);
      story.pulls(0, 0, 0);
      story.forward(0, 0, 0, 0);
      story.activation(0, 0);
      if (crash) {
        story.restarts(1);
        story.nonce = first_nonce(2);
        story.joins(1);
      }
      story.starts(1);
      story.pulls(1, 0, 0);
      story.forward(1, 0, 0, 0);
    });
  };
  CHECK(early(false) == "");
  CHECK(early(true) == "forward of iteration 0, which was not announced");
}

TEST_CASE("an iteration that does not exist or was given up is caught") {
  CHECK(seen_in_history(and_then([](PipelineStory& s) {
          s.no_more(1);
          s.pulls(0, 1, 1);
          s.forward(0, 1, 0, 1);
        })) == "forward of iteration 1; the last one is 0");
  CHECK(seen_in_history(with("A0", [](PipelineStory& s) { s.no_more(0); })) ==
        "NoMore names iteration 0, but 0 was started");
  CHECK(seen_in_history(and_then([](PipelineStory& s) {
          s.no_more(3);
          s.no_more(2);
        })) == "NoMore names iteration 2, but named 3 before");
  CHECK(seen_in_history(and_then([](PipelineStory& s) {
          s.no_more(1);
          s.announces(1, 4);
        })) == "iteration 1 has samples; the last one is 0");
  CHECK(seen_in_history(with("G1", [](PipelineStory& s) {
          s.gradient(0, 1);
          s.sent(PipelineStory::worker(1), PipelineStory::worker(0), msg::GivenUp{Iteration(0)});
        })) == "a push of iteration 0; 0 and later ones were given up");
}

TEST_CASE("a stage without weights pulls nothing, and needs the gradients of the next stage") {
  Plan plan = pipeline_plan("1f1b", 1);
  plan.model.insert(plan.model.begin(), plan::Relu{});
  plan.pipeline.split = "0,1-5";
  const auto after_last_stage = [&](const Action& then) {
    PipelineStory story(plan);
    story.joins(0), story.joins(1);
    story.starts(0), story.starts(1);
    story.announces(0, 2);
    story.pulls(1, 0, 0);
    story.forward(0, 0, 0, 0);
    story.activation(0, 0);
    story.forward(1, 0, 0, 0);
    story.backward(1, 0, 0, 0);
    story.pushes(1, 0, 0);
    return seen([&] { then(story); });
  };
  CHECK(after_last_stage([](PipelineStory& s) { s.finishes(0, 0, 2); }) ==
        "iteration 0 was pushed without backward of micro-batch 0 through chunk 0");
  CHECK(after_last_stage([](PipelineStory& s) { s.backward(0, 0, 0, 0); }) ==
        "backward inputs of micro-batch 0 of iteration 0 through chunk 0 without the gradient of "
        "its output");
  const auto all = [](PipelineStory& s) {
    s.empty_gradient(0, 0);
    s.backward(0, 0, 0, 0);
    s.finishes(0, 0, 2);
  };
  CHECK(after_last_stage(all) == "");
  CHECK(after_last_stage([&](PipelineStory& s) {
          all(s);
          s.forward(0, 0, 0, 0);
        }) == "forward of iteration 0, which the stage has pushed");
}

TEST_CASE("in a V, the last stage reads its own activation and gradient, without messages") {
  const auto seen_after = [](const std::vector<std::pair<Operation, std::uint32_t>>& passes) {
    Plan plan = pipeline_plan("zb_v", 1);
    plan.model.insert(plan.model.begin(), {plan::Linear{4}, plan::Tanh{}, plan::Linear{4}});
    plan.pipeline.chunks = 2;
    PipelineStory story(plan);
    story.joins(1);
    story.starts(1);
    story.announces(0, 2);
    story.pulls(1, 0, 0);
    story.activation(0, 0);
    const msg::StageTensor tensor{DType::f32, Shape{2, 3}, Blob::floats(6)};
    story.delivers(PipelineStory::worker(0), PipelineStory::worker(1),
                   msg::OutputGradient{Iteration(0), 0, 2, tensor, Clock()});
    return seen([&] {
      for (const auto& [operation, chunk] : passes) story.computes_chunk(operation, 1, chunk);
    });
  };
  const auto forward = Operation::forward, inputs = Operation::backward_inputs;
  CHECK(seen_after({{forward, 1}, {forward, 2}, {inputs, 2}, {inputs, 1}}) == "");
  CHECK(seen_after({{forward, 2}}) ==
        "forward of micro-batch 0 of iteration 0 through chunk 2 before chunk 1");
  CHECK_THAT(seen_after({{forward, 1}, {forward, 2}, {inputs, 1}}),
             Catch::Contains("through chunk 1 before that of the next chunk"));
  CHECK_THAT(seen_after({{forward, 3}}), Catch::Contains("does not belong to this stage"));
}

TEST_CASE("micro-batches in flight beyond the schedule's limit are caught") {
  PipelineStory story(pipeline_plan("1f1b", 4));
  story.joins(0);
  story.starts(0);
  story.announces(0, 8);
  story.pulls(0, 0, 0);
  story.forward(0, 0, 0, 0);
  story.forward(0, 0, 1, 0);
  CHECK(seen([&] { story.forward(0, 0, 2, 0); }) ==
        "3 micro-batches in flight; the schedule allows 2");
}

TEST_CASE("versions of weights beyond the schedule's limit are caught on arrival") {
  // Under weight stashing, stage 0 of two keeps two versions, one per micro-batch.
  PipelineStory stashes(pipeline_plan("weight_stashing", 1));
  stashes.joins(0);
  stashes.starts(0);
  for (std::int64_t i = 0; i < 4; ++i) stashes.announces(i, 2);
  stashes.pulls(0, 1, 0);
  stashes.forward(0, 0, 0, 1);
  stashes.activation(0, 0);
  stashes.forward(0, 1, 0, 1);
  stashes.activation(1, 0);
  stashes.gradient(0, 0);
  stashes.backward(0, 0, 0, 1);
  stashes.pushes(0, 0, 0);
  stashes.pulls(0, 2, 1);  // the version of pull 1 is in flight
  stashes.forward(0, 2, 0, 2);
  stashes.activation(2, 0);
  stashes.sends_pull(0, 3, 2);
  CHECK(seen([&] { stashes.answered(0, 3, 2); }) ==
        "3 versions of its weights are kept; the schedule allows 2");

  // Under 1f1b a stage keeps one version until its iteration is over.
  const auto pulls_again = [](bool over) {
    PipelineStory story(pipeline_plan("1f1b", 1));
    story.joins(1);
    story.starts(1);
    for (std::int64_t i = 0; i < 2; ++i) story.announces(i, 2);
    story.pulls(1, 0, 0);
    story.activation(0, 0);
    story.forward(1, 0, 0, 0);
    story.backward(1, 0, 0, 0);
    if (over) story.finishes(1, 0, 2);
    return seen([&] { story.pulls(1, 1, 0); });
  };
  CHECK(pulls_again(true) == "");
  CHECK(pulls_again(false) == "2 versions of its weights are kept; the schedule allows 1");
}

TEST_CASE("a version pulled in an earlier session does not count") {
  PipelineStory story(pipeline_plan("1f1b", 1));
  story.joins(1);
  story.starts(1);
  story.announces(0, 2);
  story.pulls(1, 0, 0);
  story.no_more(1);
  story.session = Session(2);
  story.starts(1);
  story.announces(3, 2);
  CHECK(seen([&] { story.pulls(1, 3, 0); }) == "");
}

TEST_CASE("without stages the checker ignores all events") {
  Plan plan = pipeline_plan("1f1b", 1);
  plan.pipeline.stages = 1;
  PipelineChecker checker(test::job_of(plan));
  checker.on_event({}, PipelineStory::worker(0), event::StageComputed{});
  SUCCEED();
}

}  // namespace leeway::sim
