#include "sim/checkers/snapshots.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.hpp"
#include "plan/local_steps.hpp"
#include "sim/checkers/pushed_floats.hpp"
#include "sim/checkers/resumed.hpp"

namespace leeway::sim {

SnapshotChecker::SnapshotChecker(std::shared_ptr<const Job> job,
                                 std::shared_ptr<const CheckpointChecker> checkpoints)
    : Checker("a snapshot is the sum of all pushes below it (5)", Damage::updates),
      job_(std::move(job)),
      checkpoints_(std::move(checkpoints)),
      piped_(job_->stages->piped()) {
  const plan::Optimizer& optimizer = job_->shard_settings;
  adds_ = !job_->cost_only && std::holds_alternative<plan::Sgd>(optimizer.kind) &&
          optimizer.weight_decay == 0 && optimizer.clip_value == 0 && optimizer.clip_norm == 0 &&
          optimizer.groups.empty() && !optimizer.whole_steps && !job_->delay_policy &&
          job_->plan.local_steps.merge == plan::Merge::mean &&
          (job_->local_optimizer || job_->plan.lr_schedule == plan::LrSchedule{});
}

SnapshotChecker::State SnapshotChecker::initial(ShardId shard) const {
  State state;
  for (const Bucket& bucket : job_->layout->buckets(shard)) state.updates[bucket.index] = 0;
  if (!adds_) return state;
  for (const BlockId id : job_->layout->blocks_of(shard)) {
    const Block& block = job_->layout->block(id);
    if (block.average > 0) continue;  // statistics, which are not summed
    auto& weights = state.weights[id].values;
    weights.resize(static_cast<std::size_t>(block.floats));
    for (const auto& slice : block.slices) {
      const std::vector<float> whole = first_values(*job_, slice.parameter);
      std::copy_n(whole.data() + slice.first, slice.floats, weights.data() + slice.offset);
    }
  }
  return state;
}

SnapshotChecker::Shard& SnapshotChecker::at(Address address) {
  const auto found = shards_.find(address);
  if (found != shards_.end()) return found->second;
  const ShardId shard(address.index);
  return shards_
      .emplace(address, Shard{initial(shard), TiedGradients(job_, shard), {}, {}, {}, {}, {}, {}})
      .first->second;
}

const std::uint32_t* SnapshotChecker::shard_bucket_of(Address shard, WorkerId worker,
                                                      WorkerBucket bucket) const {
  const auto& buckets = job_->stages->share_of(worker).at[shard.index].shard_buckets;
  return bucket < buckets.size() ? &buckets[bucket] : nullptr;
}

void SnapshotChecker::add(State& state, ShardBucket bucket, const msg::Push& push,
                          bool begins_update, double scale) const {
  if (push.blocks.empty()) return;
  if (job_->consistency->by_rounds()) {
    // A round is one update, whatever its contributors.
    const auto [latest, fresh] = state.latest_round.try_emplace(bucket, push.iteration);
    if (fresh || latest->second < push.iteration) ++state.updates[bucket];
    latest->second = push.iteration;
  } else if (begins_update) {
    ++state.updates[bucket];
  }
  const double weight =  // of a pseudo-gradient: that of a whole iteration
      job_->local_optimizer
          ? static_cast<double>(iteration_samples(job_->plan)) * push.weight / push.samples
          : push.weight;
  const double step = job_->shard_settings.learning_rate * weight * scale;
  for (std::size_t index = 0; index < push.blocks.size(); ++index) {
    const auto found = state.weights.find(push.blocks[index].block);
    if (found == state.weights.end()) continue;
    const Blob data = pushed_floats(*job_, push, index);
    const float* const g = data.as_floats();
    auto& [values, largest] = found->second;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] -= step * g[i];
    // In a round another worker's values may replace these, so nothing is known of them.
    const bool is_known = !job_->consistency->by_rounds() || job_->plan.workers == 1;
    for_each_assigned(*job_, push, index, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        values[static_cast<std::size_t>(i)] =
            is_known ? g[i] : std::numeric_limits<double>::quiet_NaN();
    });
    for (const double value : values) largest = std::max(largest, std::abs(value));
  }
}

