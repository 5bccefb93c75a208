#pragma once
// check_resumed: whether a job can continue from its checkpoint.
#include "actors/job.hpp"

namespace leeway {

/// Whether the job continues the epochs of the checkpoint, and its optimizer the state. Requires
/// job.resumed.
Status check_resumed(const Job& job);

}  // namespace leeway
