#pragma once
// PNG and JPEG files, written by libpng and libjpeg.
#ifdef LEEWAY_PNG
#include <png.h>
#endif
#ifdef LEEWAY_JPEG
#include <cstdio>

// needs FILE
#include <jpeglib.h>
#endif

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "tests/models/datasets/files.hpp"

namespace leeway::test {

#ifdef LEEWAY_PNG
/// `pixels`: (H, W, channels), with 1 or 3 channels, or 4 with opacity.
inline Bytes png(int width, int height, int channels, const std::vector<std::uint8_t>& pixels) {
  LW_CHECK(static_cast<std::size_t>(width * height * channels) == pixels.size());
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
  png_alloc_size_t size = 0;
  LW_CHECK(png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr));
  Bytes out(size);
  LW_CHECK(png_image_write_to_memory(&image, out.data(), &size, 0, pixels.data(), 0, nullptr));
  out.resize(size);
  return out;
}
#endif

#ifdef LEEWAY_JPEG
/// `pixels`: (H, W, channels), with 1 or 3 channels.
inline Bytes jpeg(int width, int height, int channels, std::vector<std::uint8_t> pixels) {
  jpeg_compress_struct image{};
  jpeg_error_mgr errors{};
  image.err = jpeg_std_error(&errors);
  jpeg_create_compress(&image);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&image, &buffer, &size);
  image.image_width = static_cast<JDIMENSION>(width);
  image.image_height = static_cast<JDIMENSION>(height);
  image.input_components = channels;
  image.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&image);
  jpeg_set_quality(&image, 100, TRUE);
  jpeg_start_compress(&image, TRUE);
  for (int y = 0; y < height; ++y) {
    JSAMPROW row = pixels.data() + static_cast<std::ptrdiff_t>(y) * width * channels;
    jpeg_write_scanlines(&image, &row, 1);
  }
  jpeg_finish_compress(&image);
  const auto* const begin = reinterpret_cast<const std::byte*>(buffer);
  Bytes out(begin, begin + size);
  jpeg_destroy_compress(&image);
  std::free(buffer);
  return out;
}
#endif

}  // namespace leeway::test
