#pragma once
// The flag --serve-token, which belongs to --serve: of runs, node agents and `leeway view`.
#include "core/expected.hpp"

namespace leeway {

inline constexpr const char* kServeTokenHelp =
    "Text that the page's URL must contain, or auto for a random one; needed outside of the "
    "loopback interface";

inline Status check_serve_token(bool serves, bool has_token) {
  if (serves || !has_token) return {};
  return Error{"--serve-token belongs to --serve; give both, or leave it out"};
}

}  // namespace leeway
