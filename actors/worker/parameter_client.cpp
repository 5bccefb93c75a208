#include "actors/worker/parameter_client.hpp"

#include <algorithm>

#include "core/mutant.hpp"
#include "core/text.hpp"
#include "policies/codec/blobs.hpp"

namespace leeway {

ParameterClient::ParameterClient(std::shared_ptr<const Job> job, WorkerId id)
    : job_(std::move(job)), id_(id), encoder_(job_, id), unacknowledged_(job_->layout->shards()) {}

void ParameterClient::begin(Session session) {
  session_ = session;
  incoming_.clear();
  for (auto& shard : unacknowledged_) shard.clear();
  encoder_.forget_pushed();
}

void ParameterClient::send(Address to, Body body, Outbox& out) const {
  out.send(to, encode({.session = session_, .body = std::move(body)}));
}

// ---- pulls ----

void ParameterClient::pull(Iteration iteration, Clock own_clock, Outbox& out) {
  auto& incoming = incoming_[iteration];
  incoming.pull = msg::Pull{iteration, own_clock, DType::f32, ++pulls_};
  incoming.arrived.assign(job_->layout->shards(), true);  // except those asked below
  incoming.missing = share().shards.size();
  incoming.weights.blobs.resize(job_->layout->blocks().size());
  incoming.weights.versions.resize(job_->layout->blocks().size());
  for (const ShardId shard : share().shards) {
    incoming.arrived[shard.value()] = false;
    send(address_of(shard), incoming.pull, out);
  }
}

PulledWeights ParameterClient::take(Iteration iteration) {
  return std::move(incoming_.extract(iteration).mapped().weights);
}

void ParameterClient::outdate(Iteration iteration) {
  const auto found = incoming_.find(iteration);
  if (found == incoming_.end()) return;
  found->second.outdated = true;
  if (found->second.missing == 0) incoming_.erase(found);
}

void ParameterClient::forget_below(Iteration iteration) {
  incoming_.erase(incoming_.begin(), incoming_.lower_bound(iteration));
}

Blob ParameterClient::decoded(msg::BlockData block) const {
  if (block.codec == CodecId::none) return std::move(block.data);
  return decode_blob(*job_->pull_codec, block.data, block.shape.count());
}

Expected<bool> ParameterClient::take_in(Address from, msg::Weights& weights) {
  const auto found = incoming_.find(weights.iteration);
  if (found == incoming_.end()) return false;  // forgotten
  if (from.kind != RoleKind::shard || from.index >= job_->layout->shards())
    return Error{concat("weights of ", from, ", which is not a shard of this run")};
  auto& incoming = found->second;
  if (weights.number != incoming.pull.number) return false;  // of an earlier pull
  if (incoming.arrived[from.index]) return false;
  const auto& expected = share().at[from.index].blocks;
  if (weights.blocks.size() != expected.size()) return Error{"weights of another placement"};
  if ((weights.loss_scale > 0) != job_->scales_losses)
    return Error{concat("weights with a loss scale of ", weights.loss_scale)};
  std::vector<BlockId> sent;
  for (auto& block : weights.blocks) {
    sent.push_back(block.block);
    const bool ours = std::binary_search(expected.begin(), expected.end(), block.block);
    if (!ours || block.dtype != DType::f32 ||
        block.shape.count() != job_->layout->block(block.block).floats)
      return Error{concat("weights: block ", block.block, " does not fit")};
    if (const Status valid = check_encoding(block.codec, block.data, block.shape.count(),
                                            id_of(job_->plan.compress.pull),
                                            job_->pull_codec_of(job_->layout->block(block.block)));
        !valid)
      return Error{concat("weights: block ", block.block, ": ", valid.error().text)};
  }
  std::sort(sent.begin(), sent.end());
  if (const auto twice = std::adjacent_find(sent.begin(), sent.end()); twice != sent.end())
    return Error{concat("weights: block ", *twice, " comes twice")};
  float& scale = incoming.weights.loss_scale;
  scale = scale > 0 ? std::min(scale, weights.loss_scale) : weights.loss_scale;
  for (auto& block : weights.blocks) {
    incoming.weights.blobs[block.block.value()] = decoded(std::move(block));
    incoming.weights.versions[block.block.value()] =
        block.version + (planted(Mutant::gradient_of_other_weights) ? 1 : 0);
  }
  incoming.arrived[from.index] = true;
  if (--incoming.missing > 0) return false;
  if (incoming.outdated) incoming_.erase(found);
  return true;
}

// ---- pushes ----

bool ParameterClient::already_applied(const PushedIteration& of, ShardId shard,
                                      std::uint32_t bucket) const {
  if (planted(Mutant::applied_buckets_pushed_again)) return false;
  const msg::AppliedBucket wanted{static_cast<std::uint16_t>(job_->stages->stage_of(id_)),
                                  static_cast<std::uint16_t>(shard.value()), bucket};
  return std::binary_search(of.applied.begin(), of.applied.end(), wanted);
}

std::vector<std::uint32_t> ParameterClient::slices_of(const Bucket& bucket,
                                                      const AssignedSlices& assigned) const {
  std::vector<std::uint32_t> numbers;
  std::uint32_t first = 0;
  for (const BlockId id : bucket.blocks) {
    if (const auto found = assigned.find(id); found != assigned.end())
      for (const std::uint32_t slice : found->second) numbers.push_back(first + slice);
    first += static_cast<std::uint32_t>(job_->layout->block(id).slices.size());
  }
  return numbers;
}

void ParameterClient::push(ShardId shard, msg::Push push, Outbox& out) {
  const Unacknowledged waiting{push.iteration, push.bucket,
                               encode({.session = session_, .body = std::move(push)})};
  unacknowledged_[shard.value()].push_back(waiting);
  out.send(address_of(shard), waiting.message);
}

void ParameterClient::push_overflow(const PushedIteration& of, Outbox& out) {
  for (const ShardId shard : share().shards) {
    const auto& buckets = share().at[shard.value()].buckets;
    for (const Bucket& bucket : buckets) {
      if (already_applied(of, shard, bucket.index)) {
        push_empty(of.iteration, shard, bucket, out);
        continue;
      }
      msg::Push message;
      message.iteration = of.iteration;
      message.bucket = bucket.index;
      message.bucket_count = static_cast<std::uint32_t>(buckets.size());
      message.kind = msg::Push::Kind::overflow;
      message.weight = of.weight;
      message.samples = of.samples;
      message.loss_scale = of.loss_scale;
      push(shard, std::move(message), out);
    }
  }
}

void ParameterClient::push_empty(Iteration iteration, Outbox& out) {
  for (const ShardId shard : share().shards)
    for (const Bucket& bucket : share().at[shard.value()].buckets)
      push_empty(iteration, shard, bucket, out);
}

void ParameterClient::push_empty(Iteration iteration, int layer, Outbox& out) {
  for (const ShardId shard : share().shards)
    for (const Bucket& bucket : share().at[shard.value()].buckets)
      if (bucket.layer == layer) push_empty(iteration, shard, bucket, out);
}

void ParameterClient::push_empty(Iteration iteration, ShardId shard, const Bucket& bucket,
                                 Outbox& out) {
  msg::Push message;
  message.iteration = iteration;
  message.bucket = bucket.index;
  message.bucket_count = static_cast<std::uint32_t>(share().at[shard.value()].buckets.size());
  message.kind = msg::Push::Kind::empty;
  push(shard, std::move(message), out);
}

Expected<bool> ParameterClient::take_in(Address from, const msg::Pushed& pushed) {
  if (from.kind != RoleKind::shard || from.index >= unacknowledged_.size())
    return Error{concat("an acknowledgement of ", from, ", which is not a shard of this run")};
  auto& kept = unacknowledged_[from.index];
  const auto known = std::erase_if(kept, [&](const Unacknowledged& waiting) {
    return waiting.iteration == pushed.iteration && waiting.bucket == pushed.bucket;
  });
  if (known > 0)
    for (const BlockId block : share().at[from.index].buckets.at(pushed.bucket).blocks)
      encoder_.acknowledged(block, pushed.iteration, pushed.dropped);
  return kept.empty();
}

bool ParameterClient::all_acknowledged() const {
  return std::all_of(unacknowledged_.begin(), unacknowledged_.end(),
                     [](const auto& waiting) { return waiting.empty(); });
}

Clock ParameterClient::acknowledged(Clock pushed) const {
  for (const auto& shard : unacknowledged_)
    for (const auto& waiting : shard) pushed = std::min(pushed, Clock(waiting.iteration.value()));
  return pushed;
}

bool ParameterClient::keeps_earlier(Address shard, Iteration iteration) const {
  if (shard.kind != RoleKind::shard || shard.index >= unacknowledged_.size()) return false;
  const auto& kept = unacknowledged_[shard.index];
  return !kept.empty() && kept.front().iteration < iteration;
}

void ParameterClient::on_link(Address peer, Outbox& out) {
  if (peer.kind != RoleKind::shard || peer.index >= unacknowledged_.size()) return;
  if (!planted(Mutant::push_not_sent_again))
    for (const auto& waiting : unacknowledged_[peer.index]) out.send(peer, waiting.message);
  if (share().at[peer.index].buckets.empty()) return;
  for (const auto& [iteration, incoming] : incoming_)
    if (!incoming.arrived[peer.index]) send(peer, incoming.pull, out);
}

}  // namespace leeway
