// The components of a Stage, each in isolation.
#include <catch2/catch.hpp>

#include "actors/stage/micro_batches_in_flight.hpp"
#include "actors/stage/stage_inputs.hpp"
#include "actors/stage/stage_iteration.hpp"
#include "actors/stage/stage_norms.hpp"
#include "actors/stage/stage_progress.hpp"
#include "actors/stage/stage_sender.hpp"
#include "actors/stage/stage_waits.hpp"
#include "actors/stage/weight_versions.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {
namespace {

using Catch::Matchers::Contains;

/// Keeps all messages, and fails if the stage calls anything else.
class StageOutbox final : public Outbox {
 public:
  Instant now() const override { return {}; }
  Rng& random() override { return random_; }
  void send(Address to, Message message) override {
    auto envelope = decode(message);
    REQUIRE(envelope);
    sent.emplace_back(to, std::move(*envelope));
  }
  void after(Duration, TimerToken) override { FAIL("unexpected timer"); }
  void compute(std::shared_ptr<Work>) override { FAIL("unexpected work"); }
  void watch(Address) override { FAIL("unexpected watch"); }
  void emit(const Event&) override { FAIL("unexpected event"); }

  std::vector<std::pair<Address, Envelope>> sent;

 private:
  Rng random_{1};
};

/// Two pipelines of three stages; the first layer has no parameters.
std::shared_ptr<const Job> pipeline_job(std::uint32_t chunks = 1,
                                        const char* schedule = "interleaved") {
  Plan plan = tiny_plan();
  plan.model = {plan::Tanh{},    plan::Linear{6}, plan::Relu{}, plan::Linear{5},
                plan::Linear{7}, plan::Relu{},    plan::Tanh{}, plan::Linear{3}};
  plan.pipeline.stages = 3;
  plan.pipeline.schedule = chunks > 1 ? schedule : "1f1b";
  plan.pipeline.chunks = chunks;
  plan.pipeline.split = chunks > 1 ? "" : "0,1-4,5-7";
  plan.workers = 6;
  plan.batch = 6;
  plan.micro_batches = 3;
  return job_of(plan);
}

Address worker(std::uint32_t index) {
  return address_of(WorkerId(index));
}

Blob zeros(std::int64_t floats) {
  Blob blob = Blob::floats(floats);
  std::fill_n(blob.mutable_floats(), floats, 0.0f);
  return blob;
}

msg::StageTensor tensor(const Shape& shape) {
  return {DType::f32, shape, zeros(shape.count())};
}

LeasedIteration leased(std::int64_t samples) {
  return {Epoch(2), 10, 10 + samples, 12, {{0, 1, 2}}};
}

Instant at(std::int64_t s) {
  return Instant() + seconds(s);
}

}  // namespace

TEST_CASE("a position knows its chunks, neighbours and shapes") {
  const auto job = pipeline_job();
  const StagePosition first(job, WorkerId(3)), middle(job, WorkerId(4)), last(job, WorkerId(5));
  CHECK(first.is_first());
  CHECK(last.is_last());
  CHECK_FALSE((middle.is_first() || middle.is_last()));
  CHECK(middle.previous() == worker(3));
  CHECK(middle.next() == worker(5));
  CHECK(middle.is_neighbour(worker(3)));
  CHECK(middle.is_neighbour(worker(5)));
  CHECK_FALSE(first.is_neighbour(worker(5)));
  CHECK_FALSE(first.is_neighbour(worker(1)));  // in the other pipeline
  CHECK_FALSE(first.is_neighbour(kScheduler));
  CHECK(middle.owns(1));
  CHECK_FALSE(middle.owns(2));
  CHECK_FALSE(middle.owns(4));  // the model has three chunks
  CHECK(first.owner_of(2) == worker(5));
  CHECK(middle.input_shape(1, 2) == Shape{2, 4});
  CHECK(middle.output_shape(1, 2) == Shape{2, 7});
  CHECK_FALSE(first.needs_output_gradient(0));
  CHECK(middle.needs_output_gradient(1));
}

