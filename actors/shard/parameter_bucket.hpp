#pragma once
// ParameterBucket: the blocks of one layer on one shard, with the queue of operations on them.
//
// All access to a bucket's memory goes through its queue, in order: updates by pushes, captures of
// the present weights for pulls, forks for snapshots. The computation of an update is long and runs
// elsewhere. Because of the queue, a pull that the staleness rule has permitted still sees exactly
// the pushes that were accepted before it. Weights are copy-on-write: an update runs in place if
// the buffer is not shared, otherwise into a recycled buffer.
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "actors/job.hpp"
#include "actors/outbox.hpp"
#include "actors/shard/block_state.hpp"
#include "actors/shard/contribution.hpp"
#include "actors/shard/pulled_versions.hpp"
#include "actors/shard/update_work.hpp"

namespace leeway {

/// The state with which a shard begins: the initial weights of the run, or zeros until restore().
enum class FirstState : std::uint8_t { of_run, zeros };

class ParameterBucket {
 public:
  /// The blocks of `bucket` on `device`.
  ParameterBucket(std::shared_ptr<const Job> job, const Bucket& bucket, Device device,
                  FirstState first);

  /// An update by the mean gradient over the pipelines of `contributions`. These are in ascending
  /// order of their workers, and each has data. A pipeline's gradient is the sum over its stages.
  /// `also_shadow`: the update belongs to the fork too. `measured`: the update runs in two works,
  /// a MeasureWork and, with the scale of its gradients, the update itself.
  struct Update {
    std::vector<Contribution> contributions;
    bool also_shadow = false;
    bool measured = false;
  };
  /// The pull of a worker for an iteration.
  struct Reader {
    WorkerId worker;
    Iteration iteration;
  };
  /// Hands references to the present state to `take`.
  struct Capture {
    std::function<void(const std::vector<BlockState>&)> take;
    std::optional<Reader> reader = {};
  };
  /// Closes the worker's pulls up to this iteration, without an update.
  struct Forget {
    WorkerId worker;
    Iteration upto;
  };
  /// Splits the state: from here on, only updates with also_shadow go into the shadow.
  struct Fork {};
  /// Drops the shadow.
  struct Unfork {};
  /// Hands the shadow to `take` and drops it; without a shadow, the present state.
  struct Collect {
    std::function<void(const std::vector<BlockState>&)> take;
  };
  using Item = std::variant<Update, Capture, Forget, Fork, Unfork, Collect>;

  /// `item`: one of the alternatives of Item.
  template <class Alternative>
  void enqueue(Alternative item) {
    queue_.emplace_back(std::move(item));
  }

  /// Runs the queue up to the next update. Returns the work of that update, which the caller
  /// computes once and then ends with finish(). Null if the queue is empty or an update is under
  /// way.
  std::shared_ptr<Work> advance();
  /// The second work of an update that has been measured.
  std::shared_ptr<Work> scaled(float scale);
  /// Ends the update under way.
  AppliedUpdate finish();

  bool is_idle() const { return queue_.empty() && !busy_; }
  /// Idle, and without a fork.
  bool is_plain() const { return is_idle() && shadow_.empty(); }
  /// Whether it remembers pulls, for a delay policy.
  bool follows_pulls() const { return !pulled_.empty(); }
  /// Bytes of old weights that are kept for a delay policy.
  std::uint64_t kept_bytes() const;
  /// The blocks. Requires is_plain().
  void save(std::vector<msg::StoredBlock>& blocks) const;
  /// Replaces the state of a block of this bucket; ignores other blocks.
  void restore(const msg::StoredBlock& block);

 private:
  void record(const Reader& reader);

  std::shared_ptr<const Job> job_;
  std::shared_ptr<Executor> on_;
  std::vector<BlockState> live_;
  std::vector<BlockState> shadow_;      // empty: no fork
  std::vector<PulledVersions> pulled_;  // by block; empty without a delay policy
  std::deque<Item> queue_;
  std::shared_ptr<UpdateWork> busy_;
};

}  // namespace leeway
