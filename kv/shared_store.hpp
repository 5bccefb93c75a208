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
  ConstView view(const Key& key) override;
  std::vector<float> get(const Key& key) override;
  void end_iteration() override;
  std::optional<Range> next_range() override;
  std::uint32_t rank() const override { return worker_.value(); }
  std::uint32_t workers() const override { return site_.workers(); }
  void compute(Duration time) override;
  void wait(const Handle::State& handle) override;
  void poll() override;
  void close() override;

 private:
  struct Pull {
    std::size_t key = 0;  // its number
    float* out = nullptr;
    std::shared_ptr<Handle::State> handle;
  };

  /// Calls the worker; throws Ended if the loop is over.
  UserAnswer call(UserCall call);
  void declare();
  /// Begins an iteration unless one is under way.
  void begin();
  /// The first iteration has begun: finds the places of the keys.
  void place();
  void complete_pulls();
  /// The gradients of a block in this iteration: zeros at first.
  Blob& gradient_of(BlockId id);
  /// Moves the gradients of a layer into `call`: zeros for keys without a push.
  void add_layer(std::size_t layer, UserCall& call);

  StoreSite& site_;
  const WorkerId worker_;
  const std::shared_ptr<UserLoop> loop_;

  std::shared_ptr<const Job> job_;  // null before the first iteration
  struct Layer {
    std::size_t keys = 0;
    std::vector<BlockId> blocks;
    std::size_t pushed = 0;  // keys in this iteration
  };
  std::vector<Layer> layers_;
  std::vector<PlacedKey> placed_;  // by number of the key

  // The iteration; only while iterating_:
  bool iterating_ = false;
  bool range_taken_ = false;
  UserAnswer begun_;
  std::map<BlockId, Blob> gradients_;  // that were not handed over yet

  std::vector<Pull> pulls_;                            // not done
  std::deque<std::shared_ptr<Handle::State>> pushes_;  // not done, in their order
};

}  // namespace leeway::kv
