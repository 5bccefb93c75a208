#pragma once
// MomentumCorrection: momentum of workers instead of shards, for codecs that send few values (Lin,
// Han, Mao, Wang, Dally, "Deep Gradient Compression", ICLR 2018, sections 3.2 and 3.3).
//
// If a shard applied momentum to such pushes, a value that is sent once in many iterations would
// get the momentum of a single one. So each worker keeps the velocity u = m u + g of its own
// gradients and pushes the sum of the velocities that it has not sent; a velocity that is sent
// starts again at 0
// ("momentum factor masking"). The shard then applies the pushes by plain SGD.
#include <optional>

#include "plan/plan.hpp"

namespace leeway {

struct MomentumCorrection {
  float factor;  // m

  /// None unless the plan's pushes are gradients in top_k or random_k, and its optimizer is
  /// momentum without dampening.
  static std::optional<MomentumCorrection> of(const Plan& plan);
};

}  // namespace leeway