void SnapshotChecker::follow(TiedGradients& tied, const Event& event) {
  if (const auto* admitted = event.as<event::Admitted>()) tied.admitted(admitted->worker);
  if (const auto* fenced = event.as<event::Fenced>()) tied.out(fenced->worker);
  if (const auto* removed = event.as<event::Removed>()) tied.out(removed->worker);
  if (event.as<event::Refused>() || event.as<event::Malformed>() ||
      event.as<event::BucketRepeated>())
    tied.not_accepted();
}

void SnapshotChecker::on_event(Instant, Address actor, const Event& event) {
  if (piped_ && actor.kind == RoleKind::shard) follow(at(actor).tied, event);
  if (const auto* applied = event.as<event::BucketApplied>()) count_applied(actor, *applied);
  if (const auto* removed = event.as<event::Removed>())
    at(actor).live_workers.erase(removed->worker);
  if (const auto* fenced = event.as<event::Fenced>(); fenced && job_->scales_losses)
    for (auto& [of, workers] : at(actor).overflows) workers.erase(fenced->worker);
  if (const auto* written = event.as<event::CheckpointWritten>())
    compare_checkpoint(written->number);
}

void SnapshotChecker::count_applied(Address actor, const event::BucketApplied& event) {
  Shard& shard = at(actor);
  const WorkerBucket bucket = event.bucket;
  const auto found = shard.pushed.find({event.worker, bucket, event.session, event.iteration});
  const auto* shard_bucket = shard_bucket_of(actor, event.worker, bucket);
  if (found == shard.pushed.end() || !shard_bucket)
    violated({actor, address_of(event.worker)}, "bucket ", bucket, " of iteration ",
             event.iteration, " applied without a new push");
  const msg::Push& push = found->second;
  const auto how = shard.tied.applied({event.worker, event.session, event.iteration, *shard_bucket},
                                      push.kind == msg::Push::Kind::empty);
  if (how == TiedGradients::Applied::too_early)
    violated({actor, address_of(event.worker)}, "bucket ", bucket, " of iteration ",
             event.iteration, " was applied before its tied gradient arrived");
  const bool begins = how == TiedGradients::Applied::begins_update;
  if (const auto live = shard.live_workers.find(event.worker);
      live != shard.live_workers.end() && live->second.session == event.session)
    live->second.beyond = std::max(live->second.beyond, event.iteration + 1);
  const auto closed = shard.scales.find(event.iteration);
  const double scale = closed == shard.scales.end() ? 1 : closed->second;
  if (job_->scales_losses) check_skipped(actor, shard, event, *shard_bucket, push);
  if (!event.skipped) {
    add(shard.live, *shard_bucket, push, begins, scale);
    for (auto* forks : {&shard.forks, &shard.saved})
      for (auto& [id, fork] : *forks)
        if (belongs(event, fork)) add(fork.state, *shard_bucket, push, begins, scale);
  }
  if (push.kind == msg::Push::Kind::empty || event.skipped) {
    shard.pushed.erase(found);  // an earlier push may still be queued
    return;
  }
  // Updates of one bucket are applied in order, so older pushes are repeats of applied ones.
  const auto first = shard.pushed.lower_bound({event.worker, bucket, Session(0), Iteration(0)});
  shard.pushed.erase(first, std::next(found));
}

void SnapshotChecker::check_skipped(Address actor, Shard& shard, const event::BucketApplied& event,
                                    ShardBucket bucket, const msg::Push& push) const {
  const auto found = shard.overflows.find({event.iteration, bucket});
  const bool has_any = found != shard.overflows.end();
  const bool is_own = push.kind == msg::Push::Kind::overflow;
  const bool by_rounds = job_->consistency->by_rounds();
  const bool is_empty = push.kind == msg::Push::Kind::empty;
  if (event.skipped && !(is_own || (by_rounds && has_any)))
    violated({actor, address_of(event.worker)}, "bucket ", event.bucket, " of iteration ",
             event.iteration, " skipped, although no gradient has overflowed");
  if (!event.skipped && !is_empty && (is_own || (by_rounds && has_any && !found->second.empty())))
    violated({actor, address_of(event.worker)}, "bucket ", event.bucket, " of iteration ",
             event.iteration, " applied, although a gradient of the update has overflowed");
  if (by_rounds)  // no push of an earlier round follows
    shard.overflows.erase(shard.overflows.begin(),
                          shard.overflows.lower_bound({event.iteration + -8, 0}));
}

