#pragma once
// ParameterClient: a participant's side of the data path. It pulls the weights of its blocks, and
// keeps what it has pushed until the shards have acknowledged it.
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "actors/job.hpp"
#include "actors/outbox.hpp"
#include "messages/envelope.hpp"

namespace leeway {

/// What one pull has brought: by block of the layout, nothing for those of other stages.
struct PulledWeights {
  std::vector<Blob> blobs;
  std::vector<Version> versions;
};

/// An iteration, as far as its pushes tell of it.
struct PushedIteration {
  Iteration iteration;
  double weight = 0;  // samples / samples of one round
  std::uint32_t samples = 0;
  /// What has its samples already, and gets an empty push (see msg::Lease).
  std::vector<msg::AppliedBucket> applied;
};

class ParameterClient {
 public:
  ParameterClient(std::shared_ptr<const Job> job, WorkerId id);

  /// Begins a life: nothing is asked for, and nothing waits to be acknowledged.
  void begin(Incarnation incarnation);

  // Pulls.
  /// `own_clock`: iterations that have been pushed.
  void pull(Iteration iteration, Clock own_clock, Outbox& out);
  bool asked(Iteration iteration) const { return incoming_.contains(iteration); }
  /// Everything has arrived that was asked for. Requires asked().
  bool arrived(Iteration iteration) const { return incoming_.at(iteration).missing == 0; }
  PulledWeights take(Iteration iteration);
  void forget_below(Iteration iteration);
  void forget(Iteration iteration) { incoming_.erase(iteration); }
  /// Takes in an answer: true when it was the last that a pull waited for. The error says what does
  /// not fit.
  Expected<bool> take_in(Address from, msg::Weights& weights);

  // Pushes.
  /// Pushes what backward of a layer has finished. `gradient(block)` gives the block's gradient.
  template <class Gradient>
  void push_layer(const PushedIteration& of, int layer, const std::vector<Version>& versions,
                  Gradient gradient, Outbox& out);
  /// Pushes an iteration without samples.
  void push_empty(Iteration iteration, Outbox& out);
  /// Takes in an acknowledgement: true when the shard has acknowledged all.
  Expected<bool> take_in(Address from, const msg::Pushed& pushed);
  bool all_acknowledged() const;
  /// Of a participant that has pushed its iterations below `pushed`: those that all shards have
  /// acknowledged.
  Clock acknowledged(Clock pushed) const;

  /// True while a part of an earlier iteration has to be sent to the shard again.
  bool keeps_earlier(Address shard, Iteration iteration) const;
  /// The link to `peer` works again: sends what may have been lost.
  void on_link(Address peer, Outbox& out);

 private:
  /// Weights of one iteration, while they come in.
  struct Incoming {
    msg::Pull pull;
    std::vector<bool> arrived;  // by shard
    std::size_t missing = 0;
    PulledWeights weights;
  };
  /// A part that its shard has not acknowledged yet.
  struct Unacknowledged {
    Iteration iteration;
    std::uint32_t bucket = 0;
    Message message;
  };

  const StageShare& share() const { return job_->stages->share_of(id_); }
  bool already_applied(const PushedIteration& of, ShardId shard, std::uint32_t part) const;
  void push(ShardId shard, msg::Push push, Outbox& out);
  void send(Address to, Body body, Outbox& out) const;

  std::shared_ptr<const Job> job_;
  WorkerId id_;
  Incarnation incarnation_{1};
  std::map<Iteration, Incoming> incoming_;
  std::vector<std::vector<Unacknowledged>> unacknowledged_;  // by shard, in order
};

template <class Gradient>
void ParameterClient::push_layer(const PushedIteration& of, int layer,
                                 const std::vector<Version>& versions, Gradient gradient,
                                 Outbox& out) {
  for (const ShardId shard : share().shards) {
    const auto& parts = share().at[shard.value()].parts;
    for (const auto& part : parts) {
      if (part.layer != layer) continue;
      msg::Push message;
      message.iteration = of.iteration;
      message.bucket = part.index;
      message.bucket_count = static_cast<std::uint32_t>(parts.size());
      if (already_applied(of, shard, part.index)) {
        message.kind = msg::Push::Kind::empty;
        for (const BlockId id : part.blocks) gradient(id);  // nobody else will take it
      } else {
        message.weight = of.weight;
        message.samples = of.samples;
        for (const BlockId id : part.blocks)
          message.blocks.push_back({id, versions[id.value()], DType::f32,
                                    Shape{job_->layout->block(id).floats}, gradient(id)});
      }
      push(shard, std::move(message), out);
    }
  }
}

}  // namespace leeway
