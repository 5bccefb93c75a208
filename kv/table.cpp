#include "kv/table.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <mutex>
#include <set>
#include <utility>

#include "core/check.hpp"
#include "core/limits.hpp"
#include "core/number.hpp"
#include "core/text.hpp"
#include "models/datasets/dataset.hpp"
#include "models/layer.hpp"

namespace leeway::kv {
namespace {

constexpr const char* kLayer = "table";
constexpr std::string_view kData = "numbered samples ";
/// Of the small keys of one layer. A block of a checkpoint has at most kMaxBlockSlices keys.
constexpr std::size_t kGroupKeys = 1024, kGroupBytes = 1u << 20;

std::size_t bytes_of(const TableKey& key) {
  return static_cast<std::size_t>(key.shape.count()) * sizeof(float);
}

// ---- the text of a layer ----

/// "1:w 784x256;1:b 256;": names may contain anything.
std::string text_of(std::span<const TableKey> keys) {
  std::string text;
  for (const TableKey& key : keys)
    text += concat(key.name.size(), ':', key.name, ' ', key.shape, ';');
  return text;
}

template <class Number>
bool take_number(std::string_view& text, char end, Number& number) {
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest == text.data() + text.size() || *rest != end) return false;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()) + 1);
  return true;
}

bool take_shape(std::string_view& text, Shape& shape) {
  constexpr std::string_view kScalar = "scalar;";
  if (text.starts_with(kScalar)) {
    text.remove_prefix(kScalar.size());
    return true;
  }
  std::vector<std::int64_t> extents;
  for (std::int64_t extent = 0; extents.size() <= limits::kMaxRank;) {
    const bool more = take_number(text, 'x', extent);
    if (!more && !take_number(text, ';', extent)) return false;
    extents.push_back(extent);
    if (more) continue;
    if (extents.size() > limits::kMaxRank) return false;
    shape = Shape(extents);
    return true;
  }
  return false;
}

bool is_empty(std::int64_t extent) {
  return extent < 1;
}

Expected<std::vector<TableKey>> keys_of(std::string_view text) {
  std::vector<TableKey> keys;
  while (!text.empty()) {
    TableKey key;
    std::size_t length = 0;
    if (!take_number(text, ':', length) || length >= text.size() || text[length] != ' ')
      return Error{"its arguments are not those of a table of keys"};
    key.name = text.substr(0, length);
    text.remove_prefix(length + 1);
    if (!take_shape(text, key.shape) || std::ranges::any_of(key.shape.extents(), is_empty))
      return Error{concat("its key \"", key.name, "\" has no valid shape")};
    keys.push_back(std::move(key));
  }
  return keys;
}

// ---- layers and data ----

/// Has parameters, and passes its input on.
class TableLayer final : public Layer {
 public:
  explicit TableLayer(std::vector<TableKey> keys) : keys_(std::move(keys)) {}
  std::string_view kind() const override { return kLayer; }
  Expected<Shape> set_input(const Shape& input) override { return input; }
  std::vector<ParameterSpec> parameters() const override {
    std::vector<ParameterSpec> specs;
    for (const TableKey& key : keys_)
      specs.push_back({.name = key.name, .shape = key.shape, .init = plan::Init::zeros});
    return specs;
  }
  bool names_parameters() const override { return true; }
  bool is_view() const override { return true; }
  void forward(const ForwardArgs&) const override { LW_CHECK(false, "a view"); }
  void backward(const BackwardArgs&) const override { LW_CHECK(false, "a view"); }

 private:
  std::vector<TableKey> keys_;
};

Expected<std::unique_ptr<Layer>> make_table_layer(const std::string& arguments) {
  auto keys = keys_of(arguments);
  if (!keys) return keys.error();
  return std::unique_ptr<Layer>(std::make_unique<TableLayer>(std::move(*keys)));
}

/// Samples of one zero, with the target 0.
class NumberedSamples final : public Dataset {
 public:
  explicit NumberedSamples(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }
  Shape sample_shape() const override { return {1}; }
  int classes() const override { return 0; }
  std::int64_t target_count() const override { return 1; }
  void gather(std::span<const std::int64_t> samples, float* x, std::int32_t*,
              float* targets) const override {
    std::fill_n(x, samples.size(), 0.0f);
    if (targets) std::fill_n(targets, samples.size(), 0.0f);
  }

 private:
  const std::int64_t size_;
};

}  // namespace

