#pragma once
// The manifest of a checkpoint (checkpoint/manifest.capnp) as JSON.
#include <string>

#include "checkpoint/values.hpp"
#include "core/expected.hpp"

namespace leeway::checkpoint {

/// The format that this program writes, and the only one that it reads.
inline constexpr std::uint32_t kFormat = 1;
/// Kinds of contents.
inline constexpr const char* kWeights = "weights";
inline constexpr const char* kOptimizer = "optimizer";

/// The name of its file in the folder of a checkpoint.
inline constexpr const char* kManifestFile = "manifest.json";

/// The version of this program, for `Manifest::leeway`.
std::string program_version();

/// The samples that the run had trained, over all epochs.
std::uint64_t samples_trained(const Manifest& manifest);

/// Of all files but the manifest.
std::uint64_t total_bytes(const Manifest& manifest);

/// With a digest of the text as its last key.
std::string to_json(const Manifest& manifest);

/// Adds the digest to the JSON of a manifest that has none.
std::string add_digest(std::string json);

/// Errors name `source`, and the line and key or the value found: not a manifest, damaged, another
/// format, or contents that this program does not know.
Expected<Manifest> manifest_from_json(const std::string& text, const std::string& source);

}  // namespace leeway::checkpoint
