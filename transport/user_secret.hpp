#pragma once
// UserSecret: a random secret that all processes of one user share, in a file that only the user
// can read. Plain connections prove its knowledge, so that other users of the host get nothing.
#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "core/expected.hpp"

namespace leeway::transport {

using Secret = std::array<std::byte, 32>;
using Proof = std::array<std::byte, 32>;

/// Reads the secret, and makes it first if it is missing: `~/.config/leeway/token`, or
/// `/tmp/leeway-UID/token` without a writable home, or the file that LEEWAY_TOKEN names. The error
/// names the file: it is not the user's own, or others can read it.
Expected<Secret> user_secret();

/// HMAC-SHA256 of a text.
Proof prove(const Secret& secret, std::span<const std::byte> text);
/// Takes the same time for every pair.
bool is_equal(const Proof& a, const Proof& b);

}  // namespace leeway::transport
