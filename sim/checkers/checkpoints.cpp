#include "sim/checkers/checkpoints.hpp"

#include <utility>

#include "core/text.hpp"

namespace leeway::sim {

Expected<checkpoint::Checkpoint> read_checked(const checkpoint::Store& store, std::uint64_t number,
                                              const Model& model) {
  auto loaded = store.load(number, model);
  if (!loaded) return loaded;
  const auto& supply = loaded->manifest.scheduler.supply;
  std::int64_t trained = supply.fresh;
  for (const auto& range : supply.returned) trained -= range.end - range.begin;
  // Updates that were skipped after an overflow count no samples.
  const bool may_lack = loaded->manifest.loss_scale > 0;
  for (std::size_t i = 0; i < loaded->parameters.size(); ++i)
    for (const auto& rows : loaded->parameters[i].rows)
      if (rows.samples > trained || (rows.samples < trained && !may_lack))
        return Error{concat(store.path(number), ": rows ", rows.first, " to ",
                            rows.first + rows.count, " of ", model.parameters()[i].name, " have ",
                            rows.samples, " samples; by the supply, ", trained, " are trained")};
  return loaded;
}

Status check_checkpoints(const checkpoint::Store& store, std::size_t keep, const Model& model) {
  const auto numbers = store.numbers();
  if (!numbers) return numbers.error();
  if (numbers->size() > keep)
    return Error{concat(store.folder(), ": has ", numbers->size(), " checkpoints; ", keep,
                        " are to be kept")};
  for (const std::uint64_t number : *numbers)
    if (const auto read = read_checked(store, number, model); !read) return read.error();
  return {};
}

void CheckpointChecker::on_event(Instant, Address actor, const Event& event) {
  const auto* written = event.as<event::CheckpointWritten>();
  if (!written) return;
  auto read = read_checked(*job_->checkpoints, written->number, *job_->model);
  if (!read) violated({actor}, read.error().text);
  latest_ = std::move(*read);
}

void CheckpointChecker::on_run_ended(const RunTotals&) {
  if (!latest_) return;
  const auto complete =
      check_checkpoints(*job_->checkpoints, job_->plan.checkpoints.keep, *job_->model);
  if (!complete) violated({kScheduler}, complete.error().text);
}

}  // namespace leeway::sim
