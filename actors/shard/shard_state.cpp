// The state of a shard, for a new standby.
#include <algorithm>

#include "actors/shard/shard.hpp"
#include "core/limits.hpp"
#include "core/mutant.hpp"

namespace leeway {

bool Shard::is_quiet() const {
  return !finishing_ && buckets_.is_plain() && answers_.is_idle() && !snapshots_.is_pending() &&
         (!norms_ || norms_->is_idle()) && monitor_.unacknowledged() == 0;
}

Message Shard::save() const {
  msg::ShardState state;
  state.clocks = clocks_.save();
  state.bounds = gate_.bounds().save();
  state.pulls = gate_.save();
  state.tied = tied_.save();
  if (!planted(Mutant::rounds_not_seeded)) state.rounds = apply_->save();
  state.expected = acknowledgements_.save();
  if (norms_) state.norms = norms_->save();
  if (open_pulls_) state.open_pulls = open_pulls_->save();
  if (loss_scale_) state.loss_scale = loss_scale_->save();
  state.scheduler = scheduler_.save();
  state.monitor = monitor_.save();
  state.report = report_;
  state.report.kept_bytes = std::max(report_.kept_bytes, buckets_.most_kept_bytes());
  state.report.waits = gate_.waits().all();
  state.reported_events = reported_events_;
  state.malformed = malformed();
  state.blocks = buckets_.save();
  state.residuals = snapshots_.save_residuals();
  return encode({.body = std::move(state)});
}

Status Shard::restore(const Message& message) {
  auto envelope = decode(message);
  if (!envelope) return envelope.error();
  const auto* state = std::get_if<msg::ShardState>(&envelope->body);
  if (!state) return Error{"is not the state of a shard"};
  clocks_.restore(state->clocks);
  gate_.bounds().restore(state->bounds);
  gate_.restore(state->pulls);
  gate_.waits().restore(state->report.waits);
  tied_.restore(state->tied);
  apply_->restore(state->rounds);
  acknowledgements_.restore(state->expected);
  if (norms_) norms_->restore(state->norms);
  if (open_pulls_) open_pulls_->restore(state->open_pulls);
  if (loss_scale_) loss_scale_->restore(state->loss_scale);
  scheduler_.restore(state->scheduler);
  monitor_.restore(state->monitor);
  report_ = state->report;
  report_.lags.resize(limits::kLagBins);
  reported_events_ = state->reported_events;
  set_malformed(state->malformed);
  buckets_.restore(state->blocks);
  snapshots_.restore_residuals(state->residuals);
  return {};
}

}  // namespace leeway
