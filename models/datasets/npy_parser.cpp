#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "core/check.hpp"
#include "core/limits.hpp"
#include "core/text.hpp"
#include "models/datasets/file.hpp"
#include "models/datasets/npy.hpp"

namespace leeway {

namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
/// numpy.save writes about a hundred bytes.
constexpr std::size_t kMaxNpyHeader = 1 << 16;

struct NpyTypeName {
  std::string_view name;
  NpyArray::Type type;
  std::size_t bytes;
};
using NpyType = NpyArray::Type;
constexpr std::array kNpyTypes{NpyTypeName{"b1", NpyType::b1, 1}, NpyTypeName{"i1", NpyType::i1, 1},
                               NpyTypeName{"u1", NpyType::u1, 1}, NpyTypeName{"i2", NpyType::i2, 2},
                               NpyTypeName{"u2", NpyType::u2, 2}, NpyTypeName{"i4", NpyType::i4, 4},
                               NpyTypeName{"u4", NpyType::u4, 4}, NpyTypeName{"i8", NpyType::i8, 8},
                               NpyTypeName{"u8", NpyType::u8, 8}, NpyTypeName{"f4", NpyType::f4, 4},
                               NpyTypeName{"f8", NpyType::f8, 8}};

/// Reads the header, a dictionary in Python's notation:
/// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }
class NpyHeader {
 public:
  explicit NpyHeader(std::string_view text) : rest_(text) {}

  std::string type;
  bool fortran = false;
  std::vector<std::int64_t> extents;

  /// Whether the text is such a dictionary with the three keys.
  bool read() {
    if (!take('{')) return false;
    bool has_type = false, has_order = false, has_extents = false;
    while (!take('}')) {
      std::string key;
      if (!take_text(key) || !take(':')) return false;
      bool* const seen = key == "descr"           ? &has_type
                         : key == "fortran_order" ? &has_order
                         : key == "shape"         ? &has_extents
                                                  : nullptr;
      if (!seen || *seen) return false;
      *seen = true;
      const bool is_read = key == "descr"           ? take_type()
                           : key == "fortran_order" ? take_order()
                                                    : take_extents();
      if (!is_read) return false;
      if (!take(',') && peek() != '}') return false;
    }
    return has_type && has_order && has_extents && peek() == '\0';
  }

 private:
  char peek() {
    const auto at = rest_.find_first_not_of(" \n");
    rest_.remove_prefix(std::min(at, rest_.size()));
    return rest_.empty() ? '\0' : rest_[0];
  }
  bool take(char c) {
    if (peek() != c || rest_.empty()) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool take_word(std::string_view word) {
    peek();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  bool take_text(std::string& out) {
    const char quote = peek();
    if (quote != '\'' && quote != '"') return false;
    const auto end = rest_.find(quote, 1);
    if (end == std::string_view::npos) return false;
    out = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return true;
  }
  /// A list describes records, which are reported as a type.
  bool take_type() {
    if (peek() != '[') return take_text(type);
    const auto end = rest_.rfind(']');
    if (end == std::string_view::npos) return false;
    type = rest_.substr(0, end + 1);
    rest_.remove_prefix(end + 1);
    return true;
  }
  bool take_order() {
    fortran = take_word("True");
    return fortran || take_word("False");
  }
  bool take_extents() {
    if (!take('(')) return false;
    while (!take(')')) {
      peek();
      std::int64_t extent = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), extent);
      if (error != std::errc() || extent < 0 || extents.size() > limits::kMaxRank) return false;
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      extents.push_back(extent);
      if (!take(',') && peek() != ')') return false;
    }
    return true;
  }

