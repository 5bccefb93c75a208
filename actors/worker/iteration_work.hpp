#pragma once
// IterationWork: the computation of a worker's whole iteration. Its parts end where layers are
// ready to push.
#include <string>
#include <vector>

#include "actors/outbox.hpp"
#include "core/ids.hpp"
#include "models/chunk_pass.hpp"
#include "tensor/blob.hpp"

namespace leeway {

class IterationWork : public Work {
 public:
  /// The mean over the samples of the parts so far.
  virtual const PassResult& result() const = 0;
  /// The layer that caused a loss that is not finite; empty if the loss is finite. If it is not
  /// empty, the participant must push nothing, and result() has that loss.
  virtual const std::string& diverged_layer() const = 0;
  /// After part `part`: the layers that it has completed.
  virtual std::vector<int> layers_of(int part) const = 0;
  /// Moves out the gradient of a block of these layers, or the pseudo-gradient.
  virtual Blob take_gradient(BlockId block) = 0;
  /// The share of the arithmetic that is done after part `part`.
  virtual double share_done(int part) const { return static_cast<double>(part + 1) / parts(); }
  /// After the last part, if the job pushes at the end: the sum of the squares of the completed
  /// gradients; not finite if one of them is not. Statistics of batch norm have none.
  virtual double squares() const { return 0; }
  /// Lets the parts that have not begun do nothing. The role then ignores the work. May be called
  /// while a part runs.
  virtual void cancel() {}
  /// Of the pulled weights, by block.
  virtual const std::vector<Version>& versions() const = 0;
};

}  // namespace leeway
