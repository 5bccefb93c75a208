#pragma once
// Draws how a plan of the search trains: clipping, codecs, precision, optimizer state, delay
// policy.
#include "plan/plan.hpp"

namespace leeway::sim {

/// Requires a plan whose seed, consistency and pipeline are drawn. A combination that make_job
/// refuses is not drawn.
void draw_training(Plan& plan);

}  // namespace leeway::sim
