#pragma once
// GroupSumWork: the mean gradient of a host group, from those of its workers, for one part of an
// iteration.
#include <memory>
#include <utility>
#include <vector>

#include "actors/group/group_gradients.hpp"
#include "actors/outbox.hpp"

namespace leeway {

class GroupSumWork final : public Work {
 public:
  /// `on`: an executor of the lead's device, null when the job only counts costs. `scales`: of the
  /// workers' gradients.
  GroupSumWork(std::shared_ptr<const Job> job, std::shared_ptr<Executor> on,
               std::vector<float> scales, GroupPart part);

  int parts() const override { return 1; }
  Cost cost(int part) const override;
  bool continues_iteration() const override { return true; }
  /// Adds in the order of the workers, so that the bits do not depend on arrivals: they are those
  /// of a worker that has computed the shares as micro-batches.
  void run(int part) override;

  // After the part:
  /// If the job pushes at the end: the sum of the squares of the gradients, without statistics of
  /// batch norm.
  double squares() const { return squares_; }
  /// Moves out the gradient of a block of the part.
  Blob take(BlockId block);

 private:
  /// Of block `block` of the part; replaces the lead's gradient.
  void sum(std::size_t block, std::int64_t floats);

  std::shared_ptr<const Job> job_;
  std::shared_ptr<Executor> on_;
  std::vector<float> scales_;
  GroupPart part_;
  double squares_ = 0;
};

}  // namespace leeway
