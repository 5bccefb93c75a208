#include "actors/job.hpp"

#include "core/text.hpp"

namespace leeway {

Expected<std::shared_ptr<const Job>> make_job(const Plan& plan, TrainTest data) {
  if (const auto valid = validate(plan); !valid) return valid.error();
  if (data.test->sample_shape() != data.train->sample_shape())
    return Error{concat("the test samples are ", data.test->sample_shape(),
                        ", the training samples ", data.train->sample_shape(),
                        "; give both the same shape")};
  auto model = Model::build(plan.model, plan.loss, data.train->sample_shape(),
                            data.train->classes(), data.train->target_count());
  if (!model) return model.error();
  if ((*model)->parameters().empty())
    return Error{"the model has no parameters, so there is nothing to train; add a linear layer"};
  auto job = std::make_shared<Job>();
  job->plan = plan;
  job->data = std::move(data);
  job->model = *model;
  // Blocks small enough to spread evenly: a shard's fair part, or the usual size if that is
  // smaller.
  const auto bytes = static_cast<std::size_t>((*model)->parameter_count()) * sizeof(float);
  const auto fair = std::max<std::size_t>(bytes / plan.shards, limits::kSmallTensorBytes);
  job->layout =
      std::make_shared<Layout>(**model, plan.shards, std::min(limits::kMaxBlockBytes, fair));
  for (std::uint32_t shard = 0; shard < plan.shards; ++shard) {
    if (!job->layout->blocks_of(ShardId(shard)).empty()) continue;
    const auto blocks = job->layout->blocks().size();
    return Error{concat("shards: ", plan.shards, " are more than the ", blocks,
                        " blocks of this model; give --shards ",
                        blocks == 1 ? "1" : concat("1 to ", blocks))};
  }
  job->consistency = make_consistency(plan.consistency);
  job->optimizer = make_optimizer(plan.optimizer);
  job->schedule = make_schedule(plan.schedule);
  job->orders = std::make_shared<EpochOrders>(job->data.train->size(), plan.seed);
  return std::shared_ptr<const Job>(job);
}

}  // namespace leeway
