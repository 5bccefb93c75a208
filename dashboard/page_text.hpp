#pragma once
// Texts of the page, which viewers on other machines may read.
#include <string>
#include <string_view>

namespace leeway::dashboard {

/// The text with only the last part of each absolute path: "/home/me/run/3: cannot be written" as
/// "3: cannot be written". Web addresses stay.
///
/// A path begins with a slash at the start of a word. It ends at a quote, or at a colon or bracket
/// before a space. The name of a folder may contain spaces.
std::string without_folders(std::string_view text);

}  // namespace leeway::dashboard
