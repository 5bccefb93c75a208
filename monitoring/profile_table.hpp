#pragma once
// profile_table: prints the time of each layer and operation of a run.
#include <optional>
#include <string>
#include <vector>

#include "kernels/peak.hpp"
#include "models/model.hpp"
#include "models/profile.hpp"

namespace leeway {

/// One line per row: time summed over all threads, its share, and GFLOP/s, or GB/s for operations
/// that only move memory. If `peak` is given, also the share of one core's peak.
std::string profile_table(const std::vector<Profile::Row>& rows,
                          const std::optional<kernels::Peak>& peak);

/// One line per kind of device that names the instructions of the model's matrix products, in each
/// precision that its layers use: "  On the CPU, fp32 products: AVX2\n". Empty for a model without
/// linear, unembedding and conv2d layers. devices: those of the workers of this process.
std::string products_text(const Model& model, const std::vector<Device>& devices);

}  // namespace leeway
