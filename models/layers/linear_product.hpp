#pragma once
// The matrix product of linear and unembedding, in the precision of its shape. W (O, I) is the
// layer's first weight.
#include "kernels/executor.hpp"
#include "models/layer.hpp"

namespace leeway::linear_product {

std::size_t scratch_bytes(Executor& on, const kernels::LinearShape& shape);

/// y (B, O) = x (B, I) W^T, plus bias (O) unless it is empty.
void forward(const ForwardArgs& args, ParameterView bias, const kernels::LinearShape& shape);

/// The gradients of x and W, and of the bias unless `dbias` is empty.
void backward(const BackwardArgs& args, GradientView dbias, const kernels::LinearShape& shape);

}  // namespace leeway::linear_product