Expected<std::vector<plan::Layer>> table_layers(const std::vector<TableKey>& keys,
                                                Grouping grouping) {
  if (keys.empty()) return Error{"the store has no keys; call init() before push() and pull()"};
  if (keys.size() > limits::kMaxBlobs)
    return Error{concat("the store has ", keys.size(), " keys, at most ", limits::kMaxBlobs,
                        " are allowed; join some of them")};
  std::set<std::string_view> names;
  for (const TableKey& key : keys) {
    if (!names.insert(key.name).second)
      return Error{concat("key \"", key.name, "\" is initialised twice")};
    if (key.shape.count() <= 0)
      return Error{concat("key \"", key.name, "\" has the shape ", key.shape, ", which is empty")};
  }
  std::vector<plan::Layer> layers;
  for (std::size_t begin = 0, end = 0; begin < keys.size(); begin = end) {
    std::size_t bytes = bytes_of(keys[end++]);
    if (grouping == Grouping::small_keys && bytes < limits::kSmallTensorBytes)
      while (end < keys.size() && end - begin < kGroupKeys &&
             bytes_of(keys[end]) < limits::kSmallTensorBytes &&
             bytes + bytes_of(keys[end]) <= kGroupBytes)
        bytes += bytes_of(keys[end++]);
    layers.push_back(
        plan::CustomLayer{kLayer, text_of(std::span(keys).subspan(begin, end - begin))});
  }
  if (layers.size() > limits::kMaxBuckets)
    return Error{concat("the store has more than ", limits::kMaxBuckets, " keys",
                        grouping == Grouping::none ? " with assign_gradients() or an updater"
                                                   : " of 16 KiB or more",
                        "; join some of them")};
  return layers;
}

std::vector<TableKey> table_keys(const std::vector<plan::Layer>& layers) {
  std::vector<TableKey> all;
  for (const plan::Layer& layer : layers) {
    const auto* custom = std::get_if<plan::CustomLayer>(&layer);
    if (!custom || custom->name != kLayer) continue;
    auto keys = keys_of(custom->arguments);
    if (keys) std::ranges::move(*keys, std::back_inserter(all));
  }
  return all;
}

bool has_groups(const std::vector<plan::Layer>& layers) {
  return std::ranges::any_of(
      layers, [](const plan::Layer& layer) { return table_keys({layer}).size() > 1; });
}

std::map<std::string, PlacedKey> place_keys(const Model& model, const Layout& layout) {
  std::map<std::string, PlacedKey> placed;
  std::vector<PlacedKey*> by_parameter;
  for (const Parameter& parameter : model.parameters()) {
    PlacedKey& key = placed[parameter.spec.name];
    key.shape = parameter.spec.shape;
    key.layer = parameter.layer;
    by_parameter.push_back(&key);
  }
  for (const Block& block : layout.blocks())
    for (std::size_t i = 0; i < block.slices.size(); ++i) {
      const BlockSlice& slice = block.slices[i];
      PlacedKey& key = *by_parameter[static_cast<std::size_t>(slice.parameter)];
      const std::int64_t next =
          i + 1 < block.slices.size() ? block.slices[i + 1].offset : block.floats;
      key.pieces.push_back({.block = block.id,
                            .slice = static_cast<std::uint32_t>(i),
                            .offset = slice.offset,
                            .padding = next - slice.offset - slice.floats,
                            .first = slice.first,
                            .count = slice.floats});
    }
  return placed;
}

plan::DataSource register_numbered_samples(std::int64_t samples) {
  const std::string name = concat(kData, samples);
  register_data(name, [samples](std::uint64_t) -> Expected<TrainTest> {
    return TrainTest{std::make_shared<NumberedSamples>(samples),
                     std::make_shared<NumberedSamples>(1)};
  });
  return plan::CustomData{name};
}

bool register_if_numbered_samples(const plan::DataSource& source) {
  const auto* custom = std::get_if<plan::CustomData>(&source);
  if (!custom || !custom->name.starts_with(kData)) return false;
  const auto samples =
      parse_number<std::int64_t>(std::string_view(custom->name).substr(kData.size()));
  if (!samples || *samples < 1) return false;
  register_numbered_samples(*samples);
  return true;
}

void register_tables() {
  static std::once_flag once;
  std::call_once(once, [] { register_layer(kLayer, make_table_layer); });
}

}  // namespace leeway::kv
