#pragma once
// MeasureWork: the first half of an update whose gradient is limited by the norm of its round.
#include <memory>

#include "actors/shard/update_work.hpp"

namespace leeway {

/// Each part computes and keeps the mean gradient of one block of the update.
class MeasureWork final : public Work {
 public:
  explicit MeasureWork(std::shared_ptr<UpdateWork> update) : update_(std::move(update)) {}

  int parts() const override { return update_->parts(); }
  Cost cost(int part) const override { return update_->measuring_cost(part); }
  void run(int part) override { update_->measure(part); }

  const UpdateWork& update() const { return *update_; }

 private:
  std::shared_ptr<UpdateWork> update_;
};

}  // namespace leeway
