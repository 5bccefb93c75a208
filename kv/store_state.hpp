#pragma once
// StoreState: the state of a store, on the thread of its user.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/worker/user_loop.hpp"
#include "kv/store.hpp"
#include "kv/table.hpp"

namespace leeway {
struct Job;
}

namespace leeway::kv {

/// The declarations of a worker's loop before its first iteration.
struct Declarations {
  std::vector<TableKey> keys;
  std::vector<Blob> values;  // by key
  std::optional<plan::Optimizer> optimizer;
};

/// The process of a store.
class StoreSite {
 public:
  virtual ~StoreSite() = default;
  virtual std::uint32_t workers() const = 0;
  /// The loop begins its first iteration. Does not wait.
  virtual void declared(WorkerId worker, const Declarations& declarations) = 0;
  /// The job, after the first answer to a call of the loop.
  virtual std::shared_ptr<const Job> job() const = 0;
};

struct Handle::State {
  StoreState* store = nullptr;
  bool is_push = false;
  std::int64_t iteration = 0;  // of a push
  bool done = false;
  std::vector<std::function<void()>> next;
};

class StoreState {
 public:
  StoreState(StoreSite& site, WorkerId worker, std::shared_ptr<UserLoop> loop);

  // As in Store.
  void init(const Key& key, ConstView values);
  void set_optimizer(const plan::Optimizer& optimizer);
  Handle pull(const Key& key, View out);
  Handle push(const Key& key, ConstView gradient);
  ConstView view(const Key& key);
  std::vector<float> get(const Key& key);
  void end_iteration();
  std::optional<Range> next_range();
  std::vector<std::string> keys() const;
  std::uint32_t rank() const { return worker_.value(); }
  std::uint32_t workers() const { return site_.workers(); }
  std::int64_t iterations() const { return iterations_; }
  void compute(Duration time);

  void wait(const Handle::State& handle);
  /// The user's loop has ended.
  void close();

 private:
  struct StoredKey : PlacedKey {
    std::int64_t pushed_in = -1;  // the latest iteration with a push
  };
  struct Pull {
    const StoredKey* key = nullptr;
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
  /// The key, in an iteration in which it was not pushed: ends the present one if it was. Throws
  /// StoreError for an unknown key, or a `shape` that is not the key's.
  StoredKey& take(const Key& key, const char* what, const Shape* shape);
  void complete_pulls();
  /// The gradients of a block in this iteration: zeros at first.
  Blob& gradient_of(BlockId id);
  /// Hands the gradients of a layer to the worker.
  void push_layer(int layer);
  static void complete(Handle::State& handle);

  StoreSite& site_;
  const WorkerId worker_;
  const std::shared_ptr<UserLoop> loop_;
  Declarations declarations_;
  bool declared_ = false;
  std::map<std::string, StoredKey, std::less<>> keys_;

  std::shared_ptr<const Job> job_;  // null before the first iteration
  std::vector<std::size_t> keys_of_layer_;

  std::int64_t iterations_ = 0;  // that have ended
  // The iteration; only while iterating_:
  bool iterating_ = false;
  bool range_taken_ = false;
  UserAnswer begun_;
  std::vector<Blob> gradients_;  // by block; empty: none yet, or handed over
  std::vector<std::size_t> pushed_of_layer_;

  std::vector<Pull> pulls_;                             // not done
  std::vector<std::shared_ptr<Handle::State>> pushes_;  // not done
};

}  // namespace leeway::kv
