#pragma once
// Job: what all roles of a run share and none changes.
#include <functional>
#include <memory>
#include <vector>

#include "actors/epoch_orders.hpp"
#include "actors/stages.hpp"
#include "models/datasets/dataset.hpp"
#include "models/layout.hpp"
#include "models/model.hpp"
#include "models/pack_cache.hpp"
#include "models/profile.hpp"
#include "plan/devices.hpp"
#include "plan/plan.hpp"
#include "policies/consistency/consistency.hpp"
#include "policies/optimizer/optimizer.hpp"
#include "policies/schedule/schedule.hpp"

namespace leeway {

/// How an actor gets an executor of its own.
using ExecutorFactory = std::function<Expected<std::shared_ptr<Executor>>(Device)>;

struct Job {
  Plan plan;
  TrainTest data;
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Layout> layout;
  std::shared_ptr<const Consistency> consistency;
  std::shared_ptr<const Stages> stages;
  std::shared_ptr<const Optimizer> optimizer;
  std::shared_ptr<const Schedule> schedule;
  std::shared_ptr<EpochOrders> orders;
  DevicePlacement devices{0, 0};
  ExecutorFactory executors;
  std::shared_ptr<PackCache> packed;  // of all workers of this process
  std::shared_ptr<Profile> profile;   // null: nothing is timed
  std::vector<plan::Fault> faults;    // of the plan, what their spread adds drawn from the seed
  std::vector<Blob> initial_weights;  // per parameter; empty: drawn from the seed
  /// Nothing is computed and all gradients are zero: see plan::World.
  bool cost_only = false;
  std::vector<Blob> no_gradients;  // per block, then; shared by all
  Blob no_activations;             // as large as any that goes from stage to stage; likewise

  /// An executor on `device`. make_job has seen that there is one; throws if there no longer is.
  std::shared_ptr<Executor> executor(Device device) const;
  /// Of a job that is cost_only: so many zeros, a part of no_activations. A message counts its own
  /// bytes, and none of them is written.
  Blob zeros(std::int64_t floats) const;
  /// Writes the weights that the run starts from. out: the parameter's shape, row-major.
  void initial_values(int parameter, float* out) const;
};

struct JobOptions {
  ExecutorFactory executors;         // empty: make_executor
  std::shared_ptr<Profile> profile;  // null: nothing is timed
  /// Whether an actor is on this machine, which must have its device then; empty: all are.
  std::function<bool(Address)> here;
  /// Per parameter, for a plan whose weights come from a file that is not read here; may be empty.
  std::vector<Blob> initial_weights;
};

/// Builds everything that follows from the plan and the data, and checks that they fit. The error
/// says what to change.
Expected<std::shared_ptr<const Job>> make_job(const Plan& plan, TrainTest data,
                                              JobOptions options = {});

}  // namespace leeway