void SnapshotChecker::on_delivered(Instant, const Letter& letter) {
  if (piped_ && letter.to().kind == RoleKind::shard) at(letter.to()).tied.message_arrives();
  if (letter.to().kind == RoleKind::shard && letter.from().kind == RoleKind::worker) {
    const auto* push = letter.as<msg::Push>();
    if (!push) return;
    const WorkerId worker(letter.from().index);
    const Session session = letter.open()->session;
    Shard& shard = at(letter.to());
    shard.pushed[{worker, push->bucket, session, push->iteration}] = *push;
    const auto* shard_bucket = shard_bucket_of(letter.to(), worker, push->bucket);
    if (shard_bucket && push->kind == msg::Push::Kind::overflow)
      shard.overflows[{push->iteration, *shard_bucket}].insert(worker);
    if (shard_bucket) shard.tied.arrives({worker, session, push->iteration, *shard_bucket});
  } else if (letter.to().kind == RoleKind::shard && letter.from() == kScheduler) {
    if (orders_.is_next(letter)) on_order(letter.to(), letter);
  } else if (letter.to() == kMonitor && letter.from().kind == RoleKind::shard) {
    const auto* state = letter.as<msg::SnapshotState>();
    if (!state || !orders_.is_next(letter)) return;
    Shard& shard = at(letter.from());
    if (state->final) return compare(letter.from(), shard.live, *state);
    if (shard.immediate.erase(state->snapshot) > 0) return;
    const auto fork = shard.forks.find(state->snapshot);
    if (fork == shard.forks.end())
      violated({letter.from()}, "snapshot ", state->snapshot,
               ", which the shard had passed or was never sent");
    compare(letter.from(), fork->second.state, *state);
    shard.forks.erase(shard.forks.begin(), std::next(fork));
  }
}

bool SnapshotChecker::belongs(const event::BucketApplied& event, const Fork& fork) const {
  const bool below = event.iteration < fork.ends[pipeline_of(event.worker)];
  const auto again = fork.readmitted.find(event.worker);
  // An update of an earlier session may be computed after the admission.
  if (again != fork.readmitted.end() && event.session >= again->second.session)
    return below && event.iteration < again->second.beyond;
  const auto live = fork.live.find(event.worker);
  const bool was_over = live == fork.live.end() || event.session < live->second.session;
  // The shard has reported what it accepted from a session that was over, and has queued it.
  return below || (was_over && !job_->consistency->by_rounds());
}

void SnapshotChecker::on_order(Address address, const Letter& letter) {
  Shard& shard = at(address);
  if (const auto* admit = letter.as<msg::Admit>()) {
    shard.live_workers[admit->worker] = {admit->session, {}};
    for (auto* forks : {&shard.forks, &shard.saved})
      for (auto& [id, fork] : *forks)
        fork.readmitted.try_emplace(admit->worker, Live{admit->session, admit->iteration});
  } else if (const auto* snapshot = letter.as<msg::Snapshot>()) {
    if (snapshot->iterations.size() != job_->stages->pipelines()) return;  // refused
    // An earlier checkpoint is written or was given up.
    if (snapshot->checkpoint > 0) shard.saved.clear();
    if (snapshot->immediate) {
      shard.immediate.insert(snapshot->snapshot);
      return;
    }
    // No state follows if the shard has applied a push beyond the proposal already.
    for (const auto& [worker, live] : shard.live_workers)
      if (live.beyond > snapshot->iterations[pipeline_of(worker)]) return;
    const Fork fork{shard.live, snapshot->iterations, shard.live_workers, {}};
    if (snapshot->evaluate) shard.forks[snapshot->snapshot] = fork;
    if (snapshot->checkpoint > 0) shard.saved[snapshot->checkpoint] = fork;
  } else if (const auto* close = letter.as<msg::CloseRound>()) {
    // A shard applies a round before it closes the next one.
    shard.scales.erase(shard.scales.begin(), shard.scales.lower_bound(close->round + -8));
    shard.scales[close->round] = close->scale;
  }
}

