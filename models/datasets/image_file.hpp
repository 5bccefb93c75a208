#pragma once
// Decoding of PNG and JPEG files, through libpng and libjpeg.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/expected.hpp"

namespace leeway {

struct ImageSize {
  std::int64_t width = 0, height = 0;
  bool color = false;
  bool operator==(const ImageSize&) const = default;
};

/// The size in the header of a PNG or JPEG file, at most kMaxImageSide in both directions. `name`
/// is for errors, which also name the package of a decoder that this build lacks.
Expected<ImageSize> image_size(std::span<const std::byte> file, const std::string& name);

/// Decodes to 8 bits per channel: (3, H, W) if `color`, else (1, H, W), on a black background.
/// Requires the file's size. Errors: corrupt or truncated files.
Expected<std::vector<std::uint8_t>> decode_image(std::span<const std::byte> file,
                                                 const std::string& name, bool color);

}  // namespace leeway
