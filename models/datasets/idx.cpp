#include "models/datasets/idx.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "core/check.hpp"
#include "core/text.hpp"
#include "models/datasets/byte_reader.hpp"
#include "models/datasets/file.hpp"

namespace leeway {

namespace {

// An IDX file begins with two zero bytes, the element type and the number of dimensions; then each
// extent, 4 bytes, big-endian.
constexpr std::size_t kMagicBytes = 4;
constexpr std::uint8_t kUnsignedByte = 0x08;

std::string_view expected_magic(IdxKind kind) {
  return kind == IdxKind::images ? "00 00 08 03 (or 04)" : "00 00 08 01";
}
std::string_view describe(IdxKind kind) {
  return kind == IdxKind::images ? "an IDX file of images" : "an IDX file of labels";
}

std::string hex(std::span<const std::uint8_t> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const auto byte : bytes) {
    if (!out.empty()) out += ' ';
    out += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return out;
}

std::string times(const std::vector<std::int64_t>& extents) {
  std::string out;
  for (const auto extent : extents) out += concat(out.empty() ? "" : "x", extent);
  return out;
}

/// Decodes one file, and names positions in its errors.
class IdxParser {
 public:
  IdxParser(std::span<const std::byte> file, const std::string& name, IdxKind kind)
      : reader_(file, name), name_(name), kind_(kind) {}

  Expected<IdxArray> parse() {
    std::array<std::uint8_t, kMagicBytes> magic{};
    if (Status status = fill(magic); !status) return status.error();
    if (Status status = check_magic(magic); !status) return status.error();

    IdxArray array{name_, {}, {}};
    for (int axis = 0; axis < magic[3]; ++axis) {
      std::array<std::uint8_t, 4> word{};
      if (Status status = fill(word); !status) return status.error();
      array.extents.push_back(std::int64_t{word[0]} << 24 | word[1] << 16 | word[2] << 8 | word[3]);
    }
    const Expected<std::size_t> elements = count(array.extents);
    if (!elements) return elements.error();
    array.values.resize(*elements);
    if (Status status = fill(array.values); !status) return status.error();
    if (Status status = check_end(); !status) return status.error();
    return array;
  }

 private:
  template <class... Values>
  Error error_at(std::uint64_t byte, const Values&... values) const {
    return Error{
        concat(name_, ": byte ", byte, reader_.gzipped() ? " (unpacked): " : ": ", values...)};
  }

  Status fill(std::span<std::uint8_t> out) {
    const Expected<std::size_t> got = reader_.read(std::as_writable_bytes(out));
    if (!got) return got.error();
    position_ += *got;
    if (*got == out.size()) return {};
    if (position_ == 0) return Error{concat(name_, ": the file is empty; give ", describe(kind_))};
    return error_at(position_, "the file ends here, ", out.size() - *got,
                    " bytes too early; fetch it again");
  }

  Status check_magic(std::span<const std::uint8_t> magic) const {
    const bool rank_fits =
        kind_ == IdxKind::labels ? magic[3] == 1 : magic[3] == 3 || magic[3] == 4;
    if (magic[0] == 0 && magic[1] == 0 && magic[2] == kUnsignedByte && rank_fits) return {};
    return error_at(0, "found magic number ", hex(magic), " where ", describe(kind_),
                    " begins with ", expected_magic(kind_), "; give such a file");
  }

  /// The number of elements. Checks that the file is large enough for them, before memory is
  /// allocated.
  Expected<std::size_t> count(const std::vector<std::int64_t>& extents) const {
    std::uint64_t elements = 1;
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      if (extents[axis] == 0)
        return error_at(kMagicBytes + 4 * axis, "the extents ", times(extents),
                        " hold no data; give ", describe(kind_), " with at least one sample");
    }
    for (const auto extent : extents) {
      if (__builtin_mul_overflow(elements, static_cast<std::uint64_t>(extent), &elements) ||
          elements > reader_.max_remaining())
        return error_at(kMagicBytes, "the extents ", times(extents),
                        " need more bytes than the file holds; fetch it again");
    }
    return static_cast<std::size_t>(elements);
  }

