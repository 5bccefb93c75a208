#include "actors/scheduler/checkpoints.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "actors/scheduler/commit_work.hpp"
#include "checkpoint/manifest.hpp"
#include "core/mutant.hpp"
#include "messages/envelope.hpp"

namespace leeway {
namespace {

constexpr Duration kUsualInterval = seconds(60);

template <class Interval>
const Interval* interval_of(const Job& job) {
  return std::get_if<Interval>(&job.plan.checkpoints.every);
}

checkpoint::Supply describe(const SampleSupply& supply) {
  const SampleSupply::State& state = supply.state();
  checkpoint::Supply out{.fresh = supply.fresh(),
                         .iterations = state.iterations_leased,
                         .next_lease = state.next_lease};
  if (supply.shares() > 1) out.fresh_of_parts = state.fresh;
  if (planted(Mutant::returned_not_stored)) return out;
  for (const auto& portion : state.returned)
    out.returned.push_back({portion.samples.epoch, portion.samples.begin, portion.samples.end});
  return out;
}

}  // namespace

Checkpoints::Checkpoints(std::shared_ptr<const Job> job, const Roster& roster, Leases& leases,
                         const BoundControl& bound)
    : job_(std::move(job)), roster_(roster), leases_(leases), bound_(bound) {
  data_.next_number = job_->next_checkpoint;
  if (const auto leased = count()) data_.next_due = leased->next();
  if (!job_->resumed) return;
  data_.written = 1;
  data_.last_samples = leases_.book().samples_trained();
}

Duration Checkpoints::interval() const {
  if (!enabled()) return {};
  if (interval_of<plan::Usual>(*job_)) return kUsualInterval;
  const auto* every = interval_of<plan::EverySeconds>(*job_);
  return every ? nanoseconds(std::llround(every->seconds * 1e9)) : Duration();
}

void Checkpoints::count_leased() {
  const auto leased = count();
  if (!leased || leased->now < data_.next_due) return;
  data_.next_due = leased->next();
  request();
}

std::optional<Checkpoints::Count> Checkpoints::count() const {
  if (!enabled()) return std::nullopt;
  const LeaseBook& book = leases_.book();
  if (const auto* every = interval_of<plan::EveryEpochs>(*job_))
    return Count{static_cast<double>(book.samples_leased()),
                 every->epochs * static_cast<double>(job_->data.train->size())};
  if (const auto* every = interval_of<plan::EveryIterations>(*job_))
    return Count{static_cast<double>(book.iterations_leased()),
                 static_cast<double>(every->iterations)};
  return std::nullopt;
}

double Checkpoints::Count::next() const {
  return (std::floor(now / interval) + 1) * interval;
}

bool Checkpoints::prepare() {
  if (!enabled() || !data_.due || data_.current || leases_.book().has_partial()) return false;
  if (!job_->push_codecs) return true;
  if (!std::exchange(data_.flushes, true)) leases_.begin_flush();
  return std::ranges::all_of(roster_.in({Member::State::running}),
                             [&](WorkerId lead) { return leases_.is_flushed(lead); });
}

bool Checkpoints::wanted_at_end(msg::RunEnded::Reason reason) const {
  using Reason = msg::RunEnded::Reason;
  if (!enabled() || busy() || leases_.book().has_partial()) return false;
  if (leases_.book().samples_trained() == data_.last_samples) return false;
  const bool done = reason == Reason::finished || reason == Reason::target_reached;
  return !done || data_.written > 0 || !interval_of<plan::Usual>(*job_);
}

void Checkpoints::spoil(const std::string& reason) {
  if (busy() && data_.current->error.empty()) data_.current->error = reason;
}

void Checkpoints::abandon_untaken() {
  if (!busy() || data_.current->taken) return;
  data_.current.reset();
  leases_.end_snapshot();
}

Checkpoints::Current Checkpoints::begin() {
  data_.due = data_.flushes = false;
  leases_.end_flush();
  const std::size_t shards = job_->layout->shards();
  return {.manifest = {.number = data_.next_number++},
          .stored = std::vector<bool>(shards),
          .missing = shards};
}

std::uint64_t Checkpoints::propose(const std::vector<Iteration>& ends) {
  data_.current = begin();
  std::map<WorkerId, Iteration> by_lead;
  auto end = ends.begin();
  for (const auto& [lead, member] : roster_.members()) by_lead[lead] = *end++;
  leases_.follow_snapshot(std::move(by_lead));
  return data_.current->manifest.number;
}

bool Checkpoints::taken(const PushCounts& counts, double evaluated_at, Outbox& out) {
  const auto snapshot = leases_.end_snapshot();
  if (!data_.current || !snapshot) return false;
  if (snapshot->supply.has_partial()) {
    data_.current.reset();
    request();
    return false;
  }
  auto& current = *data_.current;
  current.taken = true;
  current.samples = snapshot->supply.samples_leased();
  auto& manifest = current.manifest;
  manifest.format = checkpoint::kFormat;
  manifest.contents = {checkpoint::kWeights, checkpoint::kOptimizer};
  manifest.leeway = checkpoint::program_version();
  manifest.run = job_->run;
  manifest.epoch_samples = job_->data.train->size();
  manifest.data_checksum = job_->data_checksum;
  auto& state = manifest.scheduler;
  for (const auto& [lead, end] : snapshot->ends) state.pipelines.push_back(end);
  state.supply = describe(snapshot->supply);
  state.partial_pushes = counts.partial;
  state.dropped_pushes = counts.dropped;
  state.evaluated_at = evaluated_at;
  state.bound = bound_.state();
  state.paces = leases_.paces();
  commit_if_complete(out);
  return true;
}

void Checkpoints::stored(ShardId shard, msg::Stored& answer, Outbox& out) {
  if (!data_.current || answer.checkpoint != data_.current->manifest.number) return;
  auto& current = *data_.current;
  if (current.stored[shard.value()]) return;
  current.stored[shard.value()] = true;
  --current.missing;
  if (current.error.empty()) current.error = answer.error;
  // Those of ended processes are lost, with or without a checkpoint.
  current.manifest.lacks_residuals |= std::ranges::any_of(answer.residuals, [&](WorkerId worker) {
    return worker.value() < job_->plan.workers &&
           roster_.member_of(worker).state != Member::State::gone;
  });
  auto& manifest = current.manifest;
  if (answer.loss_scale > 0 &&
      (manifest.loss_scale == 0 || answer.loss_scale < manifest.loss_scale)) {
    manifest.loss_scale = answer.loss_scale;
    manifest.loss_scale_since = answer.loss_scale_since;
  }
  manifest.files.insert(manifest.files.end(), answer.files.begin(), answer.files.end());
  for (const auto& progress : answer.blocks) {
    if (progress.block.value() >= job_->layout->blocks().size()) continue;
    auto& state = manifest.blocks.emplace_back();
    state.version = progress.version;
    state.progress = progress.progress;
    state.samples = progress.samples;
    for (const auto& slice : job_->layout->block(progress.block).slices)
      state.slices.push_back(
          {job_->model->parameters()[static_cast<std::size_t>(slice.parameter)].name,
           slice.first_row, slice.rows});
  }
  commit_if_complete(out);
}

void Checkpoints::commit_if_complete(Outbox& out) {
  auto& current = *data_.current;
  if (current.missing > 0 || !current.taken) return;
  if (planted(Mutant::supply_of_another_moment))
    current.manifest.scheduler.supply = describe(leases_.book().supply());
  out.compute(std::make_shared<CommitWork>(job_, std::move(current.manifest), current.error));
}

void Checkpoints::committed(const Work& work, Outbox& out) {
  const auto& commit = dynamic_cast<const CommitWork&>(work);
  const auto current = std::exchange(data_.current, std::nullopt);
  if (!current) return;
  if (commit.error().empty()) {
    ++data_.written;
    data_.last_samples = current->samples;
  }
  report(commit.manifest().number, current->samples, commit.bytes(), commit.error(), out);
}

void Checkpoints::report(std::uint64_t number, std::uint64_t samples, std::uint64_t bytes,
                         const std::string& error, Outbox& out) const {
  if (error.empty()) out.emit(event::CheckpointWritten{number, samples});
  out.send(kMonitor, encode({.body = msg::Checkpointed{number, samples, bytes, error}}));
}

}  // namespace leeway