  std::string_view rest_;
};

Error npy_error(const std::string& name, const auto&... values) {
  return Error{concat(name, ": ", values...)};
}

std::string python_shape(const std::vector<std::int64_t>& extents) {
  std::string out = "(";
  for (std::size_t i = 0; i < extents.size(); ++i) out += concat(i ? ", " : "", extents[i]);
  return out + (extents.size() == 1 ? ",)" : ")");
}

/// The type that `descr` names. Little-endian, or of one byte.
Expected<NpyTypeName> type_of(const std::string& descr, const std::string& name) {
  if (descr.size() == 3) {
    const auto row = std::find_if(kNpyTypes.begin(), kNpyTypes.end(), [&](const NpyTypeName& r) {
      return r.name == std::string_view(descr).substr(1);
    });
    const bool order = descr[0] == '<' || (descr[0] == '|' && descr[2] == '1');
    if (row != kNpyTypes.end() && order) return *row;
  }
  return npy_error(name, "has elements of type ", excerpt(descr),
                   "; save little-endian integers, float32 or float64, for example with "
                   "x.astype(np.float32)");
}

/// Checks extents and size of the file.
Status check_extents(const NpyArray& array) {
  if (array.extents.empty() || array.extents.size() > limits::kMaxRank)
    return npy_error(array.name, "has the shape ", python_shape(array.extents), "; save 1 to ",
                     limits::kMaxRank, " dimensions, samples first");
  std::uint64_t bytes = array.value_bytes;
  const std::uint64_t present = array.file.size() - array.begin;
  for (const auto extent : array.extents) {
    if (extent == 0)
      return npy_error(array.name, "has the shape ", python_shape(array.extents),
                       ", which holds no data; save at least one sample");
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes) ||
        bytes > present)
      return npy_error(array.name, "the shape ", python_shape(array.extents),
                       " needs more than the ", present,
                       " bytes that follow the header; save or fetch the file again");
  }
  if (bytes == present) return {};
  return npy_error(array.name, "found ", present - bytes,
                   " bytes after the last element; save or fetch the file again");
}

template <class T>
double value_at(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

}  // namespace

std::int64_t NpyArray::sample_values() const {
  std::int64_t count = 1;
  for (std::size_t i = 1; i < extents.size(); ++i) count *= extents[i];
  return count;
}

double NpyArray::operator[](std::size_t index) const {
  const std::size_t at = begin + index * value_bytes;
  LW_CHECK(at + value_bytes <= file.size(), index);
  const std::byte* const from = file.data() + at;
  switch (type) {
    case Type::b1:
      return *from == std::byte{0} ? 0 : 1;
    case Type::i1:
      return value_at<std::int8_t>(from);
    case Type::u1:
      return value_at<std::uint8_t>(from);
    case Type::i2:
      return value_at<std::int16_t>(from);
    case Type::u2:
      return value_at<std::uint16_t>(from);
    case Type::i4:
      return value_at<std::int32_t>(from);
    case Type::u4:
      return value_at<std::uint32_t>(from);
    case Type::i8:
      return value_at<std::int64_t>(from);
    case Type::u8:
      return value_at<std::uint64_t>(from);
    case Type::f4:
      return value_at<float>(from);
    case Type::f8:
      return value_at<double>(from);
  }
  LW_CHECK(false, "unknown type");
  return 0;
}

Expected<NpyArray> parse_npy(std::vector<std::byte> file, const std::string& name) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (!text.starts_with(kNpyMagic))
    return npy_error(name, "is no .npy file: it begins with ", excerpt(text.substr(0, 6)),
                     "; write it with numpy.save");
  if (text.size() < kNpyMagic.size() + 6)
    return npy_error(name, "the file ends in its header; save or fetch the file again");
  const unsigned version = byte(6);
  if (version < 1 || version > 3)
    return npy_error(name, "has version ", version, " of the format, 1 to 3 are read; write it ",
                     "with numpy.save");
  // The length of the header has 2 bytes in version 1, 4 bytes afterwards.
  const std::size_t begin = version == 1 ? 10 : 12;
  std::size_t length = byte(8) | std::size_t{byte(9)} << 8;
  if (version > 1) length |= std::size_t{byte(10)} << 16 | std::size_t{byte(11)} << 24;
  if (length > kMaxNpyHeader || begin + length > text.size())
    return npy_error(name, "has a header of ", length, " bytes, but the file has ", text.size(),
                     " and at most ", kMaxNpyHeader, " are read; save or fetch the file again");
  const std::string_view dictionary = text.substr(begin, length);
  NpyHeader header(dictionary);
  if (!header.read())
    return npy_error(name, "has the header ", excerpt(dictionary),
                     ", which numpy.save does not write; save or fetch the file again");
  const auto type = type_of(header.type, name);
  if (!type) return type.error();
  if (header.fortran && header.extents.size() > 1)
    return npy_error(name, "is in Fortran order; save np.ascontiguousarray(x)");
  NpyArray array{name,          type->type, type->bytes, std::move(header.extents), std::move(file),
                 begin + length};
  if (Status status = check_extents(array); !status) return status.error();
  return array;
}

}  // namespace leeway
