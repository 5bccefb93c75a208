#include "models/datasets/image_file.hpp"

#include <string_view>

#ifdef LEEWAY_PNG
#include <png.h>
#endif
#ifdef LEEWAY_JPEG
#include <csetjmp>
#include <cstdio>

// needs FILE
#include <jpeglib.h>

// needs jpeglib.h
#include <jerror.h>
#endif

#include "core/limits.hpp"
#include "core/text.hpp"
#include "models/datasets/file.hpp"

namespace leeway {

namespace {

using Pixels = std::vector<std::uint8_t>;  // interleaved: (H, W, C)

enum class ImageFormat : std::uint8_t { png, jpeg, unknown };

ImageFormat format_of(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (text.starts_with("\x89PNG\r\n\x1a\n")) return ImageFormat::png;
  if (text.starts_with("\xff\xd8\xff")) return ImageFormat::jpeg;
  return ImageFormat::unknown;
}

Error broken_image(const std::string& name, std::string_view format, std::string_view reason) {
  return Error{
      concat(name, ": is not a readable ", format, " file: ", reason, "; replace or remove it")};
}

Error unknown_image(std::span<const std::byte> file, const std::string& name) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  return Error{concat(name, ": is neither a PNG nor a JPEG file; it begins with ",
                      excerpt(text.substr(0, 8)), "; convert or remove it")};
}

[[maybe_unused]] Error missing_decoder(const std::string& name, std::string_view format,
                                       std::string_view package) {
  return Error{concat(name, ": this build reads no ", format, " files; install ", package,
                      " and build again")};
}

#ifdef LEEWAY_PNG

/// Owns what libpng allocates for one image.
struct PngImage {
  png_image image{};
  PngImage() { image.version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(&image); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;

  bool begin(std::span<const std::byte> file) {
    return png_image_begin_read_from_memory(&image, file.data(), file.size()) != 0;
  }
};

Expected<ImageSize> png_size(std::span<const std::byte> file, const std::string& name) {
  PngImage png;
  if (!png.begin(file)) return broken_image(name, "PNG", png.image.message);
  return ImageSize{png.image.width, png.image.height,
                   (png.image.format & PNG_FORMAT_FLAG_COLOR) != 0};
}

Expected<Pixels> decode_png(std::span<const std::byte> file, const std::string& name, bool color) {
  PngImage png;
  if (!png.begin(file)) return broken_image(name, "PNG", png.image.message);
  png.image.format = color ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  Pixels pixels(PNG_IMAGE_SIZE(png.image));
  const png_color black{0, 0, 0};
  const bool is_read = png_image_finish_read(&png.image, &black, pixels.data(), 0, nullptr) != 0;
  // Missing pixels are an error. Warnings are about the color profiles of many good files.
  if (!is_read) return broken_image(name, "PNG", png.image.message);
  return pixels;
}

#else

Expected<ImageSize> png_size(std::span<const std::byte>, const std::string& name) {
  return missing_decoder(name, "PNG", "libpng-dev");
}
Expected<Pixels> decode_png(std::span<const std::byte>, const std::string& name, bool) {
  return missing_decoder(name, "PNG", "libpng-dev");
}

#endif
#ifdef LEEWAY_JPEG

/// libjpeg reports an error by a call that must not return.
struct JpegErrors {
  jpeg_error_mgr manager{};  // first, because libjpeg knows only its address
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX] = "";
};

extern "C" {
void leeway_jpeg_error(j_common_ptr common) {
  auto* const errors = reinterpret_cast<JpegErrors*>(common->err);
  errors->manager.format_message(common, errors->text);
  std::longjmp(errors->jump, 1);
}
/// libjpeg only warns about truncated and corrupt pixels, and makes up the rest. Other warnings,
/// such as those about extra bytes, are about many good files.
void leeway_jpeg_message(j_common_ptr common, int level) {
  const int code = common->err->msg_code;
  const bool is_broken = code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER ||
                         code == JWRN_HUFF_BAD_CODE || code == JWRN_ARITH_BAD_CODE ||
                         code == JWRN_MUST_RESYNC;
  if (level < 0 && is_broken) leeway_jpeg_error(common);
}
}

void begin_jpeg(jpeg_decompress_struct& jpeg, JpegErrors& errors) {
  jpeg.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = leeway_jpeg_error;
  errors.manager.emit_message = leeway_jpeg_message;
}

/// Reads the header, and the rows into `pixels` if it is not null and has `bytes` bytes, which must
/// be those of the image. No object here has a destructor that longjmp would skip.
bool run_jpeg(jpeg_decompress_struct& jpeg, JpegErrors& errors, std::span<const std::byte> file,
              bool color, std::uint8_t* pixels, std::size_t bytes) {
  if (setjmp(errors.jump) != 0) return false;
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&jpeg, TRUE);
  if (!pixels) return true;
  jpeg.out_color_space = color ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_start_decompress(&jpeg);
  const std::size_t row =
      std::size_t{jpeg.output_width} * static_cast<std::size_t>(jpeg.output_components);
  if (row * jpeg.output_height != bytes) return false;
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW to = pixels + row * jpeg.output_scanline;
    jpeg_read_scanlines(&jpeg, &to, 1);
  }
  jpeg_finish_decompress(&jpeg);
  return true;
}

