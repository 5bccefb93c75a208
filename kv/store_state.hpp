#pragma once
// StoreState: what a Store does, on the thread of its user: in this process only (LocalStore), or
// on the shards of a run (SharedStore). This class has the keys and the handles of both.
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kv/store.hpp"
#include "kv/table.hpp"

namespace leeway::kv {

/// The declarations of a worker's loop before its first iteration.
struct Declarations {
  std::vector<TableKey> keys;
  std::vector<Blob> values;  // by key
  std::optional<plan::Optimizer> optimizer;
};

struct Handle::State {
  StoreState* store = nullptr;
  bool is_push = false;
  Iteration iteration;  // of a push
  bool done = false;
  std::vector<std::function<void()>> next;
};

class StoreState {
 public:
  virtual ~StoreState() = default;

  // As in Store.
  void init(const Key& key, ConstView values);
  void set_optimizer(const plan::Optimizer& optimizer);
  virtual Handle pull(const Key& key, View out) = 0;
  virtual Handle push(const Key& key, ConstView gradient) = 0;
  virtual ConstView view(const Key& key) = 0;
  virtual std::vector<float> get(const Key& key) = 0;
  virtual void end_iteration() = 0;
  virtual std::optional<Range> next_range() = 0;
  std::vector<std::string> keys() const;
  virtual std::uint32_t rank() const = 0;
  virtual std::uint32_t workers() const = 0;
  std::int64_t iterations() const { return iterations_; }
  virtual void compute(Duration time) = 0;

  virtual void wait(const Handle::State& handle) = 0;
  /// Completes the pushes that are acknowledged.
  virtual void poll() = 0;
  /// Calls the functions that were given to then() of handles that are done. Each call of the store
  /// ends with it.
  void call_back();
  /// The user's loop has ended by itself: ends its iteration, and leaves the run. Pulls whose
  /// handles were not waited for are dropped. Throws Ended and StoreError.
  virtual void close() = 0;

 protected:
  struct StoredKey {
    std::size_t number = 0;  // in the order of init()
    Shape shape;
    std::int64_t pushed_in = -1;  // the latest iteration with a push
  };

  /// The optimizer that the loop has set fits the store. Throws StoreError.
  virtual void check(const plan::Optimizer& /*optimizer*/) const {}
  /// The key, in an iteration in which it was not pushed: ends the present one if it was. Throws
  /// StoreError for an unknown key, or a `shape` that is not the key's.
  StoredKey& take(const Key& key, const char* what, const Shape* shape);
  /// Whether the key was pushed in this iteration.
  bool was_pushed(const Key& key) const;
  void complete(Handle::State& handle);
  static Handle handle_of(std::shared_ptr<Handle::State> state) { return Handle(std::move(state)); }

  Declarations declarations_;
  bool has_begun_ = false;       // the first iteration
  std::int64_t iterations_ = 0;  // that have ended

 private:
  std::map<std::string, StoredKey, std::less<>> keys_;
  std::deque<std::function<void()>> due_;  // for call_back()
};

}  // namespace leeway::kv
