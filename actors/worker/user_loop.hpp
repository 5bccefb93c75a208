#pragma once
// UserLoop: where the thread of a program's own training loop meets the worker that acts for it.
//
// One of the two runs at a time. The user's thread computes until it calls; the worker handles the
// call, and lets the thread continue when what the call waits for is there. To the worker, the time
// until the next call is a computation of one part, so stragglers slow it down, and a simulator
// runs it in its place in virtual time.
//
// Either side may end the loop. The other one is then let go, and further calls return at once.
#include <condition_variable>
#include <cstdint>
#include <functional>
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
    begin,    // samples and weights of the next iteration
    push,     // gradients of some layers of the iteration
    finish,   // the same of its last layers; all others get none
    flush,    // waits until all pushes are acknowledged
    compute,  // takes time, in a simulation
    close,    // the worker is to leave the run
  };
  Kind kind = Kind::begin;
  Iteration iteration;          // of push and finish: that of the latest begin
  std::vector<int> layers;      // whose gradients are complete
  std::vector<Blob> gradients;  // of push and finish, by block
  Duration time;                // of compute
};

struct UserAnswer {
  /// Not empty: the loop is over, and this is why.
  std::string over;
  // Of begin:
  Iteration iteration;
  LeasedIteration leased;
  PulledWeights weights;
};

class UserLoop {
 public:
  // ---- the user's thread ----

  /// Waits for the answer.
  UserAnswer call(UserCall call);

  // ---- the worker ----

  /// Waits until the user's thread has called, or the loop is over. The first time, calls `start`
  /// before.
  void wait();
  /// The call that wait() has waited for; none if the loop is over. It is still to be answered.
  std::optional<UserCall> take();
  void set_start(std::function<void()> start) { start_ = std::move(start); }
  /// Lets the user's thread continue, which waits for an answer.
  void answer(UserAnswer answer);

  // ---- both ----

  /// Answers this call and all later ones with `why`. Without effect if the loop is over.
  void end(const std::string& why);
  bool is_over() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<UserCall> call_;  // not taken yet
  bool waiting_ = false;          // the user's thread
  std::optional<UserAnswer> answer_;
  std::optional<std::string> over_;
  std::function<void()> start_;
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