TEST_CASE("with several chunks the first and the last stage are neighbours") {
  const auto job = pipeline_job(2);
  const StagePosition first(job, WorkerId(0));
  CHECK(first.is_neighbour(worker(2)));
  CHECK(first.model_chunks() == 6);
  CHECK(first.model_chunk(1) == 3);
  CHECK(first.owns(3));
  CHECK(first.owner_of(5) == worker(2));
}

TEST_CASE("in a V the first stage has the losses, and the last one sends to itself") {
  const auto job = pipeline_job(2, "zb_v");
  const StagePosition first(job, WorkerId(0)), middle(job, WorkerId(4)), last(job, WorkerId(5));
  CHECK((first.has_loss() && !middle.has_loss() && !last.has_loss()));
  CHECK(first.model_chunk(1) == 5);
  CHECK(middle.model_chunk(1) == 4);
  CHECK((last.owns(2) && last.owns(3) && !last.owns(4)));
  CHECK(last.owner_of(3) == worker(5));
  CHECK(last.owner_of(4) == worker(4));
  CHECK_FALSE((first.is_neighbour(worker(2)) || last.is_neighbour(worker(3))));
  CHECK((middle.runs_back(1) && !middle.runs_back(0)));
  const StagePosition round(pipeline_job(2), WorkerId(5));
  CHECK((round.has_loss() && !round.runs_back(1)));
}

TEST_CASE("inputs keep a valid tensor until it is used, and ignore a repeated one") {
  const auto job = pipeline_job();
  const StagePosition middle(job, WorkerId(4));
  StageInputs inputs(middle, {});
  const MicroBatchKey key{Iteration(5), 1, 1};
  CHECK_FALSE(inputs.activation(key));
  msg::Activation activation{Iteration(5), 1, 1, tensor({2, 4})};
  msg::Activation repeat = activation;
  CHECK(inputs.receive(worker(3), activation, 2).empty());
  const Blob* const kept = inputs.activation(key);
  REQUIRE(kept);
  CHECK(inputs.receive(worker(3), repeat, 2).empty());
  CHECK(inputs.activation(key) == kept);
  inputs.erase_activation(key);
  CHECK_FALSE(inputs.activation(key));

  CHECK_FALSE(inputs.take_gradient(key));
  msg::OutputGradient gradient{Iteration(5), 1, 1, tensor({2, 7}), Clock(0)};
  CHECK(inputs.receive(worker(5), gradient, 2).empty());
  CHECK(inputs.take_gradient(key)->size() == 14 * sizeof(float));
  CHECK_FALSE(inputs.take_gradient(key));
}

TEST_CASE("inputs refuse a tensor of another chunk, sender, iteration, micro-batch or shape") {
  const auto job = pipeline_job();
  const StagePosition first(job, WorkerId(3)), middle(job, WorkerId(4));
  StageInputs inputs(middle, {}), of_first(first, {});
  const auto refusal = [&](Address from, std::uint32_t chunk, std::optional<std::int64_t> samples,
                           const Shape& shape) {
    msg::Activation activation{Iteration(5), 1, chunk, tensor(shape)};
    return inputs.receive(from, activation, samples);
  };
  CHECK_THAT(refusal(worker(3), 0, 2, {2, 4}), Contains("activation: chunk 0 is not here"));
  CHECK_THAT(refusal(worker(3), 4, 2, {2, 4}), Contains("chunk 4 is not here"));
  CHECK_THAT(refusal(worker(5), 1, 2, {2, 4}), Contains("does not send to chunk 1"));
  CHECK_THAT(refusal(worker(3), 1, {}, {2, 4}), Contains("iteration 5 is not under way"));
  CHECK_THAT(refusal(worker(3), 1, 0, {2, 4}), Contains("micro-batch 1 has no samples"));
  CHECK_THAT(refusal(worker(3), 1, 2, {2, 5}), Contains("not"));
  CHECK(refusal(worker(3), 1, 2, {2, 4}).empty());
  // The first chunk has no parameters, so its gradient has no elements.
  msg::OutputGradient gradient{Iteration(5), 1, 0, tensor({2, 4}), Clock(0)};
  CHECK_THAT(of_first.receive(worker(4), gradient, 2), Contains("gradient: the tensor"));
  gradient.tensor = tensor(Shape{0});
  CHECK(of_first.receive(worker(4), gradient, 2).empty());
}

