#pragma once
// The text of --split-data.
#include <string>

#include "core/expected.hpp"
#include "plan/values.hpp"

namespace leeway {

/// The error lists the allowed texts.
Expected<plan::SplitData> parse_split_data(const std::string& text);

/// As parse_split_data() reads it.
std::string text_of(const plan::SplitData& split);

}  // namespace leeway