void SnapshotChecker::compare(Address address, const State& expected,
                              const msg::SnapshotState& found) const {
  const ShardId shard(address.index);
  const auto& ids = job_->layout->blocks_of(shard);
  if (found.blocks.size() != ids.size())
    violated({address}, "a snapshot with ", found.blocks.size(), " blocks; the shard has ",
             ids.size());
  std::map<BlockId, const msg::BlockData*> blocks;
  for (const auto& block : found.blocks) blocks[block.block] = &block;
  for (const Bucket& bucket : job_->layout->buckets(shard)) {
    for (const BlockId id : bucket.blocks) {
      const std::int64_t updates =
          resumed_version(*job_, job_->layout->block(id)) + expected.updates.at(bucket.index);
      const auto block = blocks.find(id);
      if (block == blocks.end()) violated({address}, "block ", id, " is missing in a snapshot");
      if (block->second->version.value() != updates)
        violated({address}, found.final ? "the final state" : "the snapshot", " at iteration ",
                 found.iteration, ": block ", id, " has ", block->second->version, " updates, not ",
                 updates);
      const auto weights = expected.weights.find(id);
      if (weights != expected.weights.end())
        compare_weights(address, job_->layout->block(id), weights->second, updates, *block->second);
    }
  }
}

void SnapshotChecker::compare_checkpoint(std::uint64_t number) {
  const bool expected = std::any_of(shards_.begin(), shards_.end(), [&](const auto& shard) {
    return shard.second.saved.contains(number);
  });
  if (!expected || !checkpoints_) return;  // of an immediate snapshot
  const auto& written = checkpoints_->latest();
  LW_CHECK(written && written->manifest.number == number, number);
  const auto block_of = [&](const Block& block) {
    msg::BlockData data{.block = block.id, .data = Blob::floats(block.floats)};
    std::fill_n(data.data.mutable_floats(), block.floats, 0.0f);  // between the slices
    for (const auto& slice : block.slices) {
      const auto& parameter = written->parameters[static_cast<std::size_t>(slice.parameter)];
      std::copy_n(parameter.weights.as_floats() + slice.first, slice.floats,
                  data.data.mutable_floats() + slice.offset);
      for (const auto& rows : parameter.rows)
        if (rows.first == slice.first_row) data.version = rows.version;
    }
    return data;
  };
  for (const auto& [address, shard] : shards_) {
    const auto saved = shard.saved.find(number);
    if (saved == shard.saved.end()) continue;
    msg::SnapshotState found;
    found.iteration = *std::min_element(saved->second.ends.begin(), saved->second.ends.end());
    for (const BlockId id : job_->layout->blocks_of(ShardId(address.index)))
      found.blocks.push_back(block_of(job_->layout->block(id)));
    compare(address, saved->second.state, found);
  }
}

void SnapshotChecker::compare_weights(Address address, const Block& block, const Weights& expected,
                                      std::int64_t updates, const msg::BlockData& found) const {
  if (!(expected.largest <= std::numeric_limits<float>::max())) return;
  // Each update may round by half of 2^-23 of the value that it has then.
  const double rounding = 0x1p-23 * static_cast<double>(updates) * (1 + expected.largest);
  const Blob data = found.data.on_host();
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const double is = data.as_floats()[i], sum = expected.values[i];
    if (std::isnan(sum)) continue;
    if (!(std::abs(is - sum) < std::max(1e-4 * (1 + std::abs(sum)), rounding)))
      violated({address}, "float ", i, " of block ", block.id, " is ", is,
               " in a snapshot; its pushes add up to ", sum);
  }
}

}  // namespace leeway::sim