TEST_CASE("inputs decode what the codecs of the plan encode, and refuse anything else") {
  const auto job = pipeline_job();
  const StagePosition middle(job, WorkerId(4));
  StageInputs inputs(middle, {.activations = plan::Bf16{}});
  const TensorCodec bf16((plan::Codec(plan::Bf16{}))), int8((plan::Codec(plan::Int8{})));
  const auto refusal = [&](std::uint32_t micro_batch, msg::StageTensor sent) {
    msg::Activation activation{Iteration(5), micro_batch, 1, std::move(sent)};
    return inputs.receive(worker(3), activation, 2);
  };
  Blob values = Blob::floats(8);
  for (int i = 0; i < 8; ++i) values.mutable_floats()[i] = 0.25f * static_cast<float>(i);  // exact
  CHECK(refusal(0, bf16.encode({2, 4}, values)).empty());
  const Blob* const kept = inputs.activation({Iteration(5), 0, 1});
  REQUIRE(kept);
  CHECK(std::equal(values.as_floats(), values.as_floats() + 8, kept->as_floats()));
  CHECK_THAT(refusal(1, {DType::f32, {2, 4}, values}), Contains("encoding that the plan does not"));
  CHECK_THAT(refusal(1, int8.encode({2, 4}, values)), Contains("encoding that the plan does not"));
  msg::StageTensor short_one = bf16.encode({2, 4}, values);
  short_one.data = Blob::allocate(15);
  CHECK_THAT(refusal(1, short_one), Contains("found 15"));
  CHECK_FALSE(inputs.activation({Iteration(5), 1, 1}));
}

TEST_CASE("inputs discard the tensors of earlier iterations") {
  const auto job = pipeline_job();
  const StagePosition middle(job, WorkerId(4));
  StageInputs inputs(middle, {});
  for (const int iteration : {4, 5}) {
    msg::Activation activation{Iteration(iteration), 2, 1, tensor({2, 4})};
    REQUIRE(inputs.receive(worker(3), activation, 2).empty());
  }
  inputs.forget_below(Iteration(5));
  CHECK_FALSE(inputs.activation({Iteration(4), 2, 1}));
  CHECK(inputs.activation({Iteration(5), 2, 1}));
  inputs.clear();
  CHECK_FALSE(inputs.activation({Iteration(5), 2, 1}));
}

TEST_CASE("a middle stage sends to both neighbours, in its session") {
  const auto job = pipeline_job();
  const StagePosition middle(job, WorkerId(4));
  StageSender sender(middle, {.activations = plan::Bf16{}});
  msg::WorkerReport report;
  StageOutbox out;
  sender.begin(Session(7));
  sender.send_mini_batch(Iteration(5), leased(6), out);
  sender.send_no_more(Iteration(6), out);
  sender.send_given_up(Iteration(6), out);
  sender.send_activation({Iteration(5), 2, 1}, 2, zeros(14), report, out);
  sender.send_gradient({Iteration(5), 2, 1}, 2, {}, Clock(3), report, out);
  CHECK(report.stage_bytes == 14 * 2);
  CHECK(report.plain_stage_bytes == 14 * 4);
  const std::vector<Address> receivers{worker(5), worker(5), worker(3),
                                       worker(5), worker(5), worker(3)};
  REQUIRE(out.sent.size() == receivers.size());
  for (std::size_t i = 0; i < receivers.size(); ++i) {
    CHECK(out.sent[i].first == receivers[i]);
    CHECK(out.sent[i].second.session == Session(7));
  }
  const auto& mini_batch = std::get<msg::MiniBatch>(out.sent[0].second.body);
  CHECK(mini_batch.begin == 10);
  CHECK(mini_batch.end == 16);
  CHECK(mini_batch.applied.size() == 1);
  const auto& activation = std::get<msg::Activation>(out.sent[4].second.body);
  CHECK(activation.chunk == 2);
  CHECK(activation.micro_batch == 2);
  CHECK(activation.tensor.shape == Shape{2, 7});
  const auto& gradient = std::get<msg::OutputGradient>(out.sent[5].second.body);
  CHECK(gradient.chunk == 0);
  CHECK(gradient.tensor.shape == Shape{0});  // the first chunk has no parameters
  CHECK(gradient.clock == Clock(3));
}

