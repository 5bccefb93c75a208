#pragma once
// DataSplit: the training samples that each worker has for itself, as clients of federated learning
// do.
//
// Sources: Dirichlet shares of each class, Yurochkin et al., "Bayesian Nonparametric Federated
// Learning of Neural Networks", ICML 2019, section 4; pieces of the samples in order of their
// labels, McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized
// Data", AISTATS 2017, section 3.
#include <cstdint>
#include <vector>

#include "core/expected.hpp"
#include "models/datasets/dataset.hpp"
#include "plan/values.hpp"

namespace leeway {

struct DataSplit {
  std::vector<std::int64_t> samples;  // all of the data set, part by part
  std::vector<std::int64_t> begins;   // of each part, then samples.size()

  std::uint32_t parts() const { return static_cast<std::uint32_t>(begins.size() - 1); }
  std::int64_t size_of(std::uint32_t part) const { return begins[part + 1] - begins[part]; }
  /// The part with this position.
  std::uint32_t part_of(std::int64_t position) const;
};

/// Whether the samples have what the split needs: enough of them, and labels.
Status check_split(const Dataset& data, const plan::SplitData& split, std::uint32_t parts);

/// Divides the samples into `parts`. Requires check_split(), contents, and that the split is not
/// shared. The error names a part without samples.
Expected<DataSplit> split_data(const Dataset& data, const plan::SplitData& split,
                               std::uint32_t parts, std::uint64_t seed);

}  // namespace leeway