struct JpegImage {
  jpeg_decompress_struct jpeg{};
  JpegErrors errors;
  JpegImage() { begin_jpeg(jpeg, errors); }
  ~JpegImage() { jpeg_destroy_decompress(&jpeg); }
  JpegImage(const JpegImage&) = delete;
  JpegImage& operator=(const JpegImage&) = delete;
};

Expected<ImageSize> jpeg_size(std::span<const std::byte> file, const std::string& name) {
  JpegImage image;
  if (!run_jpeg(image.jpeg, image.errors, file, false, nullptr, 0))
    return broken_image(name, "JPEG", image.errors.text);
  return ImageSize{image.jpeg.image_width, image.jpeg.image_height, image.jpeg.num_components != 1};
}

Expected<Pixels> decode_jpeg(std::span<const std::byte> file, const std::string& name, bool color) {
  const auto size = jpeg_size(file, name);
  if (!size) return size.error();
  Pixels pixels(static_cast<std::size_t>(size->width * size->height) * (color ? 3 : 1));
  JpegImage image;
  if (!run_jpeg(image.jpeg, image.errors, file, color, pixels.data(), pixels.size()))
    return broken_image(name, "JPEG", image.errors.text);
  return pixels;
}

#else

Expected<ImageSize> jpeg_size(std::span<const std::byte>, const std::string& name) {
  return missing_decoder(name, "JPEG", "libjpeg-dev");
}
Expected<Pixels> decode_jpeg(std::span<const std::byte>, const std::string& name, bool) {
  return missing_decoder(name, "JPEG", "libjpeg-dev");
}

#endif

Expected<ImageSize> stored_size(std::span<const std::byte> file, const std::string& name) {
  switch (format_of(file)) {
    case ImageFormat::png:
      return png_size(file, name);
    case ImageFormat::jpeg:
      return jpeg_size(file, name);
    case ImageFormat::unknown:
      break;
  }
  return unknown_image(file, name);
}

}  // namespace

Expected<ImageSize> image_size(std::span<const std::byte> file, const std::string& name) {
  const auto size = stored_size(file, name);
  if (!size) return size;
  constexpr auto kMost = limits::kMaxImageSide;
  if (size->width > 0 && size->height > 0 && size->width <= kMost && size->height <= kMost)
    return size;
  return Error{concat(name, ": has ", size->width, " x ", size->height, " pixels, at most ", kMost,
                      " x ", kMost, " are read; resize or remove it")};
}

Expected<std::vector<std::uint8_t>> decode_image(std::span<const std::byte> file,
                                                 const std::string& name, bool color) {
  const auto size = image_size(file, name);
  if (!size) return size.error();
  auto pixels = format_of(file) == ImageFormat::png ? decode_png(file, name, color)
                                                    : decode_jpeg(file, name, color);
  if (!pixels || !color) return pixels;
  const auto count = static_cast<std::size_t>(size->width * size->height);
  Pixels planes(3 * count);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t channel = 0; channel < 3; ++channel)
      planes[channel * count + i] = (*pixels)[3 * i + channel];
  return planes;
}

}  // namespace leeway
