#pragma once
// RoundNorms: the norm of a round's gradient over all shards, which limits the update of the round.
//
// A shard measures its part of each round and sends it to all others. When it knows all parts, the
// updates of the round run, at every shard with the same scale. A round that has passed without a
// push here has the part 0. A shard keeps a part until no other needs it, and asks again for one
// that a broken link has lost.
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "actors/outbox.hpp"
#include "core/ids.hpp"
#include "messages/shard_shard.hpp"
#include "messages/shard_state.hpp"

namespace leeway {

class RoundNorms {
 public:
  /// A bucket whose update may run with this scale.
  struct Ready {
    std::uint32_t bucket;
    float scale;
  };

  /// `most`: the largest norm.
  RoundNorms(ShardId self, std::uint32_t shards, double most);

  /// A bucket here will be measured in this round.
  void expect(Iteration round) { ++at(round).unmeasured; }
  /// All buckets of the round are expected.
  void close(Iteration round, Outbox& out);
  /// The sum of the squares of the bucket's mean gradient.
  void measured(Iteration round, std::uint32_t bucket, double squares, Outbox& out);
  /// Requires another shard of the run as the sender.
  void received(ShardId from, const msg::RoundNorm& part, Outbox& out);
  /// All rounds below this one that have a push here are closed.
  void passed(Iteration below, Outbox& out);
  /// No round gets another push: all that have a push here are closed.
  void end(Outbox& out);
  /// Asks for the parts that updates here wait for.
  void ask(Outbox& out) const;
  /// Whether no update here waits for a norm.
  bool is_idle() const;
  /// Requires is_idle().
  msg::RoundNormsState save() const;
  void restore(const msg::RoundNormsState& state);

  /// Number of rounds whose parts are kept.
  std::size_t kept() const { return rounds_.size(); }
  /// Moves out the buckets that have become ready.
  std::vector<Ready> take_ready() { return std::exchange(ready_, {}); }

 private:
  struct Round {
    std::size_t unmeasured = 0;
    bool closed = false;
    std::map<std::uint32_t, double> waiting;   // by bucket: its squares
    std::vector<std::optional<double>> parts;  // by shard

    bool waits() const { return unmeasured > 0 || !waiting.empty(); }
  };
  Round& at(Iteration number);
  void finish_part(Iteration number, Round& round, Outbox& out);
  void release(Round& round);
  void send(std::uint32_t shard, Iteration number, bool asks, Outbox& out) const;
  Iteration needed_here() const;
  void discard();

  ShardId self_;
  double most_;
  Iteration passed_;
  std::map<Iteration, Round> rounds_;
  std::vector<Iteration> needed_;  // by shard: it needs no part of a round below this one
  Iteration discarded_;            // rounds below are discarded
  std::vector<Ready> ready_;
};

}  // namespace leeway
