#include "models/datasets/image_folder.hpp"

#include <rapidcheck/catch.h>
#include <zlib.h>

#include "core/limits.hpp"
#include "models/datasets/image_file.hpp"
#include "models/datasets/preprocessing.hpp"
#include "tests/models/datasets/gathered.hpp"
#include "tests/models/datasets/image_files.hpp"

namespace leeway {
namespace {

using Catch::Matchers::Contains;
using test::gather_all;
using Pixels = std::vector<std::uint8_t>;

/// A folder of classes.
class Folder {
 public:
  /// `path`: class/file.
  void add(const std::string& path, const test::Bytes& content) const {
    const std::filesystem::path file = folder_.path(path);
    std::filesystem::create_directories(file.parent_path());
    folder_.write(path, content);
  }
  std::string path(const std::string& name = "") const { return folder_.path(name); }
  Expected<TrainTest> load(const std::string& test = "") const {
    return load_image_folder({path(), test, 0.5}, 1);
  }
  std::string refused(const std::string& test = "") const {
    const auto data = load(test);
    REQUIRE_FALSE(data);
    return data.error().text;
  }

 private:
  const test::TemporaryFolder folder_;
};

std::string decode_error(const test::Bytes& file) {
  const auto pixels = decode_image(file, "x.img", false);
  REQUIRE_FALSE(pixels);
  return pixels.error().text;
}

TEST_CASE("a file that is no image is refused") {
  CHECK_THAT(decode_error({}), Contains("x.img: is neither a PNG nor a JPEG file"));
  CHECK_THAT(decode_error(test::to_bytes("GIF89a...")), Contains("begins with \"GIF89a..\""));
}

TEST_CASE("a folder without classes, or a missing one, is refused") {
  const Folder folder;
  CHECK_THAT(folder.refused(), Contains("has no subfolders"));
  CHECK_THAT(load_image_folder({folder.path("none"), "", 0.2}, 1).error().text,
             Contains("none\" cannot be read") && Contains("data.images.train"));
}

#ifdef LEEWAY_PNG

TEST_CASE("classes are named by their folders, and samples are in the order of their names") {
  const Folder folder;
  folder.add("train/dog/b.png", test::png(2, 1, 1, {3, 4}));
  folder.add("train/dog/a.png", test::png(2, 1, 1, {1, 2}));
  folder.add("train/cat/.hidden", {});
  folder.add("train/cat/c.png", test::png(2, 1, 1, {5, 6}));
  folder.add("test/dog/d.png", test::png(2, 1, 1, {7, 8}));
  // train and test are found as subfolders, or given.
  for (const auto& source : {plan::ImageFolder{folder.path(), "", 0.2},
                             plan::ImageFolder{folder.path("train"), folder.path("test"), 0.2}}) {
    const auto data = load_image_folder(source, 1);
    if (!data) FAIL(data.error().text);
    CHECK(data->train->sample_shape() == Shape{1, 1, 2});
    CHECK(data->preprocessing->classes == std::vector<std::string>{"cat", "dog"});
    CHECK(gather_all(*data->train).labels == std::vector<std::int32_t>{0, 1, 1});
    CHECK(gather_all(*data->test).labels == std::vector<std::int32_t>{1});
    std::vector<float> expected(6);
    data->preprocessing->encode_pixels(Pixels{5, 6}, expected.data());
    data->preprocessing->encode_pixels(Pixels{1, 2}, expected.data() + 2);
    data->preprocessing->encode_pixels(Pixels{3, 4}, expected.data() + 4);
    CHECK(gather_all(*data->train).x == expected);
  }
}

TEST_CASE("colors are planes, and gray images beside them get three equal planes") {
  const Folder folder;
  folder.add("a/1.png", test::png(2, 1, 3, {1, 2, 3, 4, 5, 6}));
  folder.add("a/2.png", test::png(2, 1, 1, {7, 8}));
  const auto planes = decode_image(test::png(2, 1, 3, {1, 2, 3, 4, 5, 6}), "x", true);
  REQUIRE(planes);
  CHECK(*planes == Pixels{1, 4, 2, 5, 3, 6});
  CHECK(*decode_image(test::png(2, 1, 1, {7, 8}), "x", true) == Pixels{7, 8, 7, 8, 7, 8});
  const auto data = folder.load();
  REQUIRE(data);
  CHECK(data->train->sample_shape() == Shape{3, 1, 2});
  CHECK(data->train->size() == 1);
  CHECK(data->test->size() == 1);
}

TEST_CASE("transparent pixels are black") {
  CHECK(*decode_image(test::png(2, 1, 4, {9, 9, 9, 0, 9, 9, 9, 255}), "x", true) ==
        Pixels{0, 9, 0, 9, 0, 9});
}

TEST_CASE("images of different sizes are refused with both names") {
  const Folder folder;
  folder.add("a/1.png", test::png(2, 1, 1, {1, 2}));
  folder.add("b/2.png", test::png(1, 2, 1, {1, 2}));
  CHECK_THAT(folder.refused(), Contains("b/2.png: has 1 x 2 pixels, but ") &&
                                   Contains("a/1.png has 2 x 1; resize the images to one size"));
}

TEST_CASE("files in wrong places and of other kinds are refused by name") {
  const auto one = test::png(1, 1, 1, {1});
  {
    const Folder folder;
    folder.add("a/1.png", one);
    folder.add("a/notes.txt", test::to_bytes("notes"));
    CHECK_THAT(folder.refused(), Contains("a/notes.txt: is neither a PNG nor a JPEG file"));
  }
  {
    const Folder folder;
    folder.add("a/1.png", one);
    folder.add("2.png", one);
    CHECK_THAT(folder.refused(), Contains("2.png: is not in the folder of a class"));
  }
  {
    const Folder folder;
    folder.add("a/b/1.png", one);
    CHECK_THAT(folder.refused(), Contains("a/b: is a folder in the folder of a class"));
  }
  {
    const Folder folder;
    std::filesystem::create_directories(folder.path("a"));
    folder.add("b/1.png", one);
    CHECK_THAT(folder.refused(), Contains("a: has no images"));
  }
  const Folder train, test;
  train.add("cat/1.png", one);
  test.add("cart/1.png", one);
  CHECK_THAT(train.refused(test.path()),
             Contains("cart: the training images have no class \"cart\"") &&
                 Contains("did you mean \"cat\"?"));
}

void put_big_endian(test::Bytes& file, std::size_t at, std::uint32_t value) {
  for (int i = 0; i < 4; ++i)
    file[at + std::size_t(i)] = static_cast<std::byte>(value >> (24 - 8 * i));
}

/// A PNG whose header claims another size, with a valid checksum.
test::Bytes resized_png(std::uint32_t width, std::uint32_t height) {
  auto file = test::png(2, 1, 1, {1, 2});
  put_big_endian(file, 16, width);
  put_big_endian(file, 20, height);
  const auto sum = crc32(0, reinterpret_cast<const Bytef*>(file.data() + 12), 17);
  put_big_endian(file, 29, static_cast<std::uint32_t>(sum));
  return file;
}

TEST_CASE("a header that claims a huge image is refused before memory is taken") {
  CHECK_THAT(decode_error(resized_png(50000, 50000)), Contains("at most 4096 x 4096 are read"));
  CHECK_THAT(decode_error(resized_png(5000, 1)), Contains("has 5000 x 1 pixels"));
  CHECK_THAT(decode_error(resized_png(0, 1)), Contains("is not a readable PNG file"));
  CHECK_THAT(decode_error(resized_png(0xffffffff, 0xffffffff)), Contains("x.img"));
  CHECK_THAT(decode_error(resized_png(3000, 3000)), Contains("is not a readable PNG file"));
}

TEST_CASE("a PNG file with a broken color profile is read") {
  const auto file = test::png(2, 1, 1, {1, 2});
  // A chunk of a profile that is no profile, after the header.
  test::Bytes chunk = test::to_bytes(std::string("\0\0\0\x04iCCPabcd\0\0\0\0", 16));
  put_big_endian(
      chunk, 12,
      static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(chunk.data() + 4), 8)));
  auto with_profile = file;
  with_profile.insert(with_profile.begin() + 33, chunk.begin(), chunk.end());
  const auto pixels = decode_image(with_profile, "x", false);
  REQUIRE(pixels);
  CHECK(*pixels == Pixels{1, 2});
}

