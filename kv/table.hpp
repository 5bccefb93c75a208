#pragma once
// Table: the keys of a store as the parameters of a model, which no layer computes.
//
// Each large key is a separate layer; small keys share one, in their order. A push of a large key
// can therefore leave at once, and thousands of small keys travel together. A layer is pushed as a
// whole: where zeros are no neutral gradient, each key is a separate layer.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/expected.hpp"
#include "models/layout.hpp"
#include "plan/plan.hpp"
#include "tensor/shape.hpp"

namespace leeway::kv {

struct TableKey {
  std::string name;
  Shape shape;
};

/// Consecutive floats of a key in a block.
struct TablePiece {
  BlockId block;
  std::uint32_t slice = 0;   // number in the block
  std::int64_t offset = 0;   // floats from the start of the block
  std::int64_t padding = 0;  // floats behind it that no key has
  std::int64_t first = 0;    // floats from the start of the key
  std::int64_t count = 0;
};

/// A key in the blocks of a layout.
struct PlacedKey {
  Shape shape;
  int layer = 0;
  std::vector<TablePiece> pieces;
};

enum class Grouping : std::uint8_t { small_keys, none };

/// Model layers with these keys as parameters, in their order. Errors: no key, too many, a key
/// that is empty or listed twice.
Expected<std::vector<plan::Layer>> table_layers(const std::vector<TableKey>& keys,
                                                Grouping grouping);

/// The keys of such layers; none for others.
std::vector<TableKey> table_keys(const std::vector<plan::Layer>& layers);

/// Whether a layer has several keys.
bool has_groups(const std::vector<plan::Layer>& layers);

/// The places of all keys, by name.
std::map<std::string, PlacedKey> place_keys(const Model& model, const Layout& layout);

/// Registers a data set of `samples` numbered samples per epoch in this process, and returns its
/// source. A run leases only their numbers.
plan::DataSource register_numbered_samples(std::int64_t samples);
/// Registers the data of a plan if it is such a set; false if it is not.
bool register_if_numbered_samples(const plan::DataSource& source);

/// Registers the layer of stores in this process. May be called again.
void register_tables();

}  // namespace leeway::kv
