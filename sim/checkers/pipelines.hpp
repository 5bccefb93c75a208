#pragma once
// PipelineChecker: property 8 for stages, and the promises of a schedule. Each micro-batch passes
// each chunk once, forward and backward on the same weights, and a stage keeps no more weights and
// activations than allowed.
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

/// Checks each stage in its present session:
/// - A backward, for inputs or for weights, reads the weights that its forward has read.
/// - These weights belong to a pull for this iteration or a later one. Every shard with blocks of
///   the stage has answered it in this session. They lack no more of the stage's own updates
///   than the schedule allows. A push names their versions.
/// - A micro-batch passes a chunk forward once, then backward once. All samples of a pushed
///   iteration have passed.
/// - Mini-batches, activations and gradients, also empty ones, arrived in this session. The stage
///   computes no iteration that does not exist (NoMore) and pushes none that was given up.
/// - It keeps at most as many activations and versions of its weights as the schedule allows. A
///   version counts from the first answer to its pull until no operation can read it any more: its
///   iteration is over or a forward has read a later pull, and no micro-batch in flight has read
///   it.
/// Checks nothing if every worker trains the whole model.
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

  using Computed = event::StageComputed;
  using Operation = Computed::Operation;

  /// Messages that a stage has received in one session.
  struct Received {
    std::map<Iteration, Positions> mini_batches;
    std::optional<Iteration> end;  // no iteration exists from here on
    std::map<std::tuple<Iteration, MicroBatch, ChunkIndex>, std::int64_t> activations;  // samples
    std::set<std::tuple<Iteration, MicroBatch, ChunkIndex>> gradients;
  };
  /// The passes of a micro-batch through a chunk.
  struct Pass {
    Iteration pull;                        // that forward has read
    bool inputs = false, weights = false;  // backward is done
  };
  struct Progress {
    std::map<std::pair<ChunkIndex, MicroBatch>, Pass> passes;
    std::map<MicroBatch, std::int64_t> samples;
    std::set<std::pair<std::uint32_t, std::uint32_t>> pushed;  // shard, bucket
    bool over = false;                                         // the stage has finished it
    bool computed = false;                                     // it had samples
  };
  /// One pull at one shard.
  struct Pull {
    Clock own_clock;
    std::optional<std::map<BlockId, Version>> answer;
  };
  struct Stage {
    JoinNonce nonce;                       // of its last Join
    bool joins = false;                    // it has ended its session
    Session session;                       // the present one, or the last
    std::map<Session, Received> received;  // from the present one on
    std::map<Iteration, Progress> open;    // iterations that were started
    IterationSet whole;                    // pushed iterations
    std::map<Iteration, std::map<ShardId, Pull>> pulls;
    std::map<Iteration, int> in_flight;    // forwards without their backward, by pull
    std::optional<Iteration> latest_read;  // pull of the last forward
    std::optional<Iteration> given_up;
  };

  static void begin(Stage& stage, Session session);
  void check_operation(Address actor, const Computed& computed);
  void forward(Address actor, Stage& stage, const Computed& computed);
  void backward(Address actor, Stage& stage, const Computed& computed);
  void check_pull(Address actor, const Stage& stage, Iteration iteration, Iteration pull) const;
  void check_kept(Address actor, const Stage& stage) const;
  /// Whether a shard has answered the pull, and a forward may still read it.
  bool may_read(const Stage& stage, Iteration pull, const std::map<ShardId, Pull>& at_shards) const;

  void receive(Address actor, Session session, const msg::MiniBatch& mini_batch);
  void receive(Address actor, Session session, const msg::NoMore& no_more);
  void count(Address actor, Progress& progress, MicroBatch micro_batch, std::int64_t samples) const;
  void from_stage(Address actor, const Letter& letter);
  void push(const Letter& letter, const msg::Push& push);
  /// Number of buckets of an iteration, at all shards.
  std::size_t buckets_pushed(Address actor) const;
  /// Number of chunks of the model.
  std::uint32_t chunks() const {
    return job_->stages->count() * static_cast<std::uint32_t>(spec_.chunks);
  }
  std::uint32_t stage_of(ChunkIndex chunk) const {
    return static_cast<std::uint32_t>(job_->stages->placement().stage_of(static_cast<int>(chunk)));
  }
  /// Checks the iteration if it is finished and pushed.
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
  const pipeline::Schedule* schedule_ = nullptr;  // null: no pipeline
  pipeline::Spec spec_;                           // with enough updates to fill the pipeline
  std::vector<Stage> stages_;                     // by worker
};

}  // namespace leeway::sim
