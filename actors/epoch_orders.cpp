#include "actors/epoch_orders.hpp"

#include "models/datasets/permutation.hpp"

namespace leeway {

EpochOrders::Order EpochOrders::of(Epoch epoch) {
  std::lock_guard lock(mutex_);
  for (const auto& [kept, order] : kept_)
    if (kept == epoch) return order;
  auto order =
      std::make_shared<const std::vector<std::int64_t>>(epoch_permutation(size_, seed_, epoch));
  if (kept_.size() == most_) kept_.pop_front();
  kept_.emplace_back(epoch, order);
  return order;
}

}  // namespace leeway
