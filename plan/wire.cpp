#include "plan/wire.hpp"

#include "plan/values.hpp"

namespace leeway {

namespace wire {

void read(Address& out, capnp::Text::Reader in, const char* field) {
  const auto address = parse_address(std::string(in.begin(), in.size()));
  require(address.has_value(), field, ": ", address ? "" : address.error().text);
  out = *address;
}

std::vector<std::uint64_t> words_of(capnp::MessageBuilder& builder) {
  const auto flat = capnp::messageToFlatArray(builder);
  const auto* words = reinterpret_cast<const std::uint64_t*>(flat.begin());
  return {words, words + flat.size()};
}

Status check_size(std::span<const std::uint64_t> words, const char* kind) {
  if (words.size_bytes() <= limits::kMaxHeaderBytes) return {};
  return Error{concat(kind, ": has ", words.size_bytes(), " bytes, at most ",
                      limits::kMaxHeaderBytes, " are allowed")};
}

capnp::ReaderOptions plan_options(std::size_t words) {
  capnp::ReaderOptions options = reader_options(words);
  options.nestingLimit += 2 * static_cast<int>(limits::kMaxLayerDepth);  // a residual and its list
  return options;
}

namespace {

/// Bounds the number and depth of all layers, nested ones included.
struct LayerCount {
  std::size_t layers = 0;

  void add(capnp::List<plan_schema::Layer>::Reader in, std::uint32_t depth) {
    layers += in.size();
    require(layers <= limits::kMaxBuckets, "model has more than ", limits::kMaxBuckets,
            " layers; give at most that many");
    for (const auto layer : in) {
      if (!layer.isResidual()) continue;
      require(depth < limits::kMaxLayerDepth, "model has residual layers nested deeper than ",
              limits::kMaxLayerDepth, " levels; nest them less deeply");
      add(layer.getResidual().getBody(), depth + 1);
      add(layer.getResidual().getShortcut(), depth + 1);
    }
  }
};

}  // namespace

void require_layer_limits(plan_schema::Plan::Reader in) {
  LayerCount().add(in.getModel(), 0);
}

}  // namespace wire

}  // namespace leeway
