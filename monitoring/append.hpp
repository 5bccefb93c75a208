#pragma once
// append_whole: appends records to a file that only has whole records, also on a full disk.
#include <string_view>

namespace leeway {

/// Appends all bytes at the end of an open file, or none: after a failed write the file has its
/// earlier length, and errno has the reason.
bool append_whole(int file, std::string_view bytes);

}  // namespace leeway
