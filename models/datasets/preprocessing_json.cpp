#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "core/check.hpp"
#include "core/limits.hpp"
#include "core/text.hpp"
#include "models/datasets/file.hpp"
#include "models/datasets/preprocessing.hpp"
#include "models/datasets/utf8.hpp"

namespace leeway {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kFormat = "leeway-preprocessing";
constexpr int kVersion = 1;

constexpr const char* kind_name(Preprocessing::Kind kind) {
  switch (kind) {
    case Preprocessing::Kind::table:
      return "table";
    case Preprocessing::Kind::image:
      return "image";
    case Preprocessing::Kind::text:
      return "text";
  }
  return "";
}

ordered_json json_of(const Preprocessing::Column& column) {
  ordered_json tree{{"name", column.name}};
  if (column.is_text()) {
    tree["encoding"] = "one_hot";
    tree["values"] = column.values;
  } else {
    tree["encoding"] = "scaled";
    tree["mean"] = column.mean;
    tree["deviation"] = column.deviation;
  }
  if (column.fill) tree["fill"] = *column.fill;
  return tree;
}

ordered_json json_of(const Preprocessing::Split& split) {
  if (!split.test_file.empty()) return {{"test_file", split.test_file}};
  return {{"test_share", split.test_share}, {"seed", split.seed}};
}

/// Reads the tree and remembers the first problem. After one, all results are empty.
class Reader {
 public:
  explicit Reader(const json& root) : root_(root) {}

  Expected<Preprocessing> read() {
    Preprocessing out;
    if (!root_.is_object() || text(root_, "format") != kFormat) refuse("format", "is missing");
    if (number(root_, "version") != kVersion) refuse("version", "is not 1");
    read_kind(out);
    read_shape(out);
    read_answers(out);
    if (out.kind == Preprocessing::Kind::table) read_table(out);
    if (out.kind == Preprocessing::Kind::image) {
      const json& pixels = object(root_, "pixels");
      out.pixel_mean = number(pixels, "mean");
      out.pixel_deviation = deviation(pixels);
    }
    if (out.kind == Preprocessing::Kind::text)
      out.characters = texts(root_, "characters", limits::kMaxVocabulary);
    read_split(out);
    if (!problem_.empty()) return Error{problem_};
    return out;
  }

 private:
  void refuse(const std::string& key, const std::string& found) {
    if (problem_.empty()) problem_ = concat("\"", key, "\" ", found);
  }

  const json* find(const json& tree, const char* key) {
    const auto found = tree.find(key);
    if (tree.is_object() && found != tree.end()) return &*found;
    refuse(key, "is missing");
    return nullptr;
  }
  const json& object(const json& tree, const char* key) {
    static const json kEmpty = json::object();
    const json* const value = find(tree, key);
    if (value && value->is_object()) return *value;
    refuse(key, "is not an object");
    return kEmpty;
  }
  std::string text(const json& tree, const char* key) {
    const json* const value = find(tree, key);
    if (value && value->is_string()) return value->get<std::string>();
    refuse(key, "is not text");
    return {};
  }
  double number(const json& tree, const char* key) {
    const json* const value = find(tree, key);
    if (value && value->is_number() && std::isfinite(value->get<double>()))
      return value->get<double>();
    refuse(key, "is not a number");
    return 1;
  }
  double deviation(const json& tree) {
    const double value = number(tree, "deviation");
    if (std::isnormal(value) && value > 0 && std::isfinite(1 / value)) return value;
    refuse("deviation", "is not above 0");
    return 1;
  }
  bool boolean(const json& tree, const char* key) {
    const json* const value = find(tree, key);
    if (value && value->is_boolean()) return value->get<bool>();
    refuse(key, "is not true or false");
    return false;
  }
  const json& list(const json& tree, const char* key, std::size_t most) {
    static const json kEmpty = json::array();
    const json* const value = find(tree, key);
    if (value && value->is_array() && value->size() <= most) return *value;
    refuse(key, concat("is not a list of at most ", most, " items"));
    return kEmpty;
  }
  /// A list of different texts.
  std::vector<std::string> texts(const json& tree, const char* key, std::size_t most) {
    std::vector<std::string> out;
    std::unordered_set<std::string> seen;
    for (const json& item : list(tree, key, most)) {
      if (!item.is_string()) {
        refuse(key, "has an item that is not text");
        return {};
      }
      out.push_back(item.get<std::string>());
      if (!seen.insert(out.back()).second) refuse(key, concat("repeats ", excerpt(out.back())));
    }
    return out;
  }

  void read_kind(Preprocessing& out) {
    const std::string name = text(root_, "kind");
    for (const auto kind :
         {Preprocessing::Kind::table, Preprocessing::Kind::image, Preprocessing::Kind::text}) {
      if (name != kind_name(kind)) continue;
      out.kind = kind;
      return;
    }
    refuse("kind", "is not table, image or text");
  }

