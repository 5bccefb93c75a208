#pragma once
// SharedStore: a store on the shards of a run, which a worker of this process reaches.
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "actors/worker/user_loop.hpp"
#include "kv/store_state.hpp"

namespace leeway {
struct Job;
}

namespace leeway::kv {

/// The process of a store.
class StoreSite {
 public:
  virtual ~StoreSite() = default;
  virtual std::uint32_t workers() const = 0;
  /// Whether the run has samples to lease.
  virtual bool has_samples() const = 0;
  /// The time that an iteration with this many samples computes in a simulation.
  virtual Duration compute_time(std::int64_t /*samples*/) const { return {}; }
  /// The loop begins its first iteration. Does not wait.
  virtual void declared(WorkerId worker, const Declarations& declarations) = 0;
  /// The job, after the first answer to a call of the loop.
  virtual std::shared_ptr<const Job> job() const = 0;
};

class SharedStore final : public StoreState {
 public:
  SharedStore(StoreSite& site, WorkerId worker, std::shared_ptr<UserLoop> loop);

  Handle pull(const Key& key, View out) override;
  Handle push(const Key& key, ConstView gradient) override;
  View gradient(const Key& key) override;
  Handle push(const Key& key) override;
  Handle set(const Key& key, ConstView weights) override;
  ConstView view(const Key& key) override;
  std::shared_ptr<const void> hold_views() const override {
    return std::make_shared<std::vector<Blob>>(begun_.weights.blobs);
  }
  std::vector<float> get(const Key& key) override;
  void end_iteration() override;
  void barrier() override;
  std::optional<Range> next_range() override;
  std::int64_t iteration() override;
  std::uint32_t rank() const override { return worker_.value(); }
  std::uint32_t workers() const override { return site_.workers(); }
  void compute(Duration time) override;
  Duration simulated_time() const override { return now_ - Instant{}; }
  void wait(const Handle::State& handle) override;
  void poll() override;
  void close() override;

 private:
  struct Pull {
    std::size_t key = 0;  // its number
    void* out = nullptr;
    ElementType type = ElementType::f32;
  };

  /// Calls the worker. Throws Ended or Lost if the loop is over.
  UserAnswer call(UserCall call);
  /// The same for a call without an answer.
  void post(UserCall call);
  UserAnswer check(UserAnswer answer);
  void declare();
  /// Lets the time pass that the iteration computes, once.
  void take_compute_time();
  /// Begins an iteration unless one is under way.
  void begin();
  /// The first iteration has begun: finds the places of the keys.
  void place();
  void complete_pulls();
  /// Ends an iteration without pushes, so that its samples are leased again.
  void give_back();
  /// Copies the weights of a key.
  void copy(std::size_t number, void* out, ElementType type) const;
  /// Begins an iteration in which the key is pushed.
  void begin_push(const Key& key, const char* what);
  /// Copies a gradient, or new weights, and hands the key's layer over if it is complete.
  Handle push_copy(const Key& key, const char* what, ConstView values, bool assigns);
  /// The key's gradient is written.
  Handle pushed(std::size_t number);
  /// Memory for the gradients of a block in this iteration.
  Blob& gradient_of(BlockId id);
  /// Copies a gradient, or new weights, to the memory of its blocks.
  void split(std::size_t number, const void* values, ElementType type);
  /// Moves the gradients of a layer into `call`: zeros for keys without a push.
  void add_layer(std::size_t layer, UserCall& call);
  // Debug builds:
  /// A number that depends on the gradient of a key.
  std::size_t hash_of_gradient(std::size_t number) const;
  void remember_gradient(std::size_t number);
  /// Throws StoreError if a gradient was written after its push.
  void check_gradients();

  StoreSite& site_;
  const WorkerId worker_;
  const std::shared_ptr<UserLoop> loop_;

  std::shared_ptr<const Job> job_;  // null before the first iteration
  Instant now_;                     // in a simulation: of the latest answer
  struct Layer {
    std::vector<std::size_t> keys;  // their numbers
    std::vector<BlockId> blocks;
    std::size_t pushed = 0;  // keys in this iteration
  };
  std::vector<Layer> layers_;
  std::vector<PlacedKey> placed_;  // by number of the key

  // The iteration; only while iterating_:
  bool iterating_ = false;
  bool range_taken_ = false;
  bool time_taken_ = false;
  UserAnswer begun_;
  AssignedSlices assigned_;  // of layers that were not handed over yet

  /// A key in several blocks, in one piece for the user.
  struct Joined {
    std::vector<float> weights, gradient;
  };
  std::map<std::size_t, Joined> joined_;               // by number
  std::vector<Blob> gradients_;                        // by block; null: none was written
  std::vector<Pull> pulls_;                            // not done
  std::shared_ptr<Handle::State> pulling_;             // of these; null: there are none
  std::deque<std::shared_ptr<Handle::State>> pushes_;  // not done: one for each iteration

  // In debug builds, of this iteration:
  std::map<std::size_t, std::size_t> hashes_;  // of the pushed gradients, by number of the key
  std::map<BlockId, Blob> handed_over_;        // to the worker
};

}  // namespace leeway::kv
