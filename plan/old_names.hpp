#pragma once
// Old names of settings. They are still accepted, with a note that gives the new name.
#include <string_view>

namespace leeway::plan {

struct OldName {
  std::string_view old_name, name;
};

/// Keys of a plan file.
inline constexpr OldName kOldKeys[] = {
    {"schedule", "lr_schedule"},
    {"chunk", "lease_size"},
};
inline constexpr OldName kOldFlags[] = {
    {"--chunk", "--lease-size"},
};

}  // namespace leeway::plan
