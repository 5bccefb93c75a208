#pragma once
// The state that a resumed run begins with, as checkers compute it from the checkpoint. In a run
// that was not resumed, all of it is 0 or empty.
#include <cstdint>
#include <vector>

#include "actors/job.hpp"
#include "sim/checkers/sample_set.hpp"

namespace leeway::sim {

/// The iterations of the pipeline that are part of the checkpoint. A pipeline that the earlier run
/// did not have begins with the last of its pipelines.
std::int64_t resumed_clock(const Job& job, std::uint32_t pipeline);
/// The least of all pipelines.
std::int64_t resumed_min_clock(const Job& job);

/// The staleness bound.
std::int64_t resumed_bound(const Job& job);

/// The number of updates of a block. If its rows were in several blocks, the largest.
std::int64_t resumed_version(const Job& job, const Block& block);

/// Inserts the trained samples.
void insert_resumed(const Job& job, SampleSet& samples);

/// The values of a parameter: of the checkpoint, or the initial ones.
std::vector<float> first_values(const Job& job, int parameter);

}  // namespace leeway::sim
