#pragma once
// batch_norm: normalises each channel over the batch to mean 0 and variance 1, then scales and
// shifts it (Ioffe and Szegedy 2015, algorithm 1).
//
// x, y: (R, C), R rows of C channels, where R = B, or B * H * W for images (channels last).
#include <cstdint>

namespace leeway::kernels {

struct NormShape {
  std::int64_t rows = 0, columns = 0;  // R, C
  float epsilon = 1e-5f;
};

/// y = (x - mean) * inv_std * gamma + beta, with inv_std = 1 / sqrt(variance + epsilon) and the
/// mean and biased variance of each channel. mean, inv_std: (C) = outputs for backward, 0 and 1 if
/// R = 0. gamma, beta: (C). y may be x.
void batch_norm_forward(float* y, float* mean, float* inv_std, const float* x, const float* gamma,
                        const float* beta, const NormShape& shape);

/// The same formula with given mean and variance, for evaluation.
void batch_norm_inference(float* y, const float* x, const float* gamma, const float* beta,
                          const float* mean, const float* variance, const NormShape& shape);

/// Input of the running statistics: the batch's mean (C) and unbiased variance (C), which is
/// R / (R - 1) times the biased one, or equal to it if R < 2.
void batch_norm_statistics(float* batch_mean, float* batch_variance, const float* mean,
                           const float* inv_std, const NormShape& shape);

/// dx = gradient of the input, unless null; dgamma, dbeta (C) = gradients of the parameters. dx may
/// be dy.
void batch_norm_backward(float* dx, float* dgamma, float* dbeta, const float* dy, const float* x,
                         const float* mean, const float* inv_std, const float* gamma,
                         const NormShape& shape);

}  // namespace leeway::kernels
