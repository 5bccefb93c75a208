#pragma once
// ParameterBucket: the blocks of one layer on one shard, with the queue of what happens to them.
//
// Everything that touches a group's memory goes through its queue, in order: an update by a push,
// the capture of the present weights for a pull, the fork of a cut. So a pull that the staleness
// rule let through sees exactly the pushes that were taken before it, although applying them is
// long work that runs elsewhere. Weights are copy-on-write: an update runs in place when nobody
// else holds the buffer, else into a recycled one.
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "actors/job.hpp"
#include "actors/outbox.hpp"
#include "messages/worker_shard.hpp"

namespace leeway {

/// One worker's part of an iteration, on its way into a group.
struct Contribution {
  WorkerId worker;
  Incarnation incarnation;
  Iteration iteration;
  std::uint32_t bucket = 0;  // as the worker numbers them
  std::uint32_t group = 0;   // as the shard does
  double weight = 0;         // samples / samples of one round
  std::uint32_t samples = 0;
  /// Of blocks that several stages of a pipeline own, the samples count when the first stage's
  /// gradient of them is applied.
  bool first_owner = true;
  std::uint32_t owners = 1;  // of these blocks, each with its part of the gradient
  std::vector<msg::BlockData>
      blocks;  // one for each of the group's, in its order; none for an empty push
};

class ParameterBucket {
 public:
  struct BlockState {
    const Block* block = nullptr;
    Blob weights;
    std::vector<Blob> slots;  // optimizer state; none for statistics
    Version version;
    double progress = 0;       // sum of the weights of the pushes applied
    std::int64_t samples = 0;  // trained on so far

    /// The weights as they travel: a reference, not a copy.
    msg::BlockData describe() const {
      return {block->id, version, DType::f32, Shape{block->floats}, weights};
    }
  };

  /// On `device`.
  ParameterBucket(std::shared_ptr<const Job> job, const Bucket& part, Device device);

  /// An update by the mean gradient over the pipelines of `contributions`, which are in ascending
  /// order of their workers; none may be empty. A pipeline's gradient is the sum of those of its
  /// stages. `also_shadow`: it belongs to the fork too.
  struct Update {
    std::vector<Contribution> contributions;
    bool also_shadow = false;
  };
  /// Takes references to the present state and hands it to `take`.
  struct Capture {
    std::function<void(const std::vector<BlockState>&)> take;
  };
  /// Splits the state: from here on, only updates with also_shadow go into the shadow.
  struct Fork {};
  /// Drops the shadow.
  struct Unfork {};
  /// Like Capture, of the shadow if there is one, which is dropped.
  struct Collect {
    std::function<void(const std::vector<BlockState>&)> take;
  };
  using Item = std::variant<Update, Capture, Fork, Unfork, Collect>;

  void enqueue(Item item) { queue_.push_back(std::move(item)); }

  /// Runs the queue up to the next update. Returns the work of that update, to be computed once and
  /// then given to finish(); null when the queue is empty or an update is under way.
  std::shared_ptr<Work> advance();
  /// What an update has applied, and how many versions lay between the weights that each gradient
  /// was computed on and those it went into (the largest over the group's blocks).
  struct Applied {
    std::vector<Contribution> contributions;
    std::vector<std::int64_t> version_lags;
  };
  /// Ends the update under way.
  Applied finish();

  const Bucket& part() const { return part_; }
  bool idle() const { return queue_.empty() && !busy_; }
  std::size_t queued() const { return queue_.size(); }

 private:
  class UpdateWork;
  std::shared_ptr<const Job> job_;
  std::shared_ptr<Executor> on_;
  Bucket part_;
  std::vector<BlockState> live_;
  std::vector<BlockState> shadow_;  // empty: no fork
  std::deque<Item> queue_;
  std::shared_ptr<UpdateWork> busy_;
};

}  // namespace leeway
