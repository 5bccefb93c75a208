#pragma once
// UserLoop: where the thread of a program's own training loop meets the worker that acts for it.
//
// The user's thread computes until it calls. The worker handles the call, and answers when the
// weights or samples that the call waits for have arrived. To the worker, the time until the next
// call is a computation of one part: stragglers slow it down, and a simulator gives it its place in
// virtual time. In a simulation the thread only runs within that computation, so one loop runs at a
// time. A real thread need not wait for calls without an answer: it posts them, and the worker
// handles them in order.
//
// Either side may end the loop. The other one then continues, and further calls return at once.
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/worker/lease_queue.hpp"
#include "actors/worker/parameter_client.hpp"
#include "core/ids.hpp"
#include "core/time.hpp"
#include "tensor/blob.hpp"

namespace leeway {

struct Job;

/// A call of the user's thread.
struct UserCall {
  enum class Kind : std::uint8_t {
    begin,      // samples and weights of the next iteration
    push,       // gradients of some layers of the iteration
    finish,     // the same of its last layers; all others get none
    flush,      // waits until all pushes are acknowledged
    give_back,  // ends the iteration without pushes; its samples are leased again
    barrier,    // waits for the other workers; between two iterations
    compute,    // takes time, in a simulation
    close,      // the worker is to leave the run
  };
  Kind kind = Kind::begin;
  Iteration iteration;                // of push, finish, give_back: that of the latest begin
  std::vector<int> layers;            // whose gradients are complete
  std::map<BlockId, Blob> gradients;  // of push and finish: of all blocks of these layers
  AssignedSlices assigned;            // of these blocks: new weights in place of gradients
  Duration time;                      // of compute
};

struct UserAnswer {
  /// Not empty: the loop is over, and this is why.
  std::string over;
  bool lost = false;  // it is over because its worker has ended, and not the run
  Instant now;        // when it was given
  // Of begin:
  Iteration iteration;
  LeasedIteration leased;
  PulledWeights weights;
};

class UserLoop {
 public:
  /// `start`: starts the user's thread at the first wait(); null if it runs already. `simulated`:
  /// the thread only runs within wait() and end_and_wait().
  explicit UserLoop(bool simulated = false, std::function<void()> start = nullptr)
      : simulated_(simulated), start_(std::move(start)) {}

  bool is_simulated() const { return simulated_; }

  // ---- the user's thread ----

  /// Waits for the answer.
  UserAnswer call(UserCall call);
  /// A call that needs no answer. Waits until the worker has handled it in a simulation, and unless
  /// allow_posts() was called. Returns an empty answer, or why the loop is over.
  UserAnswer post(UserCall call);
  /// The clock below which the shards have acknowledged the pushes of all iterations.
  Clock acknowledged() const { return Clock(acknowledged_.load(std::memory_order_relaxed)); }
  /// The user's thread makes no more calls.
  void finished();

  // ---- the worker ----

  /// Posted calls need not wait. Requires that nothing slows the worker down: a straggler is slowed
  /// by the time between its calls.
  void allow_posts();
  /// Lets the user's thread run until it calls, or the loop is over.
  void wait();
  /// The oldest call; none if the loop is over. It is still to be answered.
  std::optional<UserCall> take();
  /// Answers the call that was taken; without effect if it was posted.
  void answer(UserAnswer answer);
  void set_acknowledged(Clock clock) {
    acknowledged_.store(clock.value(), std::memory_order_relaxed);
  }
  enum class End : std::uint8_t { run, worker };
  /// end(), and in a simulation waits until the user's thread has finished.
  void end_and_wait(End what, const std::string& why);

  // ---- both ----

  /// Answers this call and all later ones with `why`. `what` has ended. Without effect if the loop
  /// is over.
  void end(End what, const std::string& why);

 private:
  /// In a simulation the loop is over when its thread has finished.
  bool is_over() const { return over_ && (!simulated_ || finished_ || start_); }

  const bool simulated_;
  std::function<void()> start_;  // null: it runs, or has run
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<UserCall> calls_;  // not taken yet; only the last one may be waited for
  bool posts_ = false;          // allow_posts()
  bool waiting_ = false;        // the user's thread, for the answer to its last call
  std::optional<UserAnswer> answer_;
  bool may_run_ = true;  // the user's thread, when it is answered
  std::optional<UserAnswer> over_;
  bool finished_ = false;
  std::atomic<std::int64_t> acknowledged_{0};
};

/// The loops of a process's workers.
class UserLoops {
 public:
  virtual ~UserLoops() = default;
  /// The loop of this launch of a worker. Called when the worker begins.
  virtual std::shared_ptr<UserLoop> begin(const std::shared_ptr<const Job>& job, WorkerId worker,
                                          std::uint32_t launch) = 0;
};

}  // namespace leeway
