#pragma once
// PushEncoder: encodes a worker's gradients, and keeps what the encodings lose.
//
// With error feedback, a push has the gradient plus the residual of the block, and what its
// encoding loses is the next residual (policies/codec/codec.hpp). So the sum of all decoded pushes
// and the residual is the sum of all gradients, to rounding. The residual is part of the worker: it
// outlives sessions, and is lost with the worker.
#include <memory>
#include <vector>

#include "actors/job.hpp"
#include "messages/tensors.hpp"

namespace leeway {

class PushEncoder {
 public:
  PushEncoder(std::shared_ptr<const Job> job, WorkerId id);

  /// A gradient of a block as a push carries it. `version`: of the weights that it was computed on.
  msg::BlockData encode(BlockId block, Version version, Iteration iteration, Blob gradient);

 private:
  std::shared_ptr<const Job> job_;
  WorkerId id_;
  /// By block: the residual; without computed gradients, the encoding of zeros. Null: none yet.
  std::vector<Blob> kept_;
};

}  // namespace leeway
