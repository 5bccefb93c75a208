#pragma once
// StoreState: what a Store does, on the thread of its user: in this process only (LocalStore), or
// on the shards of a run (SharedStore). This class has the keys and the handles of both.
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "kv/store.hpp"
#include "kv/table.hpp"
#include "tensor/blob.hpp"

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

  /// Marks a call of the store. Throws Busy while another thread is in a call.
  class CallGuard {
   public:
    explicit CallGuard(StoreState& state);
    ~CallGuard();
    CallGuard(const CallGuard&) = delete;
    CallGuard& operator=(const CallGuard&) = delete;

   private:
    StoreState& state_;
    bool is_outer_ = false;  // not within another call of this thread
  };

  // As in Store.
  void init(const Key& key, ConstView values);
  void set_optimizer(const plan::Optimizer& optimizer);
  virtual Handle pull(const Key& key, View out) = 0;
  virtual Handle push(const Key& key, ConstView gradient) = 0;
  virtual View gradient(const Key& key) = 0;
  virtual Handle push(const Key& key) = 0;
  virtual Handle set(const Key& key, ConstView weights) = 0;
  virtual ConstView view(const Key& key) = 0;
  /// Keeps the memory of the views of this iteration valid; null if it always is.
  virtual std::shared_ptr<const void> hold_views() const { return nullptr; }
  virtual std::vector<float> get(const Key& key) = 0;
  virtual void end_iteration() = 0;
  virtual void barrier() = 0;
  /// Before a call with this key among others: ends the iteration if the key was pushed in it.
  /// True if so.
  bool end_if_pushed(const Key& key);
  /// Whether any key was pushed in this iteration.
  bool has_pushes() const { return pushed_in_ == iterations_; }
  virtual std::optional<Range> next_range() = 0;
  std::vector<std::string> keys() const;
  virtual std::uint32_t rank() const = 0;
  virtual std::uint32_t workers() const = 0;
  virtual std::int64_t iteration() = 0;
  std::int64_t iterations() const { return iterations_; }
  virtual void compute(Duration time) = 0;
  virtual Duration simulated_time() const { return {}; }

  virtual void wait(const Handle::State& handle) = 0;
  /// Completes the pushes that are acknowledged.
  virtual void poll() = 0;
  /// Calls the functions that were given to then() of handles that are done. Each call of the store
  /// ends with it.
  void call_back();
  /// The user's loop has ended by itself: ends its iteration, and leaves the run. Pulls whose
  /// handles were not waited for are dropped. Throws Ended and StoreError.
  virtual void close() = 0;
  void abandon() { is_abandoned_ = true; }
  bool is_abandoned() const { return is_abandoned_; }

 protected:
  struct StoredKey {
    Shape shape;
    std::int64_t pushed_in = -1;  // the latest iteration with a push
    std::int64_t buffer_in = -1;  // the latest iteration with gradient()
  };

  /// The optimizer that the loop has set fits the store. Throws StoreError.
  virtual void check(const plan::Optimizer& /*optimizer*/) const {}
  /// The number of a key in the order of init(). Throws StoreError for an unknown key, or a `shape`
  /// that is not the key's.
  std::size_t find(const Key& key, const char* what, const Shape* shape) const;
  /// The same for a key that was not pushed in this iteration: ends it if the key was.
  std::size_t take(const Key& key, const char* what, const Shape* shape);
  bool was_pushed(std::size_t number) const { return keys_[number].pushed_in == iterations_; }
  void mark_pushed(std::size_t number) { keys_[number].pushed_in = pushed_in_ = iterations_; }
  /// Throws StoreError unless gradient() was called for the key in this iteration.
  void require_buffer(const Key& key, std::size_t number) const;
  void complete(Handle::State& handle);
  static Handle handle_of(std::shared_ptr<Handle::State> state) { return Handle(std::move(state)); }

  Declarations declarations_;
  std::vector<StoredKey> keys_;  // by number
  bool has_begun_ = false;       // the first iteration
  std::int64_t iterations_ = 0;  // that have ended

 private:
  std::atomic<std::thread::id> caller_{};  // that calls now
  bool is_abandoned_ = false;
  std::int64_t pushed_in_ = -1;  // the latest iteration with a push
  std::unordered_map<std::string, std::size_t> by_name_;
  std::unordered_map<std::int64_t, std::size_t> by_number_;  // of names that are integers
  std::deque<std::function<void()>> due_;                    // for call_back()
};

}  // namespace leeway::kv
