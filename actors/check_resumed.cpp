#include "actors/check_resumed.hpp"

#include "checkpoint/store.hpp"
#include "core/check.hpp"
#include "core/text.hpp"
#include "plan/groups.hpp"
#include "plan/local_steps.hpp"
#include "plan/settings.hpp"
#include "policies/optimizer/shard_optimizer.hpp"

namespace leeway {
namespace {

/// Whether the state of one optimizer continues as that of the other.
bool has_same_state(const plan::Optimizer& a, const plan::Optimizer& b) {
  const auto is_adam = [](const plan::Optimizer& one) {
    return std::holds_alternative<plan::Adam>(one.kind) ||
           std::holds_alternative<plan::AdamW>(one.kind);
  };
  return a.kind.index() == b.kind.index() || (is_adam(a) && is_adam(b));
}

/// Whether the arrays of a checkpoint mean the same to the job. `which`: the setting of the shards'
/// optimizer.
Status check_resumed_state(const Job& job, const char* which) {
  const Plan& began = job.resumed->plan;
  const plan::Optimizer before = shard_optimizer(began);
  if (job.optimizer->slots() > 0 && !has_same_state(before, job.shard_settings))
    return Error{concat(which, ": the checkpoint has the state of ", make_optimizer(before)->name(),
                        ", which is not that of ", job.optimizer->name(),
                        "; resume with the optimizer that the run began with")};
  if (job.delay_policy && job.delay_policy->slots() > 0 &&
      began.delay_policy.index() != job.plan.delay_policy.index())
    return Error{concat("delay_policy: the run began without ", job.delay_policy->name(),
                        ", whose running mean the checkpoint lacks; resume with the policy that "
                        "the run began with")};
  return {};
}

}  // namespace

Status check_resumed(const Job& job) {
  const std::int64_t samples = job.resumed->manifest.epoch_samples;
  if (samples != job.data.train->size())
    return Error{concat("data: the checkpoint has ", samples,
                        " training samples per epoch, the data ", job.data.train->size(),
                        "; resume with the data that the run began with")};
  const Plan& began = job.resumed->plan;
  const std::size_t shares = job.split && job.split->shares() > 1 ? job.split->shares() : 0;
  if (began.split_data != job.plan.split_data || (job.split && began.seed != job.plan.seed) ||
      job.resumed->manifest.scheduler.supply.fresh_of_parts.size() != shares)
    return Error{concat("split_data: the run began with ",
                        plan::choices("split_data")[began.split_data.index()], ", ",
                        began.workers / workers_per_member(began),
                        began.pipeline.stages > 1       ? " pipelines"
                        : workers_per_member(began) > 1 ? " host groups"
                                                        : " workers",
                        " and seed ", began.seed,
                        "; resume with the same, because each worker has its share of the data")};
  const auto& parameters = job.resumed->parameters;
  if (parameters.empty()) return {};  // there is no shard here
  const bool began_locally = has_local_steps(began);
  if (began_locally != has_local_steps(job.plan))
    return Error{concat("local_steps: the run began ", began_locally ? "with" : "without",
                        " local steps, which have another optimizer on the shards; resume with the "
                        "--local-steps that the run began with")};
  const char* const which = began_locally ? "local_steps.outer" : "optimizer";
  LW_CHECK(parameters.size() == job.model->parameters().size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& parameter = job.model->parameters()[i];
    const int needed = parameter.spec.average > 0 ? 0 : job.optimizer->slots();
    if (static_cast<int>(parameters[i].slots.size()) == needed) continue;
    return Error{concat(which, ": the checkpoint has ", parameters[i].slots.size(),
                        " arrays of optimizer state for \"", parameter.name, "\", ",
                        job.optimizer->name(), " needs ", needed,
                        "; resume with the optimizer that the run began with")};
  }
  return check_resumed_state(job, which);
}

}  // namespace leeway
