// The same real images as IDX files, CSV, .npy files and image folders.
#include "models/datasets/checksum.hpp"
#include "models/datasets/file.hpp"
#include "models/datasets/idx.hpp"
#include "models/datasets/load.hpp"
#include "models/datasets/preprocessing.hpp"
#include "tests/models/datasets/gathered.hpp"
#include "tests/models/datasets/image_files.hpp"
#include "tests/models/datasets/npy_files.hpp"

namespace leeway {
namespace {

using test::gather_all;

constexpr std::size_t kSliceImages = 200;
constexpr std::size_t kImagePixels = 28 * 28;

struct Slice {
  std::vector<std::uint8_t> pixels, labels;
};

/// The first test images of Fashion-MNIST.
Slice fashion_slice() {
  const std::string folder = plan::FashionMnist{}.directory;
  const auto read = [&](const char* name, IdxKind kind) {
    const auto array = parse_idx(test::read_bytes(folder + "/" + name), name, kind);
    if (!array) FAIL(array.error().text);
    return array->values;
  };
  Slice out{read("t10k-images-idx3-ubyte.gz", IdxKind::images),
            read("t10k-labels-idx1-ubyte.gz", IdxKind::labels)};
  out.pixels.resize(kSliceImages * kImagePixels);
  out.labels.resize(kSliceImages);
  return out;
}

/// The slice in all formats.
class Formats {
 public:
  plan::Npy npy() const {
    plan::Npy source;
    source.features = source.test_features =
        folder_.write("x.npy", test::npy("(200, 28, 28)", slice_.pixels));
    source.labels = source.test_labels = folder_.write("y.npy", test::npy("(200,)", slice_.labels));
    return source;
  }
  plan::Csv csv() const {
    std::string text = "kind";
    for (std::size_t i = 0; i < kImagePixels; ++i) text += ",p" + std::to_string(i);
    for (std::size_t image = 0; image < kSliceImages; ++image) {
      text += std::string("\nclass ") + static_cast<char>('a' + slice_.labels[image]);
      for (std::size_t i = 0; i < kImagePixels; ++i)
        text += ',' + std::to_string(slice_.pixels[image * kImagePixels + i]);
    }
    plan::Csv source;
    source.train = source.test = folder_.write("x.csv", text);
    source.label = "kind";
    source.normalize = false;
    return source;
  }
#ifdef LEEWAY_PNG
  /// Named so that the samples are ordered by class, then by number.
  plan::ImageFolder images() const {
    for (std::size_t image = 0; image < kSliceImages; ++image) {
      const std::string kind =
          std::string("images/") + static_cast<char>('a' + slice_.labels[image]);
      std::filesystem::create_directories(folder_.path(kind));
      const auto* const from = slice_.pixels.data() + image * kImagePixels;
      folder_.write(kind + "/" + std::to_string(1000 + image) + ".png",
                    test::png(28, 28, 1, {from, from + kImagePixels}));
    }
    return {folder_.path("images"), folder_.path("images"), 0.2};
  }
#endif
  const Slice& slice() const {
    return slice_;
  }

 private:
  const test::TemporaryFolder folder_;
  const Slice slice_ = fashion_slice();
};

TrainTest loaded(const plan::DataSource& source) {
  auto data = load_data(source, 1);
  if (!data) FAIL(data.error().text);
  return std::move(*data);
}

/// Whether the data set is installed.
bool has_fashion() {
  if (file_exists(plan::FashionMnist{}.directory)) return true;
  WARN("dataset-fashion-mnist is not installed");
  return false;
}

TEST_CASE("Fashion-MNIST as CSV with texts as labels has the same pixels and classes") {
  if (!has_fashion()) return;
  const Formats formats;
  const auto data = loaded(formats.csv());
  CHECK(data.train->size() == kSliceImages);
  CHECK(data.preprocessing->classes.size() == 10);
  CHECK(data.preprocessing->classes[9] == "class j");
  const auto all = gather_all(*data.train);
  CHECK(all.x == std::vector<float>(formats.slice().pixels.begin(), formats.slice().pixels.end()));
  CHECK(all.labels ==
        std::vector<std::int32_t>(formats.slice().labels.begin(), formats.slice().labels.end()));
}

#ifdef LEEWAY_PNG

TEST_CASE("Fashion-MNIST as .npy and as a folder of PNG files gives the same samples") {
  if (!has_fashion()) return;
  const Formats formats;
  const auto arrays = loaded(formats.npy()), images = loaded(formats.images());
  CHECK(arrays.train->sample_shape() == Shape{1, 28, 28});
  CHECK(images.train->sample_shape() == Shape{1, 28, 28});
  CHECK(arrays.preprocessing->pixel_mean == images.preprocessing->pixel_mean);
  const auto a = gather_all(*arrays.train), b = gather_all(*images.train);
  std::vector<std::size_t> order(kSliceImages);
  for (std::size_t i = 0; i < kSliceImages; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t i, std::size_t j) { return a.labels[i] < a.labels[j]; });
  for (std::size_t i = 0; i < kSliceImages; ++i) {
    CHECK(b.labels[i] == a.labels[order[i]]);
    const auto* const x = a.x.data() + order[i] * kImagePixels;
    CHECK(std::equal(x, x + kImagePixels, b.x.data() + i * kImagePixels));
  }
}

#endif

TEST_CASE("the checksum of the data changes with any source") {
  const test::TemporaryFolder folder;
  plan::Npy npy;
  npy.labels = npy.test_labels = folder.write("y.npy", test::npy<std::int32_t>("(2,)", {0, 1}));
  npy.features = npy.test_features = folder.write("x.npy", test::npy<float>("(2,)", {1, 2}));
  const auto before = checksum_of(loaded(npy));
  CHECK(checksum_of(loaded(npy)) == before);
  npy.test_labels = folder.write("z.npy", test::npy<std::int32_t>("(2,)", {1, 1}));
  CHECK(checksum_of(loaded(npy)) != before);

  const auto csv_sum = [&](const std::string& text) {
    plan::Csv csv;
    csv.train = csv.test = folder.write("x.csv", text);
    return checksum_of(loaded(csv));
  };
  CHECK(csv_sum("a,label\nx,p\ny,q\n") != csv_sum("a,label\ny,p\nx,q\n"));
  CHECK(csv_sum("a,label\nx,p\ny,q\n") != csv_sum("a,label\nx,q\ny,p\n"));
#ifdef LEEWAY_PNG
  const auto image_sum = [&](std::uint8_t pixel) {
    for (const char* kind : {"images/a", "images/b"}) {
      std::filesystem::create_directories(folder.path(kind));
      folder.write(std::string(kind) + "/1.png", test::png(2, 1, 1, {pixel, 9}));
    }
    return checksum_of(
        loaded(plan::ImageFolder{folder.path("images"), folder.path("images"), 0.2}));
  };
  CHECK(image_sum(1) != image_sum(200));
#endif
}

}  // namespace
}  // namespace leeway