  void read_shape(Preprocessing& out) {
    std::vector<std::int64_t> extents;
    std::int64_t count = 1;
    for (const json& extent : list(root_, "shape", limits::kMaxRank)) {
      const bool is_fit =
          extent.is_number_unsigned() && extent.get<std::uint64_t>() <= limits::kMaxSampleValues;
      extents.push_back(is_fit ? extent.get<std::int64_t>() : 0);
      count *= extents.back();
      if (count > 0 && count <= std::int64_t{limits::kMaxSampleValues}) continue;
      refuse("shape", "has too many or no values");
      return;
    }
    if (extents.empty()) refuse("shape", "is empty");
    out.shape = Shape(std::span<const std::int64_t>(extents));
  }

  void read_answers(Preprocessing& out) {
    if (out.kind == Preprocessing::Kind::text) return;
    if (root_.contains("classes")) {
      out.classes = texts(root_, "classes", limits::kMaxClasses);
      if (out.classes.empty()) refuse("classes", "is empty");
    } else {
      const json& target = object(root_, "target");
      out.target_mean = number(target, "mean");
      out.target_deviation = deviation(target);
    }
  }

  void read_table(Preprocessing& out) {
    out.label = text(root_, "label");
    const json& csv = object(root_, "csv");
    const std::string separator = text(csv, "separator");
    if (separator.size() == 1)
      out.separator = separator[0];
    else
      refuse("separator", "is not one character");
    out.header = boolean(csv, "header");
    std::unordered_set<std::string> names{out.label};
    std::int64_t width = 0;
    for (const json& item : list(root_, "columns", limits::kMaxSampleValues)) {
      out.columns.push_back(read_column(item));
      const auto& column = out.columns.back();
      width += column.width();
      if (!names.insert(column.name).second)
        refuse("columns", concat("repeats ", excerpt(column.name)));
      if (!problem_.empty()) return;
    }
    if (out.columns.empty() || !(out.shape == Shape{width}))
      refuse("columns", concat("become ", width, " numbers, but \"shape\" is ", out.shape));
  }

  Preprocessing::Column read_column(const json& tree) {
    Preprocessing::Column column;
    column.name = text(tree, "name");
    const std::string encoding = text(tree, "encoding");
    if (encoding == "one_hot") {
      column.values = texts(tree, "values", limits::kMaxCategories);
      if (column.values.empty()) refuse("values", "is empty");
    } else if (encoding == "scaled") {
      column.mean = number(tree, "mean");
      column.deviation = deviation(tree);
    } else {
      refuse("encoding", "is not one_hot or scaled");
    }
    if (tree.contains("fill")) column.fill = number(tree, "fill");
    return column;
  }

  void read_split(Preprocessing& out) {
    const json& split = object(root_, "split");
    if (split.contains("test_file")) {
      out.split.test_file = text(split, "test_file");
      return;
    }
    out.split.test_share = number(split, "test_share");
    if (!(out.split.test_share >= 0 && out.split.test_share < 1))
      refuse("test_share", "is not a share");
    const json* const seed = find(split, "seed");
    if (seed && seed->is_number_unsigned())
      out.split.seed = seed->get<std::uint64_t>();
    else
      refuse("seed", "is not a whole number");
  }

  const json& root_;
  std::string problem_;
};

}  // namespace

std::string Preprocessing::to_json() const {
  ordered_json tree{{"format", kFormat}, {"version", kVersion}, {"kind", kind_name(kind)}};
  tree["shape"] = std::vector<std::int64_t>(shape.extents().begin(), shape.extents().end());
  if (kind == Kind::table) {
    for (const Column& column : columns) tree["columns"].push_back(json_of(column));
    tree["label"] = label;
    tree["csv"] = {{"separator", std::string(1, separator)}, {"header", header}};
  } else if (kind == Kind::image) {
    tree["pixels"] = {{"mean", pixel_mean}, {"deviation", pixel_deviation}};
  } else {
    tree["characters"] = characters;
  }
  if (!classes.empty())
    tree["classes"] = classes;
  else if (kind != Kind::text)
    tree["target"] = {{"mean", target_mean}, {"deviation", target_deviation}};
  tree["split"] = json_of(split);
  // File names may be of any bytes.
  return tree.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

Expected<Preprocessing> Preprocessing::from_json(std::string_view text, const std::string& name) {
  if (text.size() > limits::kMaxPreprocessingBytes)
    return Error{concat(name, ": has ", text.size(), " bytes, at most ",
                        limits::kMaxPreprocessingBytes, " are read; train again")};
  const json tree = json::parse(text, nullptr, /*allow_exceptions=*/false);
  auto out = Reader(tree).read();
  if (!out)
    return Error{concat(name, ": is not the preprocessing that a run wrote: ", out.error().text,
                        "; train again")};
  return out;
}

}  // namespace leeway
