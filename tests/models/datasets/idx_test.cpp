#include "models/datasets/idx.hpp"

#include <rapidcheck/catch.h>
#include <zlib.h>

#include <array>
#include <cmath>
#include <numeric>

#include "models/datasets/file.hpp"
#include "models/datasets/preprocessing.hpp"
#include "tests/models/datasets/files.hpp"
#include "tests/models/datasets/labels.hpp"

namespace leeway {
namespace {

using Catch::Matchers::Contains;
using test::Bytes;

Bytes idx(std::vector<std::uint32_t> extents, const std::vector<std::uint8_t>& values,
          std::uint8_t type = 8) {
  std::string out{0, 0, static_cast<char>(type), static_cast<char>(extents.size())};
  for (const auto extent : extents)
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(extent >> shift);
  out.append(values.begin(), values.end());
  return test::to_bytes(out);
}

Bytes gzip(const Bytes& content) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  Bytes out(deflateBound(&stream, content.size()));
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::vector<std::uint8_t> ramp(std::size_t count) {
  std::vector<std::uint8_t> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::uint8_t>(i * 37 + 11);
  return values;
}

const Bytes kImages = idx({3, 2, 4}, ramp(24));
const Bytes kLabels = idx({3}, {0, 2, 1});

IdxArray array(const Bytes& file, const std::string& name, IdxKind kind) {
  auto parsed = parse_idx(file, name, kind);
  REQUIRE(parsed);
  return std::move(*parsed);
}

Expected<TrainTest> make(const Bytes& train_images, const Bytes& train_labels,
                         const Bytes& test_images, const Bytes& test_labels) {
  return make_idx(
      {array(train_images, "a", IdxKind::images), array(train_labels, "b", IdxKind::labels),
       array(test_images, "c", IdxKind::images), array(test_labels, "d", IdxKind::labels)});
}

std::string error_of(const Bytes& file, IdxKind kind) {
  const auto parsed = parse_idx(file, "x.idx", kind);
  REQUIRE_FALSE(parsed);
  return parsed.error().text;
}

TEST_CASE("images and labels are decoded, plain and gzipped") {
  for (const Bytes& file : {kImages, gzip(kImages)}) {
    const auto images = array(file, "x", IdxKind::images);
    CHECK(images.extents == std::vector<std::int64_t>{3, 2, 4});
    CHECK(images.values == ramp(24));
  }
}

TEST_CASE("gzip data in several members is one file") {
  const Bytes front(kImages.begin(), kImages.begin() + 20),
      back(kImages.begin() + 20, kImages.end());
  Bytes file = gzip(front);
  for (const std::byte byte : gzip(back)) file.push_back(byte);
  CHECK(array(file, "x", IdxKind::images).values == ramp(24));
}

TEST_CASE("gathered pixels are normalised by the training pixels") {
  const auto data =
      make(kImages, kLabels, idx({1, 2, 4}, std::vector<std::uint8_t>(8, 200)), idx({1}, {2}));
  REQUIRE(data);
  CHECK(data->train->sample_shape() == Shape{1, 2, 4});
  CHECK(data->train->size() == 3);
  CHECK(data->train->classes() == 3);
  CHECK(data->train->target_count() == 0);

  const auto values = ramp(24);
  double mean = 0, square = 0;
  for (const double v : values) mean += v / 255 / 24;
  for (const double v : values) square += (v / 255 - mean) * (v / 255 - mean) / 24;
  const std::vector<std::int64_t> samples{2, 0};
  std::array<float, 16> x{};
  std::array<std::int32_t, 2> labels{};
  data->train->gather(samples, x.data(), labels.data(), nullptr);
  CHECK(labels == std::array<std::int32_t, 2>{1, 0});
  for (std::size_t i = 0; i < 16; ++i) {
    const double pixel = values[i < 8 ? 16 + i : i - 8];
    CHECK(x[i] == Approx((pixel / 255 - mean) / std::sqrt(square)).margin(1e-6));
  }
  test::require_labels_agree(*data->train);
  data->test->gather(std::vector<std::int64_t>{0}, x.data(), labels.data(), nullptr);
  CHECK(x[7] == Approx((200 / 255.0 - mean) / std::sqrt(square)));
}

TEST_CASE("images keep their channels, and equal pixels give finite numbers") {
  const Bytes images = idx({2, 3, 1, 2}, std::vector<std::uint8_t>(12, 9));
  const auto data = make(images, idx({2}, {0, 1}), images, idx({2}, {0, 1}));
  REQUIRE(data);
  CHECK(data->train->sample_shape() == Shape{3, 1, 2});
  std::array<float, 6> x{};
  std::int32_t label = 0;
  data->train->gather(std::vector<std::int64_t>{1}, x.data(), &label, nullptr);
  CHECK(x[0] == Approx(0).margin(1e-7));
}

TEST_CASE("a sample out of range is a bug") {
  const auto data = make(kImages, kLabels, kImages, kLabels);
  std::array<float, 8> x{};
  std::int32_t label = 0;
  CHECK_THROWS_AS(data->train->gather(std::vector<std::int64_t>{3}, x.data(), &label, nullptr),
                  CheckFailed);
}

TEST_CASE("every error in a file is named with its byte and what to do") {
  CHECK(error_of({}, IdxKind::images) == "x.idx: the file is empty; give an IDX file of images");
  CHECK(error_of(kLabels, IdxKind::images) ==
        "x.idx: byte 0: found magic number 00 00 08 01 where an IDX file of images begins with "
        "00 00 08 03 (or 04); give such a file");
  CHECK_THAT(error_of(idx({3, 1, 1}, {1, 2, 3}, 0x0d), IdxKind::images), Contains("00 00 0d 03"));
  CHECK(error_of(idx({3, 0, 4}, {}), IdxKind::images) ==
        "x.idx: byte 8: the extents 3x0x4 hold no data; give an IDX file of images with at least "
        "one sample");
  CHECK(error_of(idx({5}, {1, 2}), IdxKind::labels) ==
        "x.idx: byte 4: the extents 5 need more bytes than the file holds; fetch it again");
  CHECK_THAT(error_of(idx({4294967295u, 4294967295u, 4294967295u}, {1}), IdxKind::images),
             Contains("need more bytes than the file holds"));
  CHECK(error_of(idx({2}, {1, 2, 3}), IdxKind::labels) ==
        "x.idx: byte 10: found data after the last element; fetch the file again");
  CHECK(error_of(Bytes(kImages.begin(), kImages.begin() + 6), IdxKind::images) ==
        "x.idx: byte 6: the file ends here, 2 bytes too early; fetch it again");
}

TEST_CASE("damaged gzip data is named with its byte") {
  Bytes damaged = gzip(kImages);
  damaged[damaged.size() - 7] ^= std::byte{1};  // in the checksum
  CHECK_THAT(error_of(damaged, IdxKind::images),
             Contains("corrupt gzip data (incorrect data check); fetch the file again"));

  Bytes truncated = gzip(kImages);
  truncated.resize(truncated.size() - 3);
  CHECK_THAT(error_of(truncated, IdxKind::images), Contains("the gzip data is truncated"));

  Bytes longer = gzip(kImages);
  longer.push_back(std::byte{7});
  CHECK_THAT(error_of(longer, IdxKind::images),
             Contains("found 1 bytes after the end of the gzip data"));

  CHECK_THAT(error_of(gzip(idx({2, 1, 1}, {1})), IdxKind::images),
             Contains("byte 17 (unpacked): the file ends here, 1 bytes too early"));
}

TEST_CASE("files that do not belong together are refused") {
  const Bytes two = idx({2}, {0, 1});
  CHECK(make(kImages, two, kImages, kLabels).error().text ==
        "b: byte 4: found 2 labels for the 3 images of a; give the labels that belong to these "
        "images");
  CHECK_THAT(make(kImages, kLabels, kImages, two).error().text, Contains("d: byte 4: found 2"));
  CHECK_THAT(make(kImages, kLabels, idx({3, 4, 2}, ramp(24)), kLabels).error().text,
             Contains("c: byte 4: found images 3x4x2, but the training images are 3x2x4"));
  CHECK(make(kImages, kLabels, kImages, idx({3}, {0, 3, 1})).error().text ==
        "d: byte 9: found label 3, but the training labels are 0 to 2; give test labels of the "
        "same classes");
}

TEST_CASE("a file truncated anywhere is refused") {
  for (const Bytes& file : {kImages, gzip(kImages)}) {
    for (std::size_t length = 0; length < file.size(); ++length)
      CHECK_FALSE(parse_idx(std::span(file).first(length), "x", IdxKind::images));
  }
}

TEST_CASE("random bytes are decoded or refused") {
  rc::prop("noise", [](const std::vector<std::uint8_t>& noise) {
    Bytes file = *rc::gen::elementOf(std::vector<Bytes>{{}, idx({}, {}), gzip({})});
    for (const auto byte : noise) file.push_back(static_cast<std::byte>(byte));
    (void)parse_idx(file, "x", IdxKind::images);
  });
  rc::prop("a valid file with changes", [] {
    const Bytes good = *rc::gen::elementOf(std::vector<Bytes>{kImages, gzip(kImages)});
    const Bytes file = *test::mutated(good);
    if (const auto parsed = parse_idx(file, "x", IdxKind::images)) {
      std::int64_t count = 1;
      for (const auto extent : parsed->extents) count *= extent;
      RC_ASSERT(count == std::ssize(parsed->values));
    }
  });
}

TEST_CASE("Fashion-MNIST as Debian installs it") {
  const plan::FashionMnist source;
  if (!file_exists(source.directory)) {
    WARN("dataset-fashion-mnist is not installed");
    return;
  }
  const auto data = load_fashion_mnist(source.directory);
  REQUIRE(data);
  const auto check = [](const Dataset& set, std::int64_t size, double mean, double deviation) {
    CHECK(set.size() == size);
    CHECK(set.sample_shape() == Shape{1, 28, 28});
    CHECK(set.classes() == 10);
    std::array<std::int64_t, 10> count{};
    std::vector<float> x(784 * 100);
    std::vector<std::int32_t> labels(100);
    std::vector<std::int64_t> samples(100);
    double sum = 0, squares = 0;
    for (std::int64_t first = 0; first < size; first += 100) {
      std::iota(samples.begin(), samples.end(), first);
      set.gather(samples, x.data(), labels.data(), nullptr);
      for (const auto label : labels) ++count[static_cast<std::size_t>(label)];
      for (const double v : x) {
        sum += v;
        squares += v * v;
      }
    }
    const double pixels = 784.0 * static_cast<double>(size);
    CHECK(sum / pixels == Approx(mean).margin(1e-3));
    CHECK(std::sqrt(squares / pixels) == Approx(deviation).margin(1e-3));
    for (const auto samples_of_class : count) CHECK(samples_of_class == size / 10);
  };
  check(*data->train, 60'000, 0, 1);
  check(*data->test, 10'000, 0.0023, 0.9984);
  CHECK(data->preprocessing->classes[7] == "Sneaker");
  CHECK(data->preprocessing->pixel_mean == Approx(72.94).margin(0.01));
}

TEST_CASE("the error for a missing Fashion-MNIST names its package") {
  CHECK(load_fashion_mnist("/nowhere").error().text ==
        "\"/nowhere/train-images-idx3-ubyte.gz\" cannot be read: No such file or directory; run "
        "`apt-get install dataset-fashion-mnist`, or set data.fashion_mnist.directory to where the "
        "four files are");
}

TEST_CASE("files given one by one are loaded, and a missing one is named") {
  const test::TemporaryFolder folder;
  plan::Idx files{folder.write("a", kImages), folder.write("b", gzip(kLabels)),
                  folder.write("c", gzip(kImages)), folder.write("d", kLabels)};
  REQUIRE(load_idx(files));
  files.test_labels = folder.path("e");
  CHECK_THAT(load_idx(files).error().text, Contains(folder.path("e")));
}

}  // namespace
}  // namespace leeway
