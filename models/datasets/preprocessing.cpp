#include "models/datasets/preprocessing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "core/check.hpp"
#include "core/text.hpp"
#include "models/datasets/csv_reader.hpp"
#include "models/datasets/file.hpp"

namespace leeway {

namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_same_word(std::string_view field, std::string_view word) {
  return std::equal(field.begin(), field.end(), word.begin(), word.end(),
                    [](char a, char b) { return lower(a) == b; });
}

}  // namespace

bool is_missing(std::string_view field) {
  constexpr std::array<std::string_view, 5> kWords{"?", "na", "n/a", "nan", "null"};
  field = trimmed(field);
  return field.empty() || std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) {
           return is_same_word(field, word);
         });
}

float Preprocessing::Column::scaled(double number) const {
  constexpr double kLimit = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp((number - mean) * (1 / deviation), -kLimit, kLimit));
}

std::int64_t Preprocessing::Column::code_of(std::string_view value) const {
  const auto found = std::find(values.begin(), values.end(), value);
  return found == values.end() ? -1 : found - values.begin();
}

void Preprocessing::Column::put_code(std::int64_t code, float* x) const {
  std::fill_n(x, width(), 0.0f);
  if (code >= 0) x[code] = 1;
}

Status Preprocessing::Column::encode(std::string_view field, float* x) const {
  if (is_missing(field)) {
    if (!fill)
      return Error{concat("column ", excerpt(name), ": the value is missing (", excerpt(field),
                          "); fill it in, or train with --missing mean")};
    if (is_text())
      put_code(-1, x);
    else
      *x = scaled(*fill);
    return {};
  }
  if (is_text()) {
    put_code(code_of(trimmed(field)), x);
    return {};
  }
  const auto number = parse_number(field);
  if (!number) return Error{concat("column ", excerpt(name), ": ", number.error().text)};
  *x = scaled(*number);
  return {};
}

Expected<std::vector<std::size_t>> Preprocessing::find_columns(
    std::span<const std::string> names) const {
  std::unordered_map<std::string_view, std::size_t> position_of;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!position_of.emplace(names[i], i).second)
      return Error{concat("found a second column ", excerpt(names[i]), "; rename one of them")};
  std::vector<std::size_t> positions;
  for (const Column& column : columns) {
    const auto found = position_of.find(column.name);
    if (found == position_of.end())
      return Error{concat("found no column ", excerpt(column.name),
                          ", which the model was trained with; add it",
                          suggest(column.name, {names.begin(), names.end()}))};
    positions.push_back(found->second);
  }
  return positions;
}

Status Preprocessing::encode_row(std::span<const std::string> fields,
                                 std::span<const std::size_t> positions, float* x) const {
  LW_CHECK(kind == Kind::table && positions.size() == columns.size(), positions.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (positions[i] >= fields.size())
      return Error{concat("column ", excerpt(columns[i].name), ": the row has only ", fields.size(),
                          " fields; complete it")};
    if (Status status = columns[i].encode(fields[positions[i]], x); !status) return status;
    x += columns[i].width();
  }
  return {};
}

Expected<std::vector<float>> Preprocessing::encode_row(std::span<const Field> fields) const {
  std::vector<std::string> names, contents;
  for (const auto& [name, content] : fields) {
    names.push_back(name);
    contents.push_back(content);
  }
  const auto positions = find_columns(names);
  if (!positions) return positions.error();
  std::vector<float> x(static_cast<std::size_t>(shape.count()));
  if (Status status = encode_row(contents, *positions, x.data()); !status) return status.error();
  return x;
}

void Preprocessing::encode_pixels(std::span<const std::uint8_t> pixels, float* x) const {
  LW_CHECK(kind == Kind::image && std::ssize(pixels) == shape.count(), pixels.size());
  scale_pixels(pixels, pixel_scaling(pixel_mean, pixel_deviation), x);
}

PixelScaling pixel_scaling(double mean, double deviation) {
  return {static_cast<float>(1 / deviation), static_cast<float>(-mean / deviation)};
}

// Sums over the histogram, so the result does not depend on the order of the pixels.
void measure_pixels(std::span<const std::uint8_t> pixels, Preprocessing& out) {
  // Neighbouring pixels are often equal, and the increments of one histogram would wait for each
  // other. Eight pixels are read at once.
  std::array<std::array<std::uint64_t, 256>, 4> parts{};
  std::size_t i = 0;
  for (std::uint64_t eight = 0; i + sizeof eight <= pixels.size(); i += sizeof eight) {
    std::memcpy(&eight, pixels.data() + i, sizeof eight);
    for (std::size_t byte = 0; byte < sizeof eight; ++byte)
      ++parts[byte % parts.size()][eight >> 8 * byte & 255];
  }
  for (; i < pixels.size(); ++i) ++parts[0][pixels[i]];
  std::array<std::uint64_t, 256> histogram{};
  for (const auto& part : parts)
    for (std::size_t v = 0; v < 256; ++v) histogram[v] += part[v];
  const auto count = static_cast<double>(pixels.size());
  double mean = 0;
  for (std::size_t v = 0; v < 256; ++v)
    mean += static_cast<double>(v) * static_cast<double>(histogram[v]) / count;
  double variance = 0;
  for (std::size_t v = 0; v < 256; ++v) {
    const double difference = static_cast<double>(v) - mean;
    variance += difference * difference * static_cast<double>(histogram[v]) / count;
  }
  out.pixel_mean = mean;
  out.pixel_deviation = variance > 0 ? std::sqrt(variance) : 255;
}

// The compiler vectorises the loop.
void scale_pixels(std::span<const std::uint8_t> pixels, PixelScaling scaling, float* __restrict x) {
  const std::uint8_t* __restrict from = pixels.data();
  for (std::size_t i = 0; i < pixels.size(); ++i)
    x[i] = static_cast<float>(from[i]) * scaling.scale + scaling.shift;
}

}  // namespace leeway
