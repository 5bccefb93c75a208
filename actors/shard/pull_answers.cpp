#include "actors/shard/pull_answers.hpp"

#include <utility>

#include "actors/shard/predicted_weights.hpp"
#include "messages/envelope.hpp"
#include "policies/codec/blobs.hpp"

namespace leeway {

void PullAnswers::begin(WorkerId worker, const msg::Pull& pull, float loss_scale,
                        std::span<const std::uint32_t> shard_buckets, Outbox& out) {
  auto answer = std::make_shared<Answer>(Answer{worker,
                                                clocks_.find(worker)->session,
                                                {pull.iteration, {}, pull.number, loss_scale},
                                                shard_buckets.size()});
  for (const std::uint32_t bucket : shard_buckets) {
    const auto take = [this, answer, worker](const std::vector<BlockState>& states) {
      for (const auto& state : states) {
        answer->weights.blocks.push_back(prepared(state, worker));
        report_.pull_bytes += answer->weights.blocks.back().data.size();
        report_.plain_pull_bytes += static_cast<std::uint64_t>(state.block->floats) * sizeof(float);
      }
      if (--answer->missing == 0) complete_.push_back(answer);
    };
    buckets_.enqueue(
        bucket, ParameterBucket::Capture{take, ParameterBucket::Reader{worker, pull.iteration}});
  }
  for (const std::uint32_t bucket : shard_buckets) buckets_.run(bucket, out);
  send_complete(out);
}

msg::BlockData PullAnswers::prepared(const BlockState& state, WorkerId worker) {
  msg::BlockData data = state.describe();
  const Codec* const codec = job_->pull_codec_of(*state.block);
  const std::int64_t lag = job_->plan.pipeline.predict_weights
                               ? job_->stages->version_lag(job_->stages->stage_of(worker))
                               : 0;
  if (!codec && lag == 0) return data;
  auto& [version, bytes] = prepared_[{state.block->id, lag}];
  if (!bytes || version != state.version) {
    bytes = predicted_weights(*job_, state, lag);
    if (codec) bytes = encode_blob(*codec, bytes, state.block->floats);
    version = state.version;
  }
  data.data = bytes;
  if (codec) data.codec = id_of(job_->plan.compress.pull);
  return data;
}

void PullAnswers::send_complete(Outbox& out) {
  while (!complete_.empty()) {
    const auto answer = std::move(complete_.back());
    complete_.pop_back();
    if (clocks_.may_push(answer->worker, answer->session))
      out.send(address_of(answer->worker),
               encode({.session = answer->session, .body = std::move(answer->weights)}));
  }
}

}  // namespace leeway
