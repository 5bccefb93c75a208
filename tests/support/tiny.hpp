#pragma once
// Small plans and jobs for tests.
#include "actors/job.hpp"
#include "core/check.hpp"
#include "models/datasets/load.hpp"

namespace leeway::test {

/// Three clusters of four features, two hidden layers: about a hundred parameters, plain SGD at a
/// constant rate.
inline Plan tiny_plan() {
  Plan plan;
  plan.name = "tiny";
  plan.data = plan::Synthetic{60, 20, plan::Clusters{3, 4, 3}};
  plan.model = {plan::Linear{6}, plan::Relu{}, plan::Linear{5}, plan::Relu{}, plan::Linear{3}};
  plan.optimizer = {0.05, 0, plan::Sgd{}};
  plan.consistency = plan::Ssp{1};
  plan.workers = 3;
  plan.shards = 2;
  plan.batch = 2;
  plan.stop.epochs = 2;
  plan.evaluate_every = 0;
  return plan;
}

/// Throws with the reason if the plan is refused.
inline std::shared_ptr<const Job> job_of(const Plan& plan) {
  auto data = load_data(plan.data, plan.seed);
  LW_CHECK(bool(data), data ? std::string() : data.error().text);
  auto job = make_job(plan, std::move(*data));
  LW_CHECK(bool(job), job ? std::string() : job.error().text);
  return *job;
}

}  // namespace leeway::test
