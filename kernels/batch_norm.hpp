#pragma once
// batch_norm: each channel to mean 0 and variance 1 over the batch, then scaled and shifted (Ioffe
// and Szegedy 2015, algorithm 1).
//
// x, y: (R, C) with R rows of C channels: R = B, or B * H * W for images, which lie channels last.
#include <cstdint>

namespace leeway::kernels {

struct NormShape {
  std::int64_t rows = 0, columns = 0;  // R, C
  float epsilon = 1e-5f;
};

/// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, with the batch's own mean and (biased)
/// variance a channel. mean, inv_std: (C) = what backward wants, inv_std being 1 / sqrt(variance +
/// epsilon); with R = 0, 0 and 1. gamma, beta: (C). y may be x.
void batch_norm_forward(float* y, float* mean, float* inv_std, const float* x, const float* gamma,
                        const float* beta, const NormShape& shape);

/// The same with given mean and variance, for evaluation.
void batch_norm_inference(float* y, const float* x, const float* gamma, const float* beta,
                          const float* mean, const float* variance, const NormShape& shape);

/// What the running statistics take in: the batch's mean (C) and its unbiased variance (C), R / (R
/// - 1) times the biased one (the biased one itself when R < 2).
void batch_norm_statistics(float* batch_mean, float* batch_variance, const float* mean,
                           const float* inv_std, const NormShape& shape);

/// dx = gradient of the input, unless null; dgamma, dbeta (C) = of the parameters. dx may be dy.
void batch_norm_backward(float* dx, float* dgamma, float* dbeta, const float* dy, const float* x,
                         const float* mean, const float* inv_std, const float* gamma,
                         const NormShape& shape);

}  // namespace leeway::kernels