TEST_CASE("the first stage sends no gradient, and the last no activation; both give up inwards") {
  const auto job = pipeline_job();
  const StagePosition first(job, WorkerId(3)), last(job, WorkerId(5));
  StageOutbox out;
  const StageSender of_first(first, {}), of_last(last, {});
  msg::WorkerReport report;
  of_first.send_gradient({Iteration(1), 0, 0}, 2, {}, Clock(0), report, out);
  of_last.send_mini_batch(Iteration(1), leased(6), out);
  of_last.send_no_more(Iteration(1), out);
  of_last.send_activation({Iteration(1), 0, 2}, 2, {}, report, out);
  CHECK(out.sent.empty());
  CHECK(report.plain_stage_bytes == 0);
  of_first.send_given_up(Iteration(1), out);
  of_last.send_given_up(Iteration(1), out);
  REQUIRE(out.sent.size() == 2);
  for (const auto& [to, envelope] : out.sent) CHECK(to == worker(4));
}

TEST_CASE("progress counts the iterations that all chunks have updated, up to the end") {
  StageProgress progress({.schedule = "interleaved", .stages = 2, .micro_batches = 2, .chunks = 2},
                         1);
  progress.start(Iteration(4));
  CHECK(progress.announced() == Iteration(4));
  CHECK(progress.finished() == Iteration(4));
  CHECK_FALSE(progress.count_update(0));
  CHECK(progress.count_update(1));
  CHECK(progress.finished() == Iteration(5));
  CHECK(progress.clock_of(1) == Clock(5));
  progress.announce(Iteration(4));
  CHECK(progress.announced() == Iteration(5));
  CHECK_FALSE(progress.has_end());
  CHECK_FALSE(progress.is_past_end(Iteration(100)));
  progress.end_at(Iteration(6));
  CHECK(progress.is_past_end(Iteration(6)));
  CHECK_FALSE(progress.is_past_end(Iteration(5)));
  CHECK_FALSE(progress.is_complete());
  progress.count_update(0);
  progress.count_update(1);
  CHECK(progress.is_complete());
  progress.start(Iteration(9));
  CHECK_FALSE(progress.has_end());
  CHECK(progress.finished() == Iteration(9));
}

TEST_CASE("progress reads a version after its update, for the iterations that use it") {
  StageProgress progress({.schedule = "2bw", .stages = 2, .micro_batches = 2}, 0);
  progress.start(Iteration(4));
  auto readings = progress.readings();
  REQUIRE(readings.size() == 1);
  CHECK(readings[0].version == 0);
  CHECK(readings[0].first == Iteration(4));
  CHECK(readings[0].last == Iteration(5));  // 2bw reads version 0 for two iterations
  while (progress.op().kind != pipeline::OpKind::update) progress.advance();
  progress.advance();
  REQUIRE(progress.count_update(0));
  readings = progress.readings();
  REQUIRE_FALSE(readings.empty());
  CHECK(readings.back().version == 1);
  CHECK(readings.back().first == Iteration(6));
  CHECK(progress.next_version() == readings.front().version);
}

