#include "sim/checkers/encodings.hpp"

#include <algorithm>
#include <cmath>

#include "actors/worker/checked_sum.hpp"
#include "sim/checkers/pushed_floats.hpp"

namespace leeway::sim {
namespace {

/// The rounding of a few float operations on each value, which has a weight of at most 1.5.
constexpr double kTolerance = 12 * 0x1p-24;
/// Iterations of a block whose residuals are kept: more than a worker pushes during a checkpoint.
constexpr std::size_t kHistory = 200;

}  // namespace

void EncodingChecker::on_event(Instant, Address, const Event& event) {
  if (const auto* evicted = event.as<event::Evicted>()) {
    evicted_.insert(evicted->worker);
    flushing_.erase(evicted->worker);
    // Shards do not know of pushes that arrive after the eviction, until the next session.
    std::erase_if(history_, [&](const auto& entry) {
      return job_->stages->lead_of(entry.first.first) == evicted->worker;
    });
  }
  if (const auto* admitted = event.as<event::Admitted>(); admitted && !ends_.empty()) {
    // Its pushes from now on are not part of a pending snapshot.
    Iteration& end = ends_[job_->stages->pipeline_of(admitted->worker)];
    end = std::min(end, admitted->iteration);
  }
  if (const auto* dropped = event.as<event::PushDropped>())
    for (auto& [of, residuals] : history_)
      if (of.first == dropped->worker) residuals.erase(dropped->iteration);
  const auto* encoded = event.as<event::GradientEncoded>();
  if (!encoded) return;
  double& residual = residuals_[{encoded->worker, encoded->block}];
  unsent_[{encoded->worker, encoded->iteration, encoded->block}] = {residual, *encoded};
  residual = encoded->residual;
  if (evicted_.contains(job_->stages->lead_of(encoded->worker))) return;
  auto& history = history_[{encoded->worker, encoded->block}];
  history[encoded->iteration] = encoded->residual;
  if (history.size() > kHistory) history.erase(history.begin());
}

double EncodingChecker::sum_of_gradient(const msg::Push& push, std::size_t index) const {
  if (push.samples == 0 && !push.assigned.empty()) return 0;  // it only assigns
  const Blob pushed = pushed_floats(*job_, push, index);
  std::vector<float> values(pushed.as_floats(),
                            pushed.as_floats() + push.blocks[index].shape.count());
  for_each_assigned(*job_, push, index, [&](std::int64_t begin, std::int64_t end) {
    std::fill(values.begin() + begin, values.begin() + end, 0.0f);
  });
  zero_padding(job_->layout->block(push.blocks[index].block), values.data());
  return checked_sum(values);
}

void EncodingChecker::check_flushed(WorkerId worker, Session session, const msg::Push& push) const {
  const auto found = flushing_.find(job_->stages->lead_of(worker));
  if (found == flushing_.end() || found->second.session != session ||
      !found->second.iterations.contains(push.iteration))
    return;
  for (const msg::BlockData& block : push.blocks)
    if (block.codec != CodecId::none)
      violated({address_of(worker)}, "iteration ", push.iteration, ", block ", block.block,
               ": the lease flushes, but its last push is encoded");
}

void EncodingChecker::check_reported(ShardId shard, const msg::Stored& stored) const {
  if (stored.checkpoint != checkpoint_ || !stored.error.empty()) return;
  for (const auto& [of, residuals] : history_) {
    const auto& [worker, block] = of;
    const auto& blocks = job_->stages->share_of(worker).at[shard.value()].blocks;
    auto last = residuals.lower_bound(ends_[job_->stages->pipeline_of(worker)]);
    if (last == residuals.begin() || evicted_.contains(job_->stages->lead_of(worker)) ||
        !std::ranges::binary_search(blocks, block) ||
        std::ranges::binary_search(stored.residuals, worker))
      continue;
    --last;
    if (last->second != 0)
      violated({address_of(shard)}, "checkpoint ", stored.checkpoint,
               " lacks the residual of worker ", worker, " after iteration ", last->first,
               ", block ", block, ", and the shard does not report it");
  }
}

void EncodingChecker::sent_to_scheduler(const Letter& letter) {
  // A worker that joins again forgets its pushes without an acknowledgement.
  if (letter.from().kind == RoleKind::worker && !added_.empty() && letter.as<msg::Join>())
    forget_added(WorkerId(letter.from().index));
  if (letter.from().kind != RoleKind::shard || ends_.empty()) return;
  if (const auto* stored = letter.as<msg::Stored>())
    check_reported(ShardId(letter.from().index), *stored);
}

void EncodingChecker::on_sent(Instant, const Letter& letter) {
  if (!job_->push_codecs) return;
  if (letter.to() == kScheduler) return sent_to_scheduler(letter);
  if (letter.from() == kScheduler && letter.to().kind == RoleKind::worker)
    if (const auto* lease = letter.as<msg::Lease>(); lease && lease->flushes)
      note_flushing(WorkerId(letter.to().index), letter.open()->session, *lease);
  if (letter.to().kind != RoleKind::shard) return;
  if (const auto* order = letter.as<msg::Snapshot>(); order && order->checkpoint > 0) {
    checkpoint_ = order->checkpoint;
    ends_ = order->immediate ? std::vector<Iteration>() : order->iterations;
  }
  const auto* push = letter.as<msg::Push>();
  if (!push) return;
  const WorkerId worker(letter.from().index);
  enter_session(worker, letter.open()->session);
  check_flushed(worker, letter.open()->session, *push);
  for (std::size_t index = 0; index < push->blocks.size(); ++index) {
    const msg::BlockData& block = push->blocks[index];
    const auto found = unsent_.find({worker, push->iteration, block.block});
    if (found == unsent_.end()) continue;  // not encoded, or sent again
    const auto [before, encoded] = found->second;
    unsent_.erase(found);
    if (job_->may_drop_pushes())
      added_[{worker, push->iteration, block.block}] = encoded.residual - before;
    const double given = before + encoded.given;
    const double kept = sum_of_gradient(*push, index) + encoded.residual;
    if (std::isfinite(given) && std::isfinite(encoded.magnitude) &&
        !(std::abs(given - kept) <= kTolerance * (encoded.magnitude + std::abs(before))))
      violated({letter.from()}, "iteration ", push->iteration, ", block ", block.block,
               ": gradient and residual have the sum ", given, ", push and next residual ", kept);
  }
}

void EncodingChecker::forget_added(WorkerId worker) {
  std::erase_if(added_,
                [&](const auto& entry) { return std::get<WorkerId>(entry.first) == worker; });
}

void EncodingChecker::note_flushing(WorkerId lead, Session session, const msg::Lease& lease) {
  Flushing& flushing = flushing_[lead];
  if (flushing.session != session) flushing = {session, {}};
  flushing.iterations.insert(lease.first_iteration + (lease.iterations() - 1));
}

void EncodingChecker::enter_session(WorkerId worker, Session session) {
  if (session <= sessions_[worker]) return;
  sessions_[worker] = session;
  forget_added(worker);
}

/// The worker takes back what a dropped push has done to its residual.
void EncodingChecker::on_delivered(Instant, const Letter& letter) {
  if (letter.to().kind != RoleKind::worker || (added_.empty() && evicted_.empty())) return;
  const WorkerId worker(letter.to().index);
  if (letter.as<msg::Start>()) {
    enter_session(worker, letter.open()->session);
    evicted_.erase(job_->stages->lead_of(worker));
  }
  const auto* pushed = letter.as<msg::Pushed>();
  // Workers ignore the acknowledgements of earlier sessions.
  if (!pushed || letter.open()->session != sessions_[worker]) return;
  const auto& at = job_->stages->share_of(worker).at[letter.from().index];
  for (const BlockId block : at.buckets.at(pushed->bucket).blocks) {
    const auto found = added_.find({worker, pushed->iteration, block});
    if (found == added_.end()) continue;
    if (pushed->dropped) residuals_[{worker, block}] -= found->second;
    added_.erase(found);
  }
}

void EncodingChecker::on_ended(Instant, Address actor) {
  if (actor.kind != RoleKind::worker) return;
  const WorkerId worker(actor.index);
  forget_added(worker);
  std::erase_if(history_, [&](const auto& entry) { return entry.first.first == worker; });
  std::erase_if(residuals_, [&](const auto& entry) { return entry.first.first == worker; });
  std::erase_if(unsent_,
                [&](const auto& entry) { return std::get<WorkerId>(entry.first) == worker; });
}

}  // namespace leeway::sim