  Status check_end() {
    std::byte extra{};
    const Expected<std::size_t> got = reader_.read({&extra, 1});
    if (!got) return got.error();
    if (*got == 0) return {};
    return error_at(position_, "found data after the last element; fetch the file again");
  }

  ByteReader reader_;
  const std::string& name_;
  IdxKind kind_;
  std::uint64_t position_ = 0;
};

/// pixel -> pixel * scale + shift.
struct PixelScaling {
  float scale = 1;
  float shift = 0;
};

/// Sums over the histogram, so the result does not depend on the order of the pixels.
PixelScaling pixel_scaling(const std::vector<std::uint8_t>& pixels) {
  std::array<std::uint64_t, 256> histogram{};
  for (const auto pixel : pixels) ++histogram[pixel];
  const auto count = static_cast<double>(pixels.size());
  double mean = 0;
  for (std::size_t v = 0; v < 256; ++v)
    mean += static_cast<double>(v) * static_cast<double>(histogram[v]) / count;
  double variance = 0;
  for (std::size_t v = 0; v < 256; ++v) {
    const double difference = static_cast<double>(v) - mean;
    variance += difference * difference * static_cast<double>(histogram[v]) / count;
  }
  const double deviation =
      variance > 0 ? std::sqrt(variance) : 255;  // equal pixels keep their scale
  return {static_cast<float>(1 / deviation), static_cast<float>(-mean / deviation)};
}

/// Reads and writes each cache line once; the compiler vectorises the loop.
void convert(const std::uint8_t* __restrict pixels, std::size_t count, PixelScaling scaling,
             float* __restrict x) {
  for (std::size_t i = 0; i < count; ++i)
    x[i] = static_cast<float>(pixels[i]) * scaling.scale + scaling.shift;
}

class IdxDataset final : public Dataset {
 public:
  IdxDataset(IdxArray images, IdxArray labels, int classes, PixelScaling scaling)
      : images_(std::move(images.values)),
        labels_(std::move(labels.values)),
        classes_(classes),
        scaling_(scaling) {
    auto extents = images.extents;
    if (extents.size() == 3) extents.insert(extents.begin() + 1, 1);
    shape_ = Shape(std::span<const std::int64_t>(extents).subspan(1));
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  Shape sample_shape() const override { return shape_; }
  int classes() const override { return classes_; }
  std::int64_t target_count() const override { return 0; }
  float background() const override { return scaling_.shift; }

  void gather(std::span<const std::int64_t> samples, float* x, std::int32_t* labels,
              float*) const override {
    const auto pixels = static_cast<std::size_t>(shape_.count());
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::size_t row = row_of(samples[i]);
      if (i + kAhead < samples.size()) prefetch(samples[i + kAhead], pixels);
      convert(images_.data() + row * pixels, pixels, scaling_, x);
      x += pixels;
      labels[i] = labels_[row];
    }
  }
  void gather_labels(std::span<const std::int64_t> samples, std::int32_t* labels,
                     float*) const override {
    for (const std::int64_t sample : samples) *labels++ = labels_[row_of(sample)];
  }

 private:
  /// Samples come in random order, which hardware prefetchers cannot predict, so their cache lines
  /// are prefetched this many samples before use.
  static constexpr std::size_t kAhead = 5;
  static constexpr std::size_t kCacheLine = 64;

  std::size_t row_of(std::int64_t sample) const {
    LW_CHECK(sample >= 0 && sample < size(), sample, size());
    return static_cast<std::size_t>(sample);
  }

  void prefetch(std::int64_t sample, std::size_t pixels) const {
    if (sample < 0 || sample >= size()) return;  // row_of() rejects it later
    const std::uint8_t* const begin = images_.data() + static_cast<std::size_t>(sample) * pixels;
    for (std::size_t offset = 0; offset < pixels; offset += kCacheLine)
      __builtin_prefetch(begin + offset);
  }

