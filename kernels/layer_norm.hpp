#pragma once
// layer_norm: normalises each row to mean 0 and variance 1, then scales and shifts it (Ba, Kiros
// and Hinton 2016). x, y: (R, C), R rows of C features.
#include <cstdint>

#include "kernels/batch_norm.hpp"

namespace leeway::kernels {

/// y = (x - mean) * inv_std * gamma + beta, with inv_std = 1 / sqrt(variance + epsilon) and the
/// mean and biased variance of the row. mean, inv_std: (R) = outputs for backward. gamma, beta:
/// (C). y may not be x.
void layer_norm_forward(float* y, float* mean, float* inv_std, const float* x, const float* gamma,
                        const float* beta, const NormShape& shape);

/// dx (R, C) = gradient of the input, unless null; dgamma, dbeta (C) = gradients of the parameters.
/// dx may be dy.
void layer_norm_backward(float* dx, float* dgamma, float* dbeta, const float* dy, const float* x,
                         const float* mean, const float* inv_std, const float* gamma,
                         const NormShape& shape);

}  // namespace leeway::kernels
