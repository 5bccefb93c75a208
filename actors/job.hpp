#pragma once
// Job: what all roles of a run share and none changes.
#include <memory>

#include "actors/epoch_orders.hpp"
#include "messages/plan.hpp"
#include "models/datasets/dataset.hpp"
#include "models/layout.hpp"
#include "models/model.hpp"
#include "policies/consistency/consistency.hpp"
#include "policies/optimizer/optimizer.hpp"
#include "policies/schedule/schedule.hpp"

namespace leeway {

struct Job {
  Plan plan;
  TrainTest data;
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Layout> layout;
  std::shared_ptr<const Consistency> consistency;
  std::shared_ptr<const Optimizer> optimizer;
  std::shared_ptr<const Schedule> schedule;
  std::shared_ptr<EpochOrders> orders;
};

/// Builds everything that follows from the plan and the data, and checks that they fit. The error
/// says what to change.
Expected<std::shared_ptr<const Job>> make_job(const Plan& plan, TrainTest data);

}  // namespace leeway
