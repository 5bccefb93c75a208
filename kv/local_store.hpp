#pragma once
// LocalStore: a store in this process only, with one worker and without actors. A push updates the
// weights at once, from the user's memory if it has floats.
#include <memory>
#include <optional>
#include <vector>

#include "actors/epoch_orders.hpp"
#include "kernels/executor.hpp"
#include "kv/store_state.hpp"
#include "policies/optimizer/optimizer.hpp"

namespace leeway::kv {

class LocalStore final : public StoreState {
 public:
  explicit LocalStore(const StoreOptions& options);

  Handle pull(const Key& key, View out) override;
  Handle push(const Key& key, ConstView gradient) override;
  View gradient(const Key& key) override;
  Handle push(const Key& key) override;
  Handle set(const Key& key, ConstView weights) override;
  ConstView view(const Key& key) override;
  std::vector<float> get(const Key& key) override;
  void end_iteration() override;
  void barrier() override;
  std::optional<Range> next_range() override;
  std::int64_t iteration() override;
  std::uint32_t rank() const override { return 0; }
  std::uint32_t workers() const override { return 1; }
  void compute(Duration) override {}
  void wait(const Handle::State& handle) override;
  void poll() override {}
  void close() override {}

 private:
  struct Tensor {
    Blob weights;
    std::vector<Blob> slots;  // of the optimizer
    Blob gradient;            // null before memory_of()
    double progress = 0;
  };

  void check(const plan::Optimizer& optimizer) const override;
  /// Makes the optimizer and its state before the first iteration.
  void begin();
  /// Memory for the gradient of a key.
  Blob& memory_of(std::size_t number);
  void update(std::size_t number, const float* gradient);

  const StoreOptions options_;
  const std::shared_ptr<Executor> executor_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<Tensor> tensors_;  // by number of the key
  EpochOrders orders_;
  std::int64_t leased_ = 0;  // samples, of all epochs
  bool range_taken_ = false;
  double weight_ = 1;  // of a push: the share of its range in a whole batch
};

}  // namespace leeway::kv