  std::vector<std::uint8_t> images_;  // (N, C, H, W)
  std::vector<std::uint8_t> labels_;  // (N)
  Shape shape_;
  int classes_;
  PixelScaling scaling_;
};

Status check_counts(const IdxArray& images, const IdxArray& labels) {
  if (images.extents[0] == labels.extents[0]) return {};
  return Error{concat(labels.name, ": byte 4: found ", labels.extents[0], " labels for the ",
                      images.extents[0], " images of ", images.name,
                      "; give the labels that belong to these images")};
}

Status check_test(const IdxArrays& arrays, int classes) {
  const auto& train = arrays.train_images.extents;
  const auto& test = arrays.test_images.extents;
  if (!std::equal(train.begin() + 1, train.end(), test.begin() + 1, test.end()))
    return Error{concat(arrays.test_images.name, ": byte 4: found images ", times(test),
                        ", but the training images are ", times(train),
                        "; give test images of the same size")};
  const auto& labels = arrays.test_labels.values;
  const auto wrong =
      std::find_if(labels.begin(), labels.end(), [&](int label) { return label >= classes; });
  if (wrong == labels.end()) return {};
  return Error{concat(arrays.test_labels.name, ": byte ",
                      kMagicBytes + 4 + (wrong - labels.begin()), ": found label ", int{*wrong},
                      ", but the training labels are 0 to ", classes - 1,
                      "; give test labels of the same classes")};
}

Expected<IdxArray> read_idx(const std::string& path, IdxKind kind, const std::string& advice) {
  const auto bytes = read_file(path, advice);
  if (!bytes) return bytes.error();
  return parse_idx(*bytes, path, kind);
}

Expected<TrainTest> load_four(const plan::Idx& files, const std::string& advice) {
  IdxArrays arrays;
  const auto read = [&](const std::string& path, IdxKind kind, IdxArray& into) -> Status {
    auto array = read_idx(path, kind, advice);
    if (!array) return array.error();
    into = std::move(*array);
    return {};
  };
  Status status = read(files.train_images, IdxKind::images, arrays.train_images);
  if (status) status = read(files.train_labels, IdxKind::labels, arrays.train_labels);
  if (status) status = read(files.test_images, IdxKind::images, arrays.test_images);
  if (status) status = read(files.test_labels, IdxKind::labels, arrays.test_labels);
  if (!status) return status.error();
  return make_idx(std::move(arrays));
}

}  // namespace

Expected<IdxArray> parse_idx(std::span<const std::byte> file, const std::string& name,
                             IdxKind kind) {
  return IdxParser(file, name, kind).parse();
}

Expected<TrainTest> make_idx(IdxArrays arrays) {
  const auto& labels = arrays.train_labels.values;
  LW_CHECK(!labels.empty());
  const int classes = *std::max_element(labels.begin(), labels.end()) + 1;
  Status status = check_counts(arrays.train_images, arrays.train_labels);
  if (status) status = check_counts(arrays.test_images, arrays.test_labels);
  if (status) status = check_test(arrays, classes);
  if (!status) return status.error();

  const PixelScaling scaling = pixel_scaling(arrays.train_images.values);
  return TrainTest{std::make_shared<IdxDataset>(std::move(arrays.train_images),
                                                std::move(arrays.train_labels), classes, scaling),
                   std::make_shared<IdxDataset>(std::move(arrays.test_images),
                                                std::move(arrays.test_labels), classes, scaling)};
}

Expected<TrainTest> load_idx(const plan::Idx& files) {
  return load_four(files,
                   "give all four of data.idx.train_images, train_labels, test_images and "
                   "test_labels existing files");
}

Expected<TrainTest> load_fashion_mnist(const std::string& directory) {
  const auto find = [&](const char* name) {
    const std::string plain = directory + "/" + name;
    return file_exists(plain) && !file_exists(plain + ".gz") ? plain : plain + ".gz";
  };
  return load_four({find("train-images-idx3-ubyte"), find("train-labels-idx1-ubyte"),
                    find("t10k-images-idx3-ubyte"), find("t10k-labels-idx1-ubyte")},
                   "run `apt-get install dataset-fashion-mnist`, or set "
                   "data.fashion_mnist.directory to where the four files are");
}

}  // namespace leeway
