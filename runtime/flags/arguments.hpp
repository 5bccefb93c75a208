#pragma once
// Texts such as "top_k(0.01,2)" of flags.
#include <string_view>
#include <vector>

namespace leeway {

/// The numbers in "name(number,number)"; none for another text.
std::vector<double> arguments_of(std::string_view text, std::string_view name);

}  // namespace leeway
