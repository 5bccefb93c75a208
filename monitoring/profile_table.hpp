#pragma once
// profile_table: where a run's time went, as a table.
#include <optional>
#include <string>
#include <vector>

#include "kernels/peak.hpp"
#include "models/profile.hpp"

namespace leeway {

/// One line a layer and operation, in the order of `rows`: time, its share, GFLOP/s and what part
/// they are of one core's measured peak, if one is given; for operations that only move memory,
/// GB/s. The time of all threads is added up.
std::string profile_table(const std::vector<Profile::Row>& rows,
                          const std::optional<kernels::Peak>& peak);

}  // namespace leeway
