#pragma once
// Job: the immutable data that all roles of a run share.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/epoch_orders.hpp"
#include "actors/replica/replica_gauge.hpp"
#include "actors/stages.hpp"
#include "actors/unreported.hpp"
#include "actors/update_ranges.hpp"
#include "models/datasets/dataset.hpp"
#include "models/layout.hpp"
#include "models/model.hpp"
#include "models/pack_cache.hpp"
#include "models/profile.hpp"
#include "plan/devices.hpp"
#include "plan/plan.hpp"
#include "policies/codec/push_codecs.hpp"
#include "policies/consistency/consistency.hpp"
#include "policies/delay/delay_policy.hpp"
#include "policies/lr_schedule/lr_schedule.hpp"
#include "policies/optimizer/optimizer.hpp"
#include "policies/straggler/disturbances.hpp"

namespace leeway {

class UserLoops;

namespace checkpoint {
class Store;
struct Checkpoint;
}  // namespace checkpoint

/// Makes the executor of one actor.
using ExecutorFactory = std::function<Expected<std::shared_ptr<Executor>>(Device)>;

struct Job {
  Plan given;  // as the user gave it, for files
  Plan plan;   // with the settings that it implies: see with_automatic_settings()
  TrainTest data;
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Layout> layout;
  std::shared_ptr<const Consistency> consistency;
  std::shared_ptr<const Stages> stages;
  plan::Optimizer shard_settings;                       // see shard_optimizer()
  std::shared_ptr<const Optimizer> optimizer;           // of the shards, with the delay policy
  std::shared_ptr<const DelayPolicy> delay_policy;      // null: plain pushes
  std::vector<std::vector<UpdateRange>> update_ranges;  // of the shards, by block
  std::shared_ptr<const Optimizer> local_optimizer;     // of local steps; null: none are taken
  std::vector<std::vector<UpdateRange>> local_ranges;   // of local steps, by block
  std::shared_ptr<const LrSchedule> lr_schedule;        // of gradients
  std::shared_ptr<const PushCodecs> push_codecs;        // null: none
  // Null: none.
  std::shared_ptr<const Codec> pull_codec, activation_codec, activation_gradient_codec;
  std::shared_ptr<const DataSplit> split;  // the workers' own samples; null: shared ones
  std::shared_ptr<EpochOrders> orders;
  DevicePlacement devices{0, 0};
  ExecutorFactory executors;
  std::shared_ptr<PackCache> packed;                     // shared by all workers of this process
  std::shared_ptr<Profile> profile;                      // null: no profile
  std::shared_ptr<const checkpoint::Store> checkpoints;  // null: none are written
  std::uint64_t next_checkpoint = 1;                     // number of the first new one
  /// Null: the run begins. A process releases the tensors when its shards have copied them.
  std::shared_ptr<checkpoint::Checkpoint> resumed;
  std::string run;                             // random name of the run, kept in its checkpoints
  std::uint64_t data_checksum = 0;             // kept there too; 0: unknown
  std::vector<plan::Fault> faults;             // the plan's, with random times from the seed
  std::vector<plan::Straggler> stragglers;     // the plan's, each beginning at an iteration
  std::shared_ptr<Disturbances> disturbances;  // what both have done in this process
  std::shared_ptr<Unreported> unreported;      // of the workers that have ended in this process
  std::shared_ptr<std::vector<ReplicaGauge>> replica_gauges;  // of this process's shards
  std::shared_ptr<UserLoops> user_loops;  // of this process's workers; null: the model computes
  bool computed_by_users = false;         // in loops of this or other processes
  bool workers_return = false;            // any that has been lost may come back
  /// Losses are multiplied by a factor, because some products have operands in fp16.
  bool scales_losses = false;
  std::vector<Blob> initial_weights;  // per parameter; empty: drawn from the seed
  std::vector<std::string> notes;     // for the user, before the run
  /// True: roles count costs without computing, and all gradients are zero (see plan::World).
  bool cost_only = false;
  std::vector<Blob> no_gradients;  // with cost_only: zeros per block
  Blob no_activations;             // with cost_only: zeros for the largest activation

