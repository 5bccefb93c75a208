// No message, whatever its claimed sender, triggers a bug in a worker or a stage. The bytes select
// a plan, a participant, and a sequence of messages, answers of honest peers and broken links, so
// that hostile messages arrive in the middle of work. A participant that a peer refuses correctly
// ends with an exception; a CheckFailed is a bug.
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include "actors/stage/tensor_codec.hpp"
#include "actors/worker/participant.hpp"
#include "policies/codec/blobs.hpp"
#include "policies/pipeline/schedule.hpp"
#include "tests/fuzz/role_bytes.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {
namespace {

Plan piped_plan(const char* schedule, const plan::Consistency& consistency) {
  Plan plan = tiny_plan();
  plan.model = {plan::Linear{6}, plan::Relu{},    plan::Linear{5}, plan::Relu{},
                plan::Linear{4}, plan::Linear{5}, plan::Linear{4}, plan::Linear{3}};
  plan.consistency = consistency;
  plan.pipeline.stages = 3;
  plan.pipeline.schedule = schedule;
  plan.pipeline.chunks = static_cast<std::uint32_t>(pipeline::usual_chunks(schedule));
  plan.workers = 6;
  plan.micro_batches = 3;
  plan.batch = 6;
  return plan;
}

/// Workers with the whole model first, then pipelines of three stages by five schedules, encodings,
/// losses with a factor, and host groups.
std::vector<std::shared_ptr<const Job>> make_jobs() {
  std::vector<std::shared_ptr<const Job>> made;
  const auto whole = [&](const plan::Consistency& consistency, bool prefetch) {
    Plan plan = tiny_plan();
    plan.consistency = consistency;
    plan.prefetch = prefetch;
    made.push_back(job_of(plan));
  };
  whole(plan::Bsp{}, false);
  whole(plan::Ssp{1}, true);
  whole(plan::Asp{}, true);
  whole(plan::Backup{1}, false);
  for (const auto& [schedule, consistency] :
       {std::pair("1f1b", plan::Consistency(plan::Bsp{})),
        std::pair("weight_stashing", plan::Consistency(plan::Ssp{2})),
        std::pair("2bw", plan::Consistency(plan::Asp{})),
        std::pair("interleaved", plan::Consistency(plan::Ssp{1})),
        std::pair("zb_v", plan::Consistency(plan::Ssp{1}))})
    made.push_back(job_of(piped_plan(schedule, consistency)));
  Plan encoded = tiny_plan();
  encoded.compress.push = plan::TopK{0.1};
  encoded.compress.pull = plan::Int8{};
  made.push_back(job_of(encoded));
  Plan encoded_stages = piped_plan("1f1b", plan::Bsp{});
  encoded_stages.compress = {plan::Int4{}, plan::Fp16{}, plan::Bf16{}, plan::Int8{}};
  made.push_back(job_of(encoded_stages));
  Plan scaled = tiny_plan();
  scaled.consistency = plan::Bsp{};
  scaled.precision = "fp16";
  made.push_back(job_of(scaled));
  Plan grouped = scaled;
  grouped.workers = 4;
  grouped.aggregate = plan::GroupsOf{2};
  made.push_back(job_of(grouped));
  return made;
}

const std::shared_ptr<const Job>& job(std::uint8_t choice) {
  static const auto jobs = make_jobs();
  return jobs[choice % jobs.size()];
}

/// Keeps the sent messages until they are answered.
class PeersOutbox final : public NullOutbox {
 public:
  void send(Address to, Message message) override {
    auto sent = decode(message);
    if (!sent) return;  // a hostile Start can make the iteration exceed all limits
    if (const auto* join = std::get_if<msg::Join>(&sent->body)) nonce = join->nonce;
    if (sent_.size() < 1000) sent_.emplace_back(to, std::move(*sent));
  }
  std::optional<std::pair<Address, Envelope>> next() {
    if (sent_.empty()) return std::nullopt;
    auto first = std::move(sent_.front());
    sent_.pop_front();
    return first;
  }

  JoinNonce nonce;  // of its last Join
  Session session;  // of the last honest Start

 private:
  std::deque<std::pair<Address, Envelope>> sent_;
};

/// The participant's honest peers.
class Peers {
 public:
  Peers(std::shared_ptr<const Job> job, WorkerId id) : job_(std::move(job)), id_(id) {}

