#include "sim/checkers/checkpoints.hpp"

#include <algorithm>

#include "core/text.hpp"

namespace leeway::sim {

Status check_checkpoint(const checkpoint::Store& store, std::uint64_t number, const Model& model) {
  if (Status verified = store.verify(number); !verified) return verified;
  const auto loaded = store.load(number, model);
  if (!loaded) return loaded.error();
  const auto& supply = loaded->manifest.scheduler.supply;
  std::int64_t trained = supply.fresh;
  for (const auto& range : supply.returned) trained -= range.end - range.begin;
  for (std::size_t i = 0; i < loaded->parameters.size(); ++i)
    for (const auto& rows : loaded->parameters[i].rows)
      if (rows.samples != trained)
        return Error{concat(store.path(number), ": rows ", rows.first, " to ",
                            rows.first + rows.count, " of ", model.parameters()[i].name, " have ",
                            rows.samples, " samples; by the supply, ", trained, " are trained")};
  return {};
}

Status check_checkpoints(const checkpoint::Store& store, std::size_t keep, const Model& model) {
  const auto numbers = store.numbers();
  if (!numbers) return numbers.error();
  if (numbers->size() > keep)
    return Error{concat(store.folder(), ": has ", numbers->size(), " checkpoints; ", keep,
                        " are to be kept")};
  for (const std::uint64_t number : *numbers)
    if (Status complete = check_checkpoint(store, number, model); !complete) return complete;
  return {};
}

void CheckpointChecker::on_event(Instant, Address actor, const Event& event) {
  const auto* written = event.as<event::CheckpointWritten>();
  if (!written) return;
  written_ = true;
  const auto complete = check_checkpoint(*job_->checkpoints, written->number, *job_->model);
  if (!complete) violated({actor}, complete.error().text);
}

void CheckpointChecker::on_run_ended(const RunTotals&) {
  if (!written_) return;
  const auto complete =
      check_checkpoints(*job_->checkpoints, job_->plan.checkpoints.keep, *job_->model);
  if (!complete) violated({kScheduler}, complete.error().text);
}

}  // namespace leeway::sim
