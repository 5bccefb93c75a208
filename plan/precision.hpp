#pragma once
// The text of plan.precision.
#include <string>
#include <vector>

#include "core/expected.hpp"
#include "plan/plan.hpp"
#include "tensor/precision.hpp"

namespace leeway {

/// Whether a layer computes products, whose precision a plan chooses: linear, unembedding, conv2d,
/// layers that programs register, and residual layers that contain one of them. All other layers,
/// losses and optimizers compute in fp32.
bool has_products(const plan::Layer& layer);

/// "bf16", or "bf16,0=fp32,3-5=tf32" with other precisions of some layers of the list: one
/// precision per layer, fp32 for layers without products. "mixed" is bf16. Errors: an unknown
/// precision or layer, and a precision for layers that all have no products.
Expected<std::vector<Precision>> parse_precision(const std::string& text,
                                                 const std::vector<plan::Layer>& model);

/// Whether a layer multiplies in fp16. False if the plan's text is not valid.
bool multiplies_in_fp16(const Plan& plan);

/// Whether the text begins with "mixed": the plan also sends weights and activations in bf16,
/// unless it gives them another codec (policies/automatic_plan.hpp).
bool is_mixed_precision(const std::string& text);

}  // namespace leeway
