#pragma once
// The tensors of a checkpoint: between the blocks of shards and whole parameters.
//
// A tensor has the name of its parameter. If a block holds only some rows of a parameter, the rows
// follow in brackets: "3.weight[0:512]". State of the optimizer adds its slot: "3.weight.slot0".
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/store.hpp"
#include "models/safetensors.hpp"

namespace leeway::checkpoint {

std::vector<TensorView> weights_of(const Model& model, std::span<const StoredBlock> blocks);
std::vector<TensorView> slots_of(const Model& model, std::span<const StoredBlock> blocks);

/// Assembles the parameters of a model from the files of all shards. Several threads may add files.
class ParameterReader {
 public:
  explicit ParameterReader(const Model& model);

  /// Adds the tensors of one file. Error: a tensor of another model, or repeated rows. A tensor
  /// with all rows of its parameter is not copied: the parameter refers to the file's content.
  Status add(const std::shared_ptr<const Files::Content>& file, const std::string& name);
  /// The parameters, with the versions of the manifest. Error: rows are missing. `source` is for
  /// errors.
  Expected<std::vector<ParameterState>> take(const Manifest& manifest, const std::string& source);

 private:
  /// A parameter's values or one slot, with the rows that have arrived.
  struct Target {
    Values values;
    float* memory = nullptr;  // of the values; null: they are in the file
    std::vector<bool> arrived;
  };
  Status add_rows(const Manifest& manifest, const std::string& source,
                  std::vector<ParameterState>& parameters) const;
  /// The index of a parameter, or -1.
  int find(std::string_view name) const;

  /// Marks the tensor's rows as arrived. Returns where they go; null if they stay in the file.
  Expected<float*> reserve(const TensorView& tensor,
                           const std::shared_ptr<const Files::Content>& file,
                           const std::string& name);

  const Model& model_;
  std::mutex mutex_;
  std::vector<std::vector<Target>> targets_;  // by parameter: the weights, then the slots
};

}  // namespace leeway::checkpoint
