#pragma once
// PipelineChecker: property 8 for stages, and what a schedule promises: each micro-batch goes
// through each part of the model once, both ways on the same weights, of which a stage keeps no
// more than it may.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "actors/job.hpp"
#include "sim/checkers/checker.hpp"
#include "sim/checkers/iteration_set.hpp"

namespace leeway::sim {

/// Of each stage, in its present life (the incarnation that it joined as, and the Start that it
/// goes by):
/// - A backward, and each half of one, reads the weights that its forward has read. They are of a
///   pull for this iteration or a later one, which every shard that the stage has blocks on has
///   answered to this incarnation, and they lack no more of the stage's own updates than the
///   schedule allows. A push names their versions.
/// - A micro-batch goes through a part forward once, then back once; and an iteration that is
///   pushed whole had all its samples go through.
/// - What it computes on came under this Start: the mini-batch, activations, gradients of outputs,
///   also where those are empty. Nothing is done of iterations that there are not (NoMore), and
///   none is pushed that was given up.
/// - It keeps no more activations of micro-batches than the schedule says, and no more versions of
///   its weights. What it keeps in memory is not seen; a version counts from the first answer to
///   its pull on, until nothing in flight has read it and nothing will: the iteration that the pull
///   was for is over, or a forward has read that of a later pull.
/// Does nothing where every worker trains the whole model.
class PipelineChecker final : public Checker {
 public:
  explicit PipelineChecker(std::shared_ptr<const Job> job);
  void on_event(Instant, Address actor, const Event& event) override;
  void on_sent(Instant, const Letter& letter) override;
  void on_delivered(Instant, const Letter& letter) override;
  void on_restarted(Instant, Address actor) override;

 private:
  using Positions = std::pair<std::int64_t, std::int64_t>;
  using MicroBatch = std::uint32_t;
  using ChunkIndex = std::uint32_t;

  /// What a stage has been told under one Start.
  struct Told {
    std::map<Iteration, Positions> mini_batches;
    std::optional<Iteration> end;  // there is no iteration from this one on
    std::map<std::tuple<Iteration, MicroBatch, ChunkIndex>, std::int64_t> activations;  // samples
    std::set<std::tuple<Iteration, MicroBatch, ChunkIndex>> gradients;
  };
  /// The way of a micro-batch through a part.
  struct Way {
    std::int64_t pull = 0;                 // iteration of it
    bool inputs = false, weights = false;  // has gone back
  };
  struct Progress {
    std::map<std::pair<ChunkIndex, MicroBatch>, Way> ways;
    std::map<MicroBatch, std::int64_t> samples;
    std::set<std::pair<std::uint32_t, std::uint32_t>> pushed;  // shard, part of a push
    bool over = false;                                         // the stage has said so
    bool computed = false;                                     // it had samples
  };
  /// One pull at one shard.
  struct Pull {
    Clock own_clock;
    std::optional<std::map<BlockId, Version>> answer;
  };
  struct Stage {
    Incarnation incarnation{1};
    std::uint64_t start = 0;
    std::map<std::uint64_t, Told> told;  // by number of the Start, this one and later ones
    std::map<Iteration, Progress> open;  // iterations that were begun
    IterationSet whole;                  // that were pushed
    std::map<Iteration, std::map<ShardId, Pull>> pulls;
    std::map<std::int64_t, int> in_flight;  // forwards without their backward, by pull
    std::int64_t latest_read = -1;          // pull, by a forward
    std::optional<Iteration> given_up;
  };

  void join(Stage& stage, Incarnation incarnation) const;
  void begin(Stage& stage, std::uint64_t start) const;
  void forward(Address actor, Stage& stage, const Event& event);
  void backward(Address actor, Stage& stage, const Event& event);
  void check_pull(Address actor, const Stage& stage, Iteration iteration, std::int64_t pull) const;
  void check_kept(Address actor, const Stage& stage) const;
  /// Whether the stage has what a pull brought, or part of it, and may go forward on it.
  bool may_read(const Stage& stage, Iteration pull, const std::map<ShardId, Pull>& at_shards) const;

  void tell(Address actor, const msg::MiniBatch& mini_batch);
  void tell(Address actor, const msg::NoMore& no_more);
  void count(Address actor, Progress& progress, MicroBatch micro_batch, std::int64_t samples) const;
  void from_stage(Address actor, const Letter& letter);
  void push(const Letter& letter, const msg::Push& push);
  /// Of an iteration, at all shards.
  std::size_t buckets_pushed(Address actor) const;
  /// Of the model, at all stages.
  std::uint32_t parts() const {
    return job_->stages->count() * static_cast<std::uint32_t>(spec_.chunks);
  }
  /// Looks at an iteration that is over, when all of it is pushed.
  void finish_if_done(Address actor, Stage& stage, Iteration iteration);
  void check_versions(const Letter& letter, const Stage& stage, const msg::Push& push) const;
  void check_whole(Address actor, const Stage& stage, Iteration iteration,
                   const Progress& progress) const;

  const StageShare& share_of(Address actor) const {
    return job_->stages->share_of(WorkerId(actor.index));
  }
  std::uint32_t index_of(Address actor) const {
    return job_->stages->stage_of(WorkerId(actor.index));
  }

  std::shared_ptr<const Job> job_;
  const pipeline::Schedule* schedule_ = nullptr;  // null: nothing is checked
  pipeline::Spec spec_;                           // with updates enough to fill the pipeline
  std::vector<Stage> stages_;                     // by worker
};

}  // namespace leeway::sim
