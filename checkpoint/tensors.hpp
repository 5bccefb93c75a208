#pragma once
// The tensors of a checkpoint: between the blocks of shards and whole parameters.
//
// A tensor has the name of its parameter. If a block holds only some rows of a parameter, the rows
// follow in brackets: "3.weight[0:512]". State of the optimizer adds its slot: "3.weight.slot0".
#include <span>
#include <string>
#include <vector>

#include "checkpoint/store.hpp"
#include "models/safetensors.hpp"

namespace leeway::checkpoint {

std::vector<TensorView> weights_of(const Model& model, std::span<const StoredBlock> blocks);
std::vector<TensorView> slots_of(const Model& model, std::span<const StoredBlock> blocks);

/// Assembles the parameters of a model from the files of all shards.
class ParameterReader {
 public:
  explicit ParameterReader(const Model& model);

  /// Adds the tensors of one file. Error: a tensor of another model, or repeated rows.
  Status add(std::span<const std::byte> file, const std::string& name);
  /// The parameters, with the versions of the manifest. Error: rows are missing. `source` is for
  /// errors.
  Expected<std::vector<ParameterState>> take(const Manifest& manifest, const std::string& source);

 private:
  /// A parameter's values or one slot, with the rows that have arrived.
  struct Target {
    Blob data;
    std::vector<bool> arrived;
  };
  Status add(const TensorView& tensor, const std::string& file);
  Status add_rows(const Manifest& manifest, const std::string& source,
                  std::vector<ParameterState>& parameters) const;
  /// The index of a parameter, or -1.
  int find(std::string_view name) const;

  const Model& model_;
  std::vector<std::vector<Target>> targets_;  // by parameter: the weights, then the slots
};

}  // namespace leeway::checkpoint
