#pragma once
// foreign_blob: a blob over borrowed memory, whose owner is notified when it is no longer read.
#include <cstddef>
#include <functional>
#include <span>

#include "tensor/blob.hpp"

namespace leeway {

/// The blob is read-only and never unique(). When the last reference goes, `done` is called once,
/// on any thread; it must not throw. Requires 64-byte aligned bytes that do not change until then.
Blob foreign_blob(std::span<const std::byte> bytes, std::function<void()> done);

}  // namespace leeway
