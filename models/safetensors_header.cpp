#include "models/safetensors_header.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "core/check.hpp"
#include "core/text.hpp"
#include "models/datasets/file.hpp"

namespace leeway {

namespace {

using nlohmann::json;
using Entry = SafetensorsHeader::Entry;

constexpr std::string_view kMetadata = "__metadata__";

/// The format's element types.
struct TypeName {
  std::string_view name;
  std::size_t bytes;
  std::optional<DType> type;
};
constexpr std::array kTypes{
    TypeName{"F32", 4, DType::f32},      TypeName{"BF16", 2, DType::bf16},
    TypeName{"F16", 2, DType::f16},      TypeName{"I8", 1, DType::i8},
    TypeName{"I32", 4, DType::i32},      TypeName{"F64", 8, std::nullopt},
    TypeName{"I64", 8, std::nullopt},    TypeName{"U64", 8, std::nullopt},
    TypeName{"U32", 4, std::nullopt},    TypeName{"I16", 2, std::nullopt},
    TypeName{"U16", 2, std::nullopt},    TypeName{"U8", 1, std::nullopt},
    TypeName{"BOOL", 1, std::nullopt},   TypeName{"F8_E4M3", 1, std::nullopt},
    TypeName{"F8_E5M2", 1, std::nullopt}};

/// Follows the parser through the header. The first value that the format does not allow stops the
/// parser, so hostile input is not stored.
///
///   outside -> root -> tensor -> numbers (of "shape" or "data_offsets")
///                   -> metadata
class HeaderReader final : public nlohmann::json_sax<json> {
 public:
  explicit HeaderReader(std::uint64_t data_bytes) : data_bytes_(data_bytes) {}

  SafetensorsHeader take() { return std::move(header_); }
  const std::string& problem() const { return problem_; }

  bool null() override { return misplaced("null"); }
  bool boolean(bool) override { return misplaced("true or false"); }
  bool number_integer(json::number_integer_t) override { return misplaced("a negative number"); }
  bool number_float(json::number_float_t, const std::string&) override {
    return misplaced("a fraction");
  }
  bool binary(json::binary_t&) override { return misplaced("binary data"); }

  bool number_unsigned(json::number_unsigned_t value) override {
    if (where_ != Where::numbers) return misplaced("a number");
    const std::size_t most = key_ == "shape" ? limits::kMaxRank : 2;
    auto& numbers = key_ == "shape" ? *shape_ : *offsets_;
    if (numbers.size() == most) return misplaced(concat("more than ", most, " numbers"));
    numbers.push_back(value);
    return true;
  }

  bool string(std::string& value) override {
    if (where_ == Where::metadata) return header_.metadata.emplace(key_, value).second || twice();
    if (where_ != Where::tensor || key_ != "dtype") return misplaced("text");
    if (dtype_) return twice();
    dtype_ = value;
    return true;
  }

  bool start_object(std::size_t) override {
    if (where_ == Where::outside) {
      where_ = Where::root;
    } else if (where_ == Where::root) {
      where_ = name_ == kMetadata ? Where::metadata : Where::tensor;
    } else {
      return misplaced("an object");
    }
    return true;
  }

  bool key(std::string& key) override {
    key_ = key;
    if (where_ != Where::root) return true;
    name_ = std::move(key);
    key_.clear();
    return names_.insert(name_).second || twice();
  }

  bool end_object() override {
    if (where_ == Where::tensor && !finish_tensor()) return false;
    where_ = where_ == Where::root ? Where::outside : Where::root;
    return true;
  }

  bool start_array(std::size_t) override {
    if (where_ != Where::tensor || (key_ != "shape" && key_ != "data_offsets"))
      return misplaced("an array");
    auto& numbers = key_ == "shape" ? shape_ : offsets_;
    if (numbers) return twice();
    numbers.emplace();
    where_ = Where::numbers;
    return true;
  }

  bool end_array() override {
    where_ = Where::tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    return refuse("header byte ", position, " is not JSON");
  }

 private:
  enum class Where : std::uint8_t { outside, root, tensor, numbers, metadata };

  template <class... Values>
  bool refuse(const Values&... values) {
    problem_ = concat(values...);
    return false;
  }
  std::string place() const {
    if (name_.empty() && key_.empty()) return "header";
    return concat(name_ == kMetadata ? "metadata" : "tensor " + excerpt(name_),
                  key_.empty() ? "" : ", " + excerpt(key_));
  }
  bool misplaced(std::string_view what) {
    return refuse(place(), ": ", what, " does not belong there");
  }
  bool twice() { return refuse(place(), ": given twice"); }

