#pragma once
// Store: keys with tensors that workers push gradients to and pull weights from, in a training loop
// of the program's own.
//
// Example:
//
//   #include <leeway/kv.hpp>
//   using namespace leeway;
//   int main() {  // the mean of the samples' numbers, by gradient descent
//     const auto result = kv::run([](kv::Store& store) {
//       float w = 0;
//       store.init("mean", {&w, {}});
//       store.set_optimizer(sgd(0.1));
//       while (const auto range = store.next_range()) {
//         store.pull("mean", {&w, {}}).wait();
//         float gradient = 0;
//         for (const std::int64_t sample : range->samples)
//           gradient += (w - static_cast<float>(sample)) / 64;
//         store.push("mean", {&gradient, {}});
//       }
//     }, {.workers = 4, .consistency = ssp(3), .samples = 1000, .batch = 64, .epochs = 5});
//     return result.exit_code;
//   }
//
// Iterations. A worker's clock counts its iterations. In each it pulls keys, in any order, and all
// of them have the weights of one moment, as the consistency policy allows; then it pushes at most
// one gradient for each key. An iteration ends with end_iteration(), and also with a call that
// belongs to the next one: a pull or a second push of a key that was pushed, next_range(), and a
// wait for a push. In a run with samples, next_range() begins each iteration. A key without a push
// has no gradient in that iteration; but keys below 16 KiB travel in groups, and with a push of the
// group its other keys get a gradient of zeros. assign_gradients() and updaters have no groups.
//
// Updates. A round's gradients (bsp, backup, quorum) are averaged over the workers, weighted by the
// samples of their ranges, and the optimizer is applied once; otherwise it is applied to each push.
// sum_gradients() and assign_gradients() add instead.
//
// Buffers. push() and set() copy, so the buffer may be changed when they return. gradient() returns
// memory of the store, from which push(key) sends without a copy: write it between these calls. A
// key in several blocks is copied there, too: one above 4 MiB or above a shard's share of all keys.
// The buffer of a pull is written when its handle is done, and must exist until then.
//
// Errors throw StoreError, whose text says what to do. When the run is over, calls that need it
// throw Ended, except next_range() and barrier(). A store belongs to one thread: a call throws Busy
// while another thread is in a call.
//
// Processes. Store::create() makes the store of a process: that of a worker in a program started by
// `leeway launch`, or a local one, which applies each push at once.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/time.hpp"
#include "kv/view.hpp"
#include "plan/plan.hpp"

namespace leeway::kv {

struct StoreError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Another thread is in a call of the store.
struct Busy : StoreError {
  using StoreError::StoreError;
};
/// The run is over: all samples are trained, or it was asked to stop.
struct Ended : StoreError {
  using StoreError::StoreError;
};
/// The loop is over although the run may continue: its worker was lost, for example by a fault of
/// the plan, or the end of the launcher.
struct Lost : Ended {
  using Ended::Ended;
};

/// A string or an integer. The integer 3 and the string "3" are the same key; the integer is found
/// faster.
class Key {
 public:
  Key(std::string name) : name_(std::move(name)) {}
  Key(const char* name) : name_(name) {}
  template <class Integer>
  requires std::is_integral_v<Integer> Key(Integer number) {
    if (std::in_range<std::int64_t>(number))
      number_ = static_cast<std::int64_t>(number);
    else
      name_ = std::to_string(number);
  }
  /// The integer of a key that was given as one.
  std::optional<std::int64_t> number() const { return number_; }
  std::string name() const { return number_ ? std::to_string(*number_) : name_; }

 private:
  std::string name_;
  std::optional<std::int64_t> number_;
};

/// The samples of an iteration.
struct Range {
  std::int64_t epoch = 0;
  std::vector<std::int64_t> samples;  // their numbers, in the epoch's seeded order
};

class StoreState;

/// A push or a pull, or several of one call. Copies refer to the same one. Must not outlive its
/// store.
class Handle {
 public:
  /// Is done.
  Handle() = default;
  /// A pull: its buffer has the weights. A push: the shards have applied it, or dropped it because
  /// its round was over or its worker evicted; the samples of a dropped push are leased again.
  /// Waiting for a push of the present iteration ends the iteration.
  void wait();
  /// Does not wait.
  bool done() const;
  /// Calls `next` on this thread when the handle is done: at once if it is, or at the end of a
  /// later call of the store.
  void then(std::function<void()> next);

  struct State;  // of the library