TEST_CASE("weights are pulled once per version, and their wait counts as blocked") {
  const auto job = pipeline_job();
  ParameterClient parameters(job, WorkerId(4));
  WeightVersions weights(job, parameters);
  StageOutbox out;
  CHECK_FALSE(weights.newest());
  CHECK_FALSE(weights.find(0, at(1)));  // not pulled, so it does not block the stage
  weights.pull(0, Iteration(5), Clock(4), out);
  const std::size_t pulls = out.sent.size();
  CHECK(pulls == job->stages->share_of(WorkerId(4)).shards.size());
  weights.pull(0, Iteration(5), Clock(4), out);
  CHECK(out.sent.size() == pulls);
  CHECK(weights.pulled(0) == Iteration(5));
  CHECK_FALSE(weights.find(0, at(2)));
  CHECK_FALSE(weights.find(0, at(3)));
  for (const ShardId shard : job->stages->share_of(WorkerId(4)).shards) {
    msg::Weights answer;
    answer.iteration = Iteration(5);
    answer.number = 1;
    for (const BlockId id : job->stages->share_of(WorkerId(4)).at[shard.value()].blocks) {
      const std::int64_t floats = job->layout->block(id).floats;
      answer.blocks.push_back({id, Version(1), DType::f32, Shape{floats}, zeros(floats)});
    }
    REQUIRE(parameters.take_in(address_of(shard), answer));
  }
  const auto arrived = weights.find(0, at(5));
  REQUIRE(arrived);
  CHECK(weights.find(0, at(6)) == arrived);
  CHECK(weights.take_blocked() == seconds(3));
  CHECK(weights.take_blocked() == Duration());
  int versions = 0;
  weights.for_each([&](const auto&) { ++versions; });
  CHECK(versions == 1);
}

TEST_CASE("discarded versions drop their open pulls") {
  const auto job = pipeline_job();
  ParameterClient parameters(job, WorkerId(4));
  WeightVersions weights(job, parameters);
  StageOutbox out;
  for (const int version : {0, 1}) weights.pull(version, Iteration(5 + version), Clock(4), out);
  weights.forget_below(1);
  CHECK_FALSE(parameters.asked(Iteration(5)));
  CHECK(parameters.asked(Iteration(6)));
  CHECK(weights.newest() == 1);
  weights.clear();
  CHECK_FALSE(parameters.asked(Iteration(6)));
  CHECK_FALSE(weights.newest());
}

TEST_CASE("held memory counts weights that several micro-batches read once") {
  const auto job = pipeline_job();
  ParameterClient parameters(job, WorkerId(4));
  const WeightVersions none(job, parameters);
  const std::size_t blocks = job->layout->blocks().size();
  PulledWeights pulled{std::vector<Blob>(blocks), std::vector<Version>(blocks)};
  pulled.blobs[0] = zeros(100);
  const auto shared = std::make_shared<DeviceWeights>(job, std::move(pulled));
  MicroBatchesInFlight in_flight;
  for (std::uint32_t i = 0; i < 3; ++i) {
    auto micro_batch = std::make_shared<MicroBatch>();
    micro_batch->weights = shared;
    micro_batch->held = 1000 + i;
    in_flight.add({Iteration(1), i, 1}, micro_batch);
  }
  CHECK(in_flight.size() == 3);
  CHECK(in_flight.held_bytes({Iteration(1), 2, 1}, none) == 1002);  // `held` includes the weights
  PulledWeights other{std::vector<Blob>(blocks), std::vector<Version>(blocks)};
  other.blobs[0] = zeros(10);
  in_flight.at({Iteration(1), 0, 1})->weights =
      std::make_shared<DeviceWeights>(job, std::move(other));
  CHECK(in_flight.held_bytes({Iteration(1), 2, 1}, none) ==
        1002 + in_flight.at({Iteration(1), 0, 1})->weights->bytes());
  in_flight.erase({Iteration(1), 0, 1});
  CHECK_FALSE(in_flight.has({Iteration(1), 0, 1}));
}