  bool finish_tensor() {
    key_.clear();
    if (!dtype_ || !shape_ || !offsets_ || offsets_->size() != 2)
      return refuse(place(), ": needs a dtype, a shape and two data_offsets");
    const auto type = std::find_if(kTypes.begin(), kTypes.end(),
                                   [&](const TypeName& known) { return known.name == *dtype_; });
    if (type == kTypes.end())
      return refuse(place(), ": dtype ", excerpt(*dtype_),
                    " is not known; convert the tensor to F32");

    std::uint64_t bytes = type->bytes;
    bool empty = false;
    for (const std::uint64_t extent : *shape_) empty = empty || extent == 0;
    for (const std::uint64_t extent : *shape_)
      if (__builtin_mul_overflow(bytes, std::max<std::uint64_t>(extent, 1), &bytes) ||
          bytes > std::uint64_t{1} << 62)
        return refuse(place(), ": its shape is too large");
    if (empty) bytes = 0;
    const std::uint64_t begin = (*offsets_)[0], end = (*offsets_)[1];
    if (begin > end || end > data_bytes_)
      return refuse(place(), ": data_offsets ", begin, " to ", end, " in ", data_bytes_,
                    " bytes of data");
    if (end - begin != bytes)
      return refuse(place(), ": data_offsets give it ", end - begin,
                    " bytes, but its shape and dtype need ", bytes);

    const std::vector<std::int64_t> extents(shape_->begin(), shape_->end());
    header_.entries.push_back({name_, Shape(std::span<const std::int64_t>(extents)),
                               type->type.value_or(DType::f32),
                               type->type ? std::string_view() : type->name, begin, end});
    dtype_.reset();
    shape_.reset();
    offsets_.reset();
    return true;
  }

  std::uint64_t data_bytes_;
  SafetensorsHeader header_;
  std::string problem_;
  Where where_ = Where::outside;
  std::string name_, key_;  // the parser's position
  std::unordered_set<std::string> names_;
  std::optional<std::string> dtype_;
  std::optional<std::vector<std::uint64_t>> shape_, offsets_;
};

/// Sorts the entries by position. Errors: overlaps, gaps, and bytes after the last tensor.
Status check_cover(std::vector<Entry>& entries, std::uint64_t data_bytes, const std::string& file) {
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t covered = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != covered)
      return Error{concat(file, ": tensor ", excerpt(entry.name), ": its data begins at byte ",
                          entry.begin, ", ",
                          entry.begin < covered ? "inside" : "after a gap that follows",
                          " the data that ends at ", covered, "; save the file again")};
    covered = entry.end;
  }
  if (covered == data_bytes) return {};
  return Error{concat(file, ": ", data_bytes - covered,
                      " bytes at its end belong to no tensor; save the file again")};
}

/// `text` as a JSON string.
Expected<std::string> quoted(const std::string& text) {
  std::string out = json(text).dump(-1, ' ', false, json::error_handler_t::ignore);
  if (json::parse(out).get_ref<const std::string&>() == text) return out;
  return Error{
      concat("found the name or metadata ", excerpt(text), ", which is not UTF-8; rename it")};
}

}  // namespace

Expected<SafetensorsHeader> parse_safetensors_header(std::string_view text,
                                                     std::uint64_t data_bytes,
                                                     const std::string& file) {
  if (text.empty() || text[0] != '{')
    return Error{concat(file, ": byte 8: found no JSON object; give a safetensors file")};
  HeaderReader reader(data_bytes);
  if (!json::sax_parse(text.begin(), text.end(), &reader)) {
    const bool advised = reader.problem().find(';') != std::string::npos;
    return Error{concat(file, ": ", reader.problem(), advised ? "" : "; save the file again")};
  }
  SafetensorsHeader header = reader.take();
  if (Status status = check_cover(header.entries, data_bytes, file); !status) return status.error();
  return header;
}

Expected<std::string> make_safetensors_header(std::span<const TensorView> tensors,
                                              const Metadata& metadata) {
  std::string out = "{";
  std::string separator;
  const auto add = [&](const std::string& name, const std::string& value) -> Status {
    const auto key = quoted(name);
    if (!key) return key.error();
    out += separator + *key + ":" + value;
    separator = ",";
    return {};
  };
  if (!metadata.empty()) {
    out += concat('"', kMetadata, "\":{");
    for (const auto& [key, value] : metadata) {
      const auto text = quoted(value);
      if (!text) return text.error();
      if (Status status = add(key, *text); !status) return status.error();
    }
    out += "}";
    separator = ",";
  }
  std::uint64_t position = 0;
  for (const TensorView& tensor : tensors) {
    if (tensor.name == kMetadata)
      return Error{concat("tensor \"", kMetadata, "\": the format reserves this name; rename it")};
    const auto type = std::find_if(kTypes.begin(), kTypes.end(),
                                   [&](const TypeName& t) { return t.type == tensor.dtype; });
    LW_CHECK(type != kTypes.end(), name_of(tensor.dtype));
    const json shape(
        std::vector<std::int64_t>(tensor.shape.extents().begin(), tensor.shape.extents().end()));
    const std::uint64_t end = position + tensor.bytes.size();
    const Status status =
        add(tensor.name, concat(R"({"dtype":")", type->name, R"(","shape":)", shape.dump(),
                                R"(,"data_offsets":[)", position, ",", end, "]}"));
    if (!status) return status.error();
    position = end;
  }
  out += "}";
  out.resize((out.size() + 7) / 8 * 8, ' ');
  return out;
}

}  // namespace leeway
