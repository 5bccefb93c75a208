#pragma once
// foreign_blob: a blob of memory that somebody else owns, who is told when nobody reads it any
// more.
#include <cstddef>
#include <functional>
#include <span>

#include "tensor/blob.hpp"

namespace leeway {

/// Host memory to be read alone: the blob is never unique, and never written. `done` is called
/// once, on any thread, when the last reference goes; it throws nothing. Requires bytes aligned to
/// 64 that stay as they are until then.
Blob foreign_blob(std::span<const std::byte> bytes, std::function<void()> done);

}  // namespace leeway
