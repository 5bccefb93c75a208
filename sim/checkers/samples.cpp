#include "sim/checkers/samples.hpp"

#include <algorithm>
#include <cmath>

namespace leeway::sim {

void SampleChecker::on_event(Instant, Address actor, const Event& event) {
  if (event.kind == Event::Kind::part_applied)
    applied_[{ShardId(actor.index), job_->stages->stage_of(event.worker),
              static_cast<std::uint32_t>(event.value)}] += static_cast<std::uint64_t>(event.value2);
  const std::int64_t size = job_->data.train->size();
  if (event.kind == Event::Kind::lease_granted && event.value < event.value2)
    leased_ = std::max(leased_, event.epoch.value() * size + event.value2);
  torn_ |= event.kind == Event::Kind::torn;
  if (event.kind != Event::Kind::trained) return;
  const std::vector<Address> actors = {actor, address_of(event.worker)};
  const double epochs = job_->plan.stop.epochs;
  if (event.value < 0 || event.value2 > size ||
      (epochs > 0 && static_cast<double>(event.epoch.value()) >= std::ceil(epochs)))
    violated(actors, "positions ", event.value, " to ", event.value2, " of epoch ", event.epoch,
             " trained, which there are not");
  const auto [found, fresh] = epochs_.try_emplace(event.epoch);
  Progress& epoch = found->second;
  if (complete_.contains(event.epoch))
    violated(actors, "position ", event.value, " of epoch ", event.epoch, " trained again");
  if (fresh) epoch = {std::vector<bool>(static_cast<std::size_t>(size)), size};
  for (std::int64_t i = event.value; i < event.value2; ++i) {
    if (epoch.trained[static_cast<std::size_t>(i)])
      violated(actors, "position ", i, " of epoch ", event.epoch, " trained again");
    epoch.trained[static_cast<std::size_t>(i)] = true;
  }
  samples_ += static_cast<std::uint64_t>(event.value2 - event.value);
  epoch.missing -= event.value2 - event.value;
  if (epoch.missing > 0) return;
  complete_.insert(event.epoch);
  epochs_.erase(found);
}

std::string SampleChecker::of_stage(std::uint32_t stage) const {
  return job_->stages->piped() ? concat(" of stage ", stage) : std::string();
}

void SampleChecker::on_run_ended(const RunTotals& totals) {
  const auto& end = totals.end;
  if (end.samples_trained != samples_)
    violated({kScheduler}, "it counts ", end.samples_trained, " samples, and has said that ",
             samples_, " were trained");
  if (end.reason == msg::RunEnded::Reason::failed) return;
  const auto& stop = job_->plan.stop;
  const auto wanted = static_cast<std::uint64_t>(std::max<std::int64_t>(
      1, std::llround(stop.epochs * static_cast<double>(job_->data.train->size()))));
  const bool by_epochs = end.reason == msg::RunEnded::Reason::finished && stop.epochs > 0 &&
                         stop.iterations == 0 && stop.seconds == 0;
  // None came twice, so the number says that all came.
  if (by_epochs && samples_ != wanted)
    violated({kScheduler}, samples_, " samples were trained, and not ", wanted);
  // What is torn when the run stops is completed no more.
  const std::uint64_t most = torn_ ? static_cast<std::uint64_t>(leased_) : samples_;
  for (const auto& [name, count] : applied_) {
    const auto [shard, stage, part] = name;
    if (count < samples_ || count > most)
      violated({address_of(shard)}, "part ", part, of_stage(stage), " was given ", count,
               " samples; trained were ", samples_);
  }
}

}  // namespace leeway::sim