TEST_CASE("an iteration divides its samples, and knows its first and last backward") {
  StageIteration iteration(leased(7), 3, 2);
  CHECK(iteration.size_of(0) + iteration.size_of(1) + iteration.size_of(2) == 7);
  CHECK(iteration.size_of(3) == 0);  // the schedule can have more micro-batches
  CHECK(iteration.count_backward(0));
  CHECK_FALSE(iteration.count_backward(0));
  CHECK(iteration.count_backward(1));
  CHECK_FALSE(iteration.count_summed(0));
  CHECK_FALSE(iteration.count_summed(0));
  CHECK(iteration.count_summed(0));
  CHECK_FALSE(iteration.count_summed(1));
  iteration.add({.loss = 0.5, .correct = 2}, 4);
  iteration.add({.loss = 1, .correct = 1}, 3);
  CHECK(iteration.loss_sum == 5);
  CHECK(iteration.correct == 3);
}

TEST_CASE("waits add to the report by neighbour, and together") {
  StageWaits waits;
  msg::WorkerReport report;
  waits.begin(at(1));
  waits.wait_for(StageWait::previous, at(2), report);
  waits.wait_for(StageWait::next, at(4), report);
  waits.wait_for(StageWait::weights, at(7), report);
  waits.wait_for(StageWait::none, at(11), report);
  CHECK(report.wait_before == seconds(2));
  CHECK(report.wait_after == seconds(3));
  waits.wait_for(StageWait::next, at(12), report);
  waits.end(at(14), report);  // for another Start
  CHECK(report.wait_after == seconds(5));
  CHECK(report.wait == seconds(13));
  waits.end(at(20), report);  // the stage computes already
  CHECK(report.wait == seconds(13));
}

TEST_CASE("the norm of a pipeline passes from the last stage to the first, and back") {
  const auto job = pipeline_job(2);
  StageOutbox out;
  const auto last_sent = [&] {
    REQUIRE_FALSE(out.sent.empty());
    const auto [to, envelope] = std::move(out.sent.back());
    out.sent.pop_back();
    CHECK(out.sent.empty());
    return std::pair(to, std::get<msg::GradientNorm>(envelope.body));
  };
  struct One {
    One(const std::shared_ptr<const Job>& job, std::uint32_t stage)
        : position(job, WorkerId(stage)), sender(position, {}), norms(position, sender, 2) {}
    StagePosition position;
    StageSender sender;
    StageNorms norms;
  };
  One first(job, 0), middle(job, 1), last(job, 2);
  const Iteration at(4);
  first.norms.add(at, 1, out);
  first.norms.add(at, 2, out);
  middle.norms.add(at, 10, out);
  last.norms.add(at, 100, out);
  CHECK(out.sent.empty());  // each waits for its second chunk, or for later stages
  last.norms.add(at, 200, out);
  auto [to, norm] = last_sent();
  CHECK(to == worker(1));
  CHECK(norm.squares == 300);
  CHECK(middle.norms.receive(worker(2), norm, out));
  CHECK(middle.norms.receive(worker(2), norm, out));  // a repeat
  CHECK(out.sent.empty());
  middle.norms.add(at, 20, out);
  std::tie(to, norm) = last_sent();
  CHECK(to == worker(0));
  CHECK(norm.squares == 330);
  CHECK_FALSE(first.norms.total(at));
  CHECK_FALSE(first.norms.receive(worker(2), norm, out));  // a neighbour, but not the next stage
  CHECK(first.norms.receive(worker(1), norm, out));
  CHECK(first.norms.total(at) == 333);
  for (One* stage : {&middle, &last}) {
    std::tie(to, norm) = last_sent();
    CHECK(to == worker(stage == &middle ? 1 : 2));
    CHECK(norm.squares == 333);
    CHECK_FALSE(stage->norms.total(at));
    CHECK(stage->norms.receive(worker(stage == &middle ? 0 : 1), norm, out));
    CHECK(stage->norms.total(at) == 333);
  }
  CHECK(out.sent.empty());
  middle.norms.forget(at);
  CHECK_FALSE(middle.norms.total(at));
}

}  // namespace leeway::test