TEST_CASE("truncated and changed PNG files are decoded or refused") {
  const auto file = test::png(5, 3, 3, Pixels(45, 100));
  for (std::size_t length = 0; length < file.size() - 12; ++length)  // without the end marker
    CHECK_FALSE(decode_image(std::span(file).first(length), "x", true));
  rc::prop("changed", [&] {
    const auto bytes = *test::mutated(file);
    const auto size = image_size(bytes, "x");
    const auto pixels = decode_image(bytes, "x", true);
    if (pixels) RC_ASSERT(std::ssize(*pixels) == size->width * size->height * 3);
  });
}

#endif
#ifdef LEEWAY_JPEG

TEST_CASE("JPEG files are decoded, gray and in color") {
  const auto gray = decode_image(test::jpeg(8, 8, 1, Pixels(64, 77)), "x", false);
  REQUIRE(gray);
  CHECK(*gray == Pixels(64, 77));
  const auto size = image_size(test::jpeg(3, 2, 3, Pixels(18, 200)), "x");
  REQUIRE(size);
  CHECK(*size == ImageSize{3, 2, true});
  const auto color = decode_image(test::jpeg(8, 8, 3, Pixels(192, 200)), "x", true);
  REQUIRE(color);
  for (const int value : *color) CHECK(std::abs(value - 200) <= 2);
  CHECK(decode_image(test::jpeg(8, 8, 1, Pixels(64, 77)), "x", true)->size() == 192);
}

TEST_CASE("a JPEG file with extra bytes between its parts is read") {
  auto file = test::jpeg(8, 8, 1, Pixels(64, 77));
  file.insert(file.end() - 2, 3, std::byte{0x11});
  const auto pixels = decode_image(file, "x", false);
  REQUIRE(pixels);
  CHECK(*pixels == Pixels(64, 77));
}

TEST_CASE("truncated and changed JPEG files are decoded or refused") {
  Pixels pixels(16 * 16 * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 37);
  const auto file = test::jpeg(16, 16, 3, pixels);
  for (std::size_t length = 0; length + 2 < file.size(); length += 7)
    CHECK_FALSE(decode_image(std::span(file).first(length), "x", true));
  rc::prop("changed", [&] {
    const auto bytes = *test::mutated(file);
    const auto size = image_size(bytes, "x");
    const auto decoded = decode_image(bytes, "x", true);
    if (decoded) RC_ASSERT(std::ssize(*decoded) == size->width * size->height * 3);
  });
}

#endif

}  // namespace
}  // namespace leeway
