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
  std::vector<std::int64_t> samples;  // all of the data set, share by share
  std::vector<std::int64_t> begins;   // of each share, then samples.size()

  std::uint32_t shares() const { return static_cast<std::uint32_t>(begins.size() - 1); }
  std::int64_t size_of(std::uint32_t share) const { return begins[share + 1] - begins[share]; }
  /// The share with this position.
  std::uint32_t share_of(std::int64_t position) const;
};

/// Whether the samples have what the split needs: enough of them, and labels.
Status check_split(const Dataset& data, const plan::SplitData& split, std::uint32_t shares);

/// Divides the samples into this number of shares. Requires check_split(), contents, and a split
/// other than SharedData. The error names a share without samples.
Expected<DataSplit> split_data(const Dataset& data, const plan::SplitData& split,
                               std::uint32_t shares, std::uint64_t seed);

}  // namespace leeway
