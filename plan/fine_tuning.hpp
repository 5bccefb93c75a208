#pragma once
// Reads the settings of fine-tuning: renamed parameters and frozen layers.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/expected.hpp"

namespace leeway {

/// Reads `fine_tuning.init_map`, such as "net.=,encoder.=0.": pairs of a prefix and its
/// replacement.
Expected<std::vector<std::pair<std::string, std::string>>> parse_init_map(const std::string& text);

/// Reads `fine_tuning.freeze`, such as "0-3,5", for a model of `layers` layers: whether each is
/// frozen. Empty and "none" freeze no layer.
Expected<std::vector<bool>> parse_freeze(const std::string& text, std::size_t layers);

}  // namespace leeway
