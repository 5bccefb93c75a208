#pragma once
// Texts such as "top_k(0.01,2)" of flags.
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace leeway {

/// The numbers in "name(number,number)"; none for another text.
std::vector<double> arguments_of(std::string_view text, std::string_view name);
/// The number as a count; nullopt unless it is a whole number above 0.
std::optional<std::uint32_t> as_count(double number);

}  // namespace leeway
