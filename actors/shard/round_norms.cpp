#include "actors/shard/round_norms.hpp"

#include <algorithm>

#include "core/limits.hpp"
#include "messages/envelope.hpp"
#include "policies/optimizer/clip.hpp"

namespace leeway {
RoundNorms::RoundNorms(ShardId self, std::uint32_t shards, double most)
    : self_(self), most_(most), needed_(shards) {}

RoundNorms::Round& RoundNorms::at(Iteration number) {
  Round& round = rounds_[number];
  round.parts.resize(needed_.size());
  return round;
}

void RoundNorms::close(Iteration number, Outbox& out) {
  Round& round = at(number);
  round.closed = true;
  finish_part(number, round, out);
}

void RoundNorms::measured(Iteration number, std::uint32_t bucket, double squares, Outbox& out) {
  Round& round = at(number);
  --round.unmeasured;
  round.waiting[bucket] = squares;
  finish_part(number, round, out);
}

void RoundNorms::received(ShardId from, const msg::RoundNorm& part, Outbox& out) {
  auto& needed = needed_[from.value()];
  needed = std::max(needed, part.below);
  discard();
  if (part.round < discarded_) return;  // a repeat
  Round& round = at(part.round);
  auto& known = round.parts[from.value()];
  if (!known) known = part.squares;
  if (part.round < passed_ && !round.closed) return close(part.round, out);
  if (part.asks && round.parts[self_.value()]) send(from.value(), part.round, false, out);
  release(round);
}

void RoundNorms::passed(Iteration below, Outbox& out) {
  passed_ = std::max(passed_, below);
  for (auto& [number, round] : rounds_) {
    if (number >= passed_) break;
    if (!round.closed) close(number, out);
  }
  discard();
}

void RoundNorms::end(Outbox& out) {
  passed(Iteration(limits::kCountEnd - 1), out);
}

bool RoundNorms::is_idle() const {
  return ready_.empty() && std::none_of(rounds_.begin(), rounds_.end(),
                                        [](const auto& round) { return round.second.waits(); });
}

msg::RoundNormsState RoundNorms::save() const {
  msg::RoundNormsState state{passed_, discarded_, needed_, {}};
  for (const auto& [number, round] : rounds_) {
    auto& saved = state.rounds.emplace_back();
    saved.round = number;
    saved.closed = round.closed;
    for (std::uint32_t shard = 0; shard < round.parts.size(); ++shard)
      if (round.parts[shard]) saved.parts.push_back({ShardId(shard), *round.parts[shard]});
  }
  return state;
}

void RoundNorms::restore(const msg::RoundNormsState& state) {
  passed_ = state.passed;
  discarded_ = state.discarded;
  if (state.needed.size() == needed_.size()) needed_ = state.needed;
  rounds_.clear();
  for (const auto& saved : state.rounds) {
    Round& round = at(saved.round);
    round.closed = saved.closed;
    for (const auto& part : saved.parts) round.parts.at(part.shard.value()) = part.squares;
  }
}

/// Sends this shard's part of the round once it is known.
void RoundNorms::finish_part(Iteration number, Round& round, Outbox& out) {
  auto& own = round.parts[self_.value()];
  if (own || !round.closed || round.unmeasured > 0) return;
  own = 0;
  for (const auto& [bucket, squares] : round.waiting) *own += squares;
  for (std::uint32_t shard = 0; shard < needed_.size(); ++shard)
    if (shard != self_.value()) send(shard, number, false, out);
  release(round);
}

/// Lets the updates of the round run once all parts are known. The sum is in the order of the
/// shards, so all of them get the same scale.
void RoundNorms::release(Round& round) {
  double squares = 0;
  for (const auto& part : round.parts) {
    if (!part) return;
    squares += *part;
  }
  const float scale = clip_scale(squares, most_);
  for (const auto& [bucket, unused] : std::exchange(round.waiting, {}))
    ready_.push_back({bucket, scale});
}

void RoundNorms::ask(Outbox& out) const {
  for (const auto& [number, round] : rounds_) {
    if (!round.waits() || !round.parts[self_.value()]) continue;
    for (std::uint32_t shard = 0; shard < needed_.size(); ++shard)
      if (!round.parts[shard]) send(shard, number, true, out);
  }
}

void RoundNorms::send(std::uint32_t shard, Iteration number, bool asks, Outbox& out) const {
  out.send(address_of(ShardId(shard)),
           encode({.body = msg::RoundNorm{.round = number,
                                          .squares = *rounds_.at(number).parts[self_.value()],
                                          .below = needed_here(),
                                          .asks = asks}}));
}

/// The first round whose updates here wait, or may still begin.
Iteration RoundNorms::needed_here() const {
  const auto first = std::find_if(rounds_.begin(), rounds_.end(),
                                  [](const auto& round) { return round.second.waits(); });
  return first == rounds_.end() ? passed_ : std::min(passed_, first->first);
}

void RoundNorms::discard() {
  needed_[self_.value()] = needed_here();
  discarded_ = std::max(discarded_, *std::min_element(needed_.begin(), needed_.end()));
  rounds_.erase(rounds_.begin(), rounds_.lower_bound(discarded_));
}

}  // namespace leeway