  /// Answers the participant's oldest message if it needs an answer.
  void answer(Role& role, PeersOutbox& out) {
    const auto sent = out.next();
    if (!sent) return;
    const auto& [to, envelope] = *sent;
    const bool starts = std::holds_alternative<msg::Join>(envelope.body) ||
                        std::holds_alternative<msg::Idle>(envelope.body);
    if (starts) {
      out.session = Session(out.session.value() + 1);
      deliver(kScheduler, msg::Start{at_, out.nonce}, role, out);
    } else if (const auto* pull = std::get_if<msg::Pull>(&envelope.body)) {
      deliver(to, weights(ShardId(to.index), *pull), role, out);
    } else if (const auto* push = std::get_if<msg::Push>(&envelope.body)) {
      deliver(to, msg::Pushed{push->iteration, push->bucket}, role, out);
    } else if (const auto* want = std::get_if<msg::WantLease>(&envelope.body)) {
      const auto batch = static_cast<std::uint32_t>(job_->plan.batch);
      deliver(kScheduler,
              msg::Lease{LeaseId(1), Epoch(0), 0, 2 * batch, want->next, batch, batch, {}}, role,
              out);
    } else if (const auto* output = std::get_if<msg::Activation>(&envelope.body)) {
      deliver(to,
              msg::OutputGradient{output->iteration, output->micro_batch, output->chunk - 1,
                                  gradient_of(output->tensor), Clock()},
              role, out);
    }
  }
  /// The previous stage begins an iteration.
  void mini_batch(Role& role, PeersOutbox& out) {
    const Stages& stages = *job_->stages;
    const std::uint32_t stage = stages.stage_of(id_);
    if (stage == 0) return;
    const Address before = address_of(WorkerId(id_.value() - 1));
    const std::uint32_t batch = job_->plan.batch;
    deliver(before, msg::MiniBatch{at_, Epoch(0), 0, batch, batch, {}}, role, out);
    const auto owner_of = [&](std::uint32_t chunk) {
      return static_cast<std::uint32_t>(stages.placement().stage_of(static_cast<int>(chunk)));
    };
    for (std::uint32_t chunk = 1; chunk < stages.chunks().size(); ++chunk) {
      const std::uint32_t sender = owner_of(chunk - 1);
      if (owner_of(chunk) != stage || sender == stage) continue;
      const Address from = address_of(stages.worker(stages.lead_of(id_), sender));
      for (std::uint32_t i = 0; i < job_->plan.micro_batches; ++i)
        deliver(from, activation(i, chunk), role, out);
    }
    at_ = at_ + 1;
  }

 private:
  template <class T>
  void deliver(Address from, T body, Role& role, PeersOutbox& out) {
    role.on_message(from, encode({.session = out.session, .body = std::move(body)}), out);
  }
  msg::Weights weights(ShardId shard, const msg::Pull& pull) const {
    msg::Weights answer{.iteration = pull.iteration, .number = pull.number};
    for (const BlockId id : job_->stages->share_of(id_).at[shard.value()].blocks) {
      const std::int64_t floats = job_->layout->block(id).floats;
      msg::BlockData block{id, Version(pull.iteration.value()), DType::f32, Shape{floats},
                           zeros(floats)};
      if (job_->pull_codec) {
        block.data = encode_blob(*job_->pull_codec, block.data, floats);
        block.codec = id_of(job_->plan.compress.pull);
      }
      answer.blocks.push_back(std::move(block));
    }
    return answer;
  }
  msg::Activation activation(std::uint32_t micro_batch, std::uint32_t chunk) const {
    const auto& range = job_->stages->chunks()[chunk];
    const std::int64_t samples = job_->plan.batch / job_->plan.micro_batches;
    const std::int64_t width = job_->model->output_of(range.first - 1).count();
    return {at_, micro_batch, chunk,
            TensorCodec(job_->plan.compress.activations)
                .encode(Shape{samples, width}, zeros(samples * width))};
  }
  msg::StageTensor gradient_of(const msg::StageTensor& output) const {
    return TensorCodec(job_->plan.compress.activation_gradients)
        .encode(output.shape, zeros(output.shape.count()));
  }
  static Blob zeros(std::int64_t floats) {
    Blob blob = Blob::floats(floats);
    if (blob.size() > 0) std::memset(blob.mutable_data(), 0, blob.size());
    return blob;
  }

  std::shared_ptr<const Job> job_;
  WorkerId id_;
  Iteration at_;
};

void run(std::span<const std::uint8_t> input) {
  const auto& of = job(input.empty() ? 0 : input[0]);
  std::vector<std::int64_t> sizes;
  for (const auto& block : of->layout->blocks()) sizes.push_back(block.floats);
  Bytes bytes(input.subspan(input.empty() ? 0 : 1), std::move(sizes), of->pull_codec.get(),
              id_of(of->plan.compress.pull));
  const WorkerId id(bytes.byte() % of->plan.workers);
  const auto role = make_participant(of, id);
  PeersOutbox out;
  Peers peers(of, id);
  role->on_start(out);
  while (!bytes.empty()) {
    const std::uint8_t choice = bytes.byte();
    if (choice < 128) {
      peers.answer(*role, out);
    } else if (choice < 160) {
      peers.mini_batch(*role, out);
    } else if (choice < 240) {
      const Address from = bytes.address();
      Envelope envelope{.session = choice < 232 ? out.session : Session(choice % 4)};
      envelope.body = bytes.body();
      role->on_message(from, encode(envelope), out);
    } else if (choice < 248) {
      role->on_timer(choice % 3, out);
    } else {
      role->on_link(bytes.address(), out);
    }
    if (choice % 8 < 7) out.do_work(*role);  // otherwise the work remains unfinished
  }
}

}  // namespace
}  // namespace leeway::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    leeway::test::run({data, size});
  } catch (const std::runtime_error&) {
    // A peer refused the participant.
  }
  return 0;
}