 private:
  friend class StoreState;
  explicit Handle(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;  // null: done
};

/// Settings of a store besides its type. Flags of the launcher, and those of a resumed run, replace
/// them.
struct StoreOptions {
  /// Samples per epoch and of an iteration, for next_range(). 0: the loops decide when they end.
  std::int64_t samples = 0;
  std::uint32_t batch = 64;
  double epochs = 1;
  std::uint64_t seed = 1;
};

class StoreSite;

class Store {
 public:
  /// "local": a store in this process only. Otherwise the store of a process that `leeway launch`
  /// has started as a worker, and that has only one: "dist_sync" (bsp), "dist_async" (asp),
  /// "dist_ssp(3)", "dist_backup(1)", "dist_quorum(3,20ms)", "dist_adaptive(1,8)" or "dist_auto".
  /// Throws StoreError.
  static Store create(const std::string& type, const StoreOptions& options = {});
  /// `site`: that of the state, if the store owns it.
  explicit Store(std::unique_ptr<StoreState> state, std::shared_ptr<StoreSite> site = nullptr);
  Store(Store&&) noexcept;
  /// The store of a launched process ends the iteration, leaves the run, and reports errors to the
  /// terminal. While an exception is thrown, its worker ends without the iteration, as if the
  /// process had died.
  ~Store();

  // Before the first push, pull or range:

  /// Adds a key. All workers add the same keys with the same shapes; the values of worker 0 count.
  void init(const Key& key, ConstView values);
  /// How shards update the keys; that of worker 0 counts. The default is sum_gradients().
  void set_optimizer(const plan::Optimizer& optimizer);
  /// The same with a function that the process of the shards has given to register_updater().
  void set_updater(const std::string& name);

  // The training loop:

  Handle pull(const Key& key, View out);
  Handle pull(std::span<const std::pair<Key, View>> outs);
  Handle push(const Key& key, ConstView gradient);
  Handle push(std::span<const std::pair<Key, ConstView>> gradients);
  /// Memory of the store (f32) for the key's gradient in this iteration, until push(key). Its
  /// values are unspecified.
  View gradient(const Key& key);
  /// Pushes the memory that gradient() has returned.
  Handle push(const Key& key);
  /// Pushes, ends the iteration, and pulls into `out`.
  Handle push_pull(const Key& key, ConstView gradient, View out);
  /// The same for several keys: pulls after all pushes.
  Handle push_pull(std::span<const std::pair<Key, ConstView>> gradients,
                   std::span<const std::pair<Key, View>> outs);
  /// Replaces the weights of a key, and leaves the state of the optimizer. The call is a push of
  /// the key in this iteration, which may be dropped like any push. In a round, gradients of other
  /// workers come first, and of several new values that of the last worker counts.
  Handle set(const Key& key, ConstView weights);
  /// The weights of a key (f32), in memory of the store, until the iteration ends; those of a local
  /// store change when the key is pushed.
  ConstView view(const Key& key);
  /// A copy of the weights.
  std::vector<float> get(const Key& key);
  /// Ends the iteration, which advances this worker's clock.
  void end_iteration();
  /// Ends the iteration, and returns when all workers of the run wait in barrier(), and all their
  /// pushes are applied. Workers that have left or are lost are not awaited. Also returns when the
  /// run is over.
  void barrier();
  /// The samples of the next iteration; none when all epochs are trained. Each sample of an epoch
  /// is trained once, by another worker if one is lost or its push dropped. Throws StoreError if
  /// the run has no samples.
  std::optional<Range> next_range();

  /// In the order of init().
  std::vector<std::string> keys() const;
  std::uint32_t rank() const;
  std::uint32_t workers() const;
  /// The number of this iteration on the worker's clock, from 0; begins the iteration. It continues
  /// when the worker was started again, and in a resumed run, which may skip a few numbers. Right
  /// after a push it is the number of that push: a loop ends its iteration before it asks.
  std::int64_t iteration();
  /// Ended iterations of this store.
  std::int64_t iterations() const;
  /// In a simulation: this worker computes for `time`. Elsewhere without effect.
  void compute(Duration time);
  /// In a simulation: the virtual time since the start, which only calls of the store move.
  /// Elsewhere 0.
  Duration simulated_time() const;

  /// Ends the iteration and leaves the run, as the destructor does. Throws StoreError. Requires
  /// that no other call follows.
  void close();
  /// Ends the worker without its iteration, as if its process had died. Requires that no other call
  /// follows.
  void abandon();

 private:
  Handle finish(Handle handle);
  template <class Pairs>
  void end_if_pushed(const Pairs& pairs);

  std::shared_ptr<StoreSite> site_;  // outlives the state
  std::unique_ptr<StoreState> state_;
  bool closed_ = false;
};

}  // namespace leeway::kv

namespace leeway {
using KvStore = kv::Store;
}
