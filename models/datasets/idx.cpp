#include "models/datasets/idx.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include "core/check.hpp"
#include "core/memory.hpp"
#include "core/text.hpp"
#include "models/datasets/byte_images.hpp"
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
    if (Status fits = check_memory(name_, concat("its ", times(array.extents), " values"),
                                   *elements, kTooLargeAdvice);
        !fits)
      return fits.error();
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

ByteImages::Content content_of(IdxArray images, const IdxArray& labels, int classes) {
  auto extents = images.extents;
  if (extents.size() == 3) extents.insert(extents.begin() + 1, 1);
  return {Shape(std::span<const std::int64_t>(extents).subspan(1)),
          std::move(images.values),
          {labels.values.begin(), labels.values.end()},
          classes};
}

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

/// The digits of MNIST come in files of the same names and sizes, but with other labels.
bool is_fashion_mnist(const std::vector<std::uint8_t>& labels) {
  constexpr std::array<std::uint8_t, 10> kFirst{9, 0, 0, 3, 0, 2, 7, 2, 5, 5};
  return labels.size() == 60000 && std::equal(kFirst.begin(), kFirst.end(), labels.begin());
}

/// IDX files have no names of classes.
std::vector<std::string> class_names(const std::vector<std::uint8_t>& labels, int classes) {
  if (is_fashion_mnist(labels) && classes == 10)
    return {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
            "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
  std::vector<std::string> names;
  for (int label = 0; label < classes; ++label) names.push_back(std::to_string(label));
  return names;
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

  Preprocessing how;
  how.split.test_file = arrays.test_images.name;
  how.classes = class_names(labels, classes);
  return make_byte_images(content_of(std::move(arrays.train_images), arrays.train_labels, classes),
                          content_of(std::move(arrays.test_images), arrays.test_labels, classes),
                          std::move(how));
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
