#pragma once
// ParameterClient: a participant's side of the data path. It pulls the weights of its blocks, and
// keeps its pushes until the shards acknowledge them.
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "actors/job.hpp"
#include "actors/outbox.hpp"
#include "actors/worker/push_encoder.hpp"
#include "messages/envelope.hpp"

namespace leeway {

/// The result of one pull, by block of the layout; empty for blocks of other stages.
struct PulledWeights {
  std::vector<Blob> blobs;
  std::vector<Version> versions;
  float loss_scale = 0;  // the smallest of the shards'; 0: losses have none
};

/// The common fields of an iteration's pushes.
struct PushedIteration {
  Iteration iteration;
  double weight = 0;  // samples / samples of one round
  std::uint32_t samples = 0;
  /// Buckets that have these samples already, and get an empty push (see msg::Lease).
  std::vector<msg::AppliedBucket> applied;
  float scale = 1;  // factor of its gradients
  msg::Push::Kind kind = msg::Push::Kind::gradient;
  bool flushes = false;  // the pushes carry the residuals in full
  float loss_scale = 0;  // of the loss; 0: none
};

/// By block: numbers of its slices.
using AssignedSlices = std::map<BlockId, std::set<std::uint32_t>>;

class ParameterClient {
 public:
  ParameterClient(std::shared_ptr<const Job> job, WorkerId id);

  /// Begins a session, without open pulls and pushes.
  void begin(Session session);

  // Pulls.
  /// `own_clock`: number of iterations pushed.
  void pull(Iteration iteration, Clock own_clock, Outbox& out);
  bool asked(Iteration iteration) const { return incoming_.contains(iteration); }
  /// Whether all shards have answered. Requires asked().
  bool arrived(Iteration iteration) const { return incoming_.at(iteration).missing == 0; }
  PulledWeights take(Iteration iteration);
  void forget_below(Iteration iteration);
  void forget(Iteration iteration) { incoming_.erase(iteration); }
  /// The weights for this iteration are too old: forgets the pull once all shards have answered it.
  void outdate(Iteration iteration);
  /// Handles an answer; true if it completes its pull. The error names the mismatch.
  Expected<bool> take_in(Address from, msg::Weights& weights);

  // Pushes.
  /// Pushes the buckets of a layer. `gradient(block)` returns the block's gradient. `assigned`: the
  /// slices of blocks that have new weights instead, in ascending order.
  template <class Gradient>
  void push_layer(const PushedIteration& of, int layer, const std::vector<Version>& versions,
                  Gradient gradient, Outbox& out, const AssignedSlices& assigned = {});
  /// Pushes that a gradient of the iteration is not finite, instead of the gradients.
  void push_overflow(const PushedIteration& of, Outbox& out);
  /// Pushes an iteration without samples.
  void push_empty(Iteration iteration, Outbox& out);
  /// Pushes no gradient for the buckets of a layer.
  void push_empty(Iteration iteration, int layer, Outbox& out);
  /// Handles an acknowledgement; true if the shard has acknowledged all pushes.
  Expected<bool> take_in(Address from, const msg::Pushed& pushed);
  bool all_acknowledged() const;
  /// The clock below which all shards have acknowledged all iterations. Requires that the
  /// iterations below `pushed` were pushed.
  Clock acknowledged(Clock pushed) const;

  /// Whether a bucket of an earlier iteration has no acknowledgement of the shard.
  bool keeps_earlier(Address shard, Iteration iteration) const;
  /// The link to `peer` works again: repeats the messages that may be lost.
  void on_link(Address peer, Outbox& out);

 private:
  /// The weights of one open pull.
  struct Incoming {
    msg::Pull pull;
    std::vector<bool> arrived;  // by shard
    std::size_t missing = 0;
    PulledWeights weights;
    bool outdated = false;
  };
  /// A push without an acknowledgement.
  struct Unacknowledged {
    Iteration iteration;
    std::uint32_t bucket = 0;
    Message message;
  };

  const StageShare& share() const { return job_->stages->share_of(id_); }
  /// Their numbers in the bucket.
  std::vector<std::uint32_t> slices_of(const Bucket& bucket, const AssignedSlices& assigned) const;
  Blob decoded(msg::BlockData block) const;
  bool already_applied(const PushedIteration& of, ShardId shard, std::uint32_t bucket) const;
  void push(ShardId shard, msg::Push push, Outbox& out);
  void push_empty(Iteration iteration, ShardId shard, const Bucket& bucket, Outbox& out);
  void send(Address to, Body body, Outbox& out) const;

  std::shared_ptr<const Job> job_;
  WorkerId id_;
  Session session_;
  PushEncoder encoder_;
  std::map<Iteration, Incoming> incoming_;
  std::uint32_t pulls_ = 0;
  std::vector<std::vector<Unacknowledged>> unacknowledged_;  // by shard, in order
};

template <class Gradient>
void ParameterClient::push_layer(const PushedIteration& of, int layer,
                                 const std::vector<Version>& versions, Gradient gradient,
                                 Outbox& out, const AssignedSlices& assigned) {
  for (const ShardId shard : share().shards) {
    const auto& buckets = share().at[shard.value()].buckets;
    for (const Bucket& bucket : buckets) {
      if (bucket.layer != layer) continue;
      msg::Push message;
      message.iteration = of.iteration;
      message.bucket = bucket.index;
      message.bucket_count = static_cast<std::uint32_t>(buckets.size());
      if (!assigned.empty()) message.assigned = slices_of(bucket, assigned);
      const bool applied = already_applied(of, shard, bucket.index);
      if (applied && message.assigned.empty()) {
        message.kind = msg::Push::Kind::empty;
        for (const BlockId id : bucket.blocks) gradient(id);  // frees it
      } else {
        message.kind = of.kind;
        message.weight = applied ? 0 : of.weight;  // then it only assigns
        message.samples = applied ? 0 : of.samples;
        message.scale = encoder_.is_active() ? 1 : of.scale;
        message.loss_scale = of.loss_scale;
        for (const BlockId id : bucket.blocks) {
          const Version version = versions[id.value()];
          if (message.assigned.empty()) {
            message.blocks.push_back(encoder_.encode(id, version, of.iteration, gradient(id),
                                                     of.scale, out, of.flushes));
          } else {
            const auto slices = assigned.find(id);
            message.blocks.push_back(encoder_.assign(
                id, version, of.iteration, gradient(id),
                slices == assigned.end() ? std::set<std::uint32_t>() : slices->second, of.scale,
                applied, out));
          }
        }
      }
      push(shard, std::move(message), out);
    }
  }
}

}  // namespace leeway