  /// An executor on `device`. make_job has checked that the device exists; throws if it has
  /// disappeared since.
  std::shared_ptr<Executor> executor(Device device) const;
  /// With cost_only: `floats` zeros of no_activations, without a copy.
  Blob zeros(std::int64_t floats) const;
  /// The first iteration of a pipeline: 0, or where a resumed run continues. Under a bound, no
  /// pipeline starts so far behind that the others would wait for it.
  Iteration first_iteration(std::uint32_t pipeline) const;
  /// The largest of these, beyond which no iteration has begun.
  Iteration first_iteration() const;
  /// The first iteration of each worker; empty: 0.
  std::vector<Iteration> first_iterations() const;
  /// Whether its model computes losses.
  bool has_losses() const { return !cost_only && !computed_by_users; }
  /// The largest norm of a worker's gradient; 0: no limit. A policy with rounds limits the norm of
  /// the round instead. With a sparse codec workers clip even then, before the encoding (Lin et
  /// al., ICLR 2018, section 3.2): the mean of M independent gradients has a norm sqrt(M) times
  /// smaller, so each may have sqrt(M) times the limit of the round.
  double push_norm_limit() const;
  /// Whether the optimizer moves the block; false for untrained parameters and statistics.
  static bool is_stepped(const Block& block) { return block.average == 0 && !block.frozen; }
  /// Whether the norm of each push is limited.
  bool clips_pushes() const { return push_norm_limit() > 0; }
  /// Whether a shard may leave out an accepted push: of a round that is closed without it, or of an
  /// update that is skipped.
  bool may_drop_pushes() const { return consistency->round_size().drops() || scales_losses; }
  /// Whether an iteration is pushed when all its gradients are known, and not layer by layer.
  bool pushes_at_end() const { return clips_pushes() || scales_losses; }
  /// Whether the norm of each round is limited.
  bool clips_rounds() const { return shard_settings.clip_norm > 0 && !clips_pushes(); }
  /// The factor that limits a worker's gradient with this sum of squares.
  float clip_scale_of(double squares) const;
  /// Null for untrained parameters and statistics, whose pushes are not encoded, and without a
  /// codec.
  const Codec* push_codec_of(const Block& block, Iteration iteration) const {
    return push_codecs && is_stepped(block) ? &push_codecs->at(iteration) : nullptr;
  }
  /// The same for weights.
  const Codec* pull_codec_of(const Block& block) const {
    return is_stepped(block) ? pull_codec.get() : nullptr;
  }
  /// The learning rate of gradients after this many samples of training, before factors of
  /// parameters.
  double learning_rate(double samples) const;
  /// Whether the bound moves, and did so in the resumed run.
  bool continues_bound() const;
  /// The staleness bound that the run begins with.
  std::int64_t first_bound() const;
  /// Writes the initial weights of the run. out: the parameter's shape, row-major.
  void initial_values(int parameter, float* out) const;
};

struct JobOptions {
  std::shared_ptr<const Model> model;  // null: built from the plan
  ExecutorFactory executors;           // empty: make_executor
  std::shared_ptr<Profile> profile;    // null: no profile
  /// Whether an actor is on this machine, which then needs its device; empty: all actors are.
  std::function<bool(Address)> here;
  /// Per parameter: replaces the plan's file of initial weights; can be empty.
  std::vector<Blob> initial_weights;
  std::shared_ptr<const checkpoint::Store> checkpoints;  // null: none are written
  std::uint64_t next_checkpoint = 0;  // number of the first new one; 0: 1, or after `resumed`
  std::shared_ptr<checkpoint::Checkpoint> resumed;  // null: the run begins
  std::string run;                                  // its random name
  std::uint64_t data_checksum = 0;                  // 0: unknown
  std::shared_ptr<UserLoops> user_loops;  // of this process's workers; null: the model computes
  bool computed_by_users = false;         // in loops of this or other processes
  bool workers_return = false;            // see Job
};

/// Builds the model of a plan for its data.
Expected<std::shared_ptr<const Model>> make_model(const Plan& plan, const Dataset& data);

/// Builds the job of a plan and its data, and checks that they fit. The error names the setting to
/// change.
Expected<std::shared_ptr<const Job>> make_job(const Plan& plan, TrainTest data,
                                              JobOptions options = {});

}  // namespace leeway
