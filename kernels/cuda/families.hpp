#pragma once
// The kernels for GPUs: the functions of the headers in kernels/, with the queue as first argument.
//
// A call only enqueues the work. Pointers refer to memory of the device; lists of slices are read
// before the call returns. The order of sums depends only on the shape, so results repeat bit for
// bit on one type of GPU. Any extent may be 0.
#include "kernels/accumulate.hpp"
#include "kernels/activation.hpp"
#include "kernels/attention.hpp"
#include "kernels/batch_norm.hpp"
#include "kernels/conv2d.hpp"
#include "kernels/cuda/stream.hpp"
#include "kernels/delay_correction.hpp"
#include "kernels/dropout.hpp"
#include "kernels/embedding.hpp"
#include "kernels/encoding.hpp"
#include "kernels/gemm.hpp"
#include "kernels/layer_norm.hpp"
#include "kernels/linear_half.hpp"
#include "kernels/pool2d.hpp"
#include "kernels/positions.hpp"
#include "kernels/softmax_cross_entropy.hpp"
#include "kernels/update.hpp"
#include "tensor/dtype.hpp"

namespace leeway::kernels::cuda {

// ---- linear.cu ----

/// As gemm.hpp, but without a bias: shape.with_bias is false. For bf16 and fp16,
/// A and B hold Bf16 and F16.
void gemm(On on, const GemmShape& shape, float* c, const void* a, const void* b);
void linear_forward(On on, float* y, const float* x, ConstSlices weight, ConstSlices bias,
                    const LinearShape& shape);
void linear_backward(On on, float* dx, Slices dweight, Slices dbias, const float* dy,
                     const float* x, ConstSlices weight, const LinearShape& shape);
/// sum (columns) = sum over the rows of x (rows, columns), which are `leading` floats apart.
void column_sums(On on, float* sum, const float* x, std::int64_t rows, std::int64_t columns,
                 std::int64_t leading);
/// y (rows, columns) += bias (columns), rows of y being `leading` floats apart.
void add_bias(On on, float* y, const float* bias, std::int64_t rows, std::int64_t columns,
              std::int64_t leading);

// ---- linear_half.cu ----

PackForm linear_half_form(const LinearShape& shape);
void linear_half_pack(On on, std::byte* packed, ConstSlices weight, const LinearShape& shape);
std::size_t linear_half_scratch_bytes(const LinearShape& shape);
void linear_half_forward(On on, float* y, const float* x, const std::byte* packed,
                         const float* bias, std::byte* scratch, const LinearShape& shape);
void linear_half_backward(On on, float* dx, Slices dweight, float* dbias, const float* dy,
                          const float* x, const std::byte* packed, std::byte* scratch,
                          const LinearShape& shape);

// ---- conv2d.cu, conv2d_direct.cu ----

PackForm conv2d_form(const Conv2dShape& shape);
void conv2d_pack(On on, std::byte* packed, ConstSlices weight, const Conv2dShape& shape);
std::size_t conv2d_scratch_bytes(const Conv2dShape& shape);
void conv2d_forward(On on, float* y, const float* x, const std::byte* packed, const float* bias,
                    std::byte* scratch, const Conv2dShape& shape);
void conv2d_backward(On on, float* dx, Slices dweight, float* dbias, const float* dy,
                     const float* x, const std::byte* packed, std::byte* scratch,
                     const Conv2dShape& shape);

/// For many small groups, whose matrix products would be too small: without bias, and directly on
/// the images. w: (O, K, K, C / G).
void direct_forward(On on, float* y, const float* x, const float* w, const Conv2dShape& shape);
void direct_backward_data(On on, float* dx, const float* dy, const float* w,
                          const Conv2dShape& shape);
void direct_backward_weight(On on, Slices dweight, const float* dy, const float* x,
                            const Conv2dShape& shape);

// ---- pool2d.cu ----

void max_pool2d_forward(On on, float* y, std::uint8_t* from, const float* x,
                        const Pool2dShape& shape);
void max_pool2d_backward(On on, float* dx, const float* dy, const std::uint8_t* from,
                         const Pool2dShape& shape);
void avg_pool2d_forward(On on, float* y, const float* x, const Pool2dShape& shape);
void avg_pool2d_backward(On on, float* dx, const float* dy, const Pool2dShape& shape);

// ---- batch_norm.cu, layer_norm.cu ----

void batch_norm_forward(On on, float* y, float* mean, float* inv_std, const float* x,
                        const float* gamma, const float* beta, const NormShape& shape);
void batch_norm_inference(On on, float* y, const float* x, const float* gamma, const float* beta,
                          const float* mean, const float* variance, const NormShape& shape);
void batch_norm_statistics(On on, float* batch_mean, float* batch_variance, const float* mean,
                           const float* inv_std, const NormShape& shape);
void batch_norm_backward(On on, float* dx, float* dgamma, float* dbeta, const float* dy,
                         const float* x, const float* mean, const float* inv_std,
                         const float* gamma, const NormShape& shape);
void layer_norm_forward(On on, float* y, float* mean, float* inv_std, const float* x,
                        const float* gamma, const float* beta, const NormShape& shape);
void layer_norm_backward(On on, float* dx, float* dgamma, float* dbeta, const float* dy,
                         const float* x, const float* mean, const float* inv_std,
                         const float* gamma, const NormShape& shape);

// ---- elementwise.cu, channels.cu ----

void relu_forward(On on, float* y, const float* x, std::int64_t count);
void relu_backward(On on, float* dx, const float* dy, const float* y, std::int64_t count);
void activation_forward(On on, Activation kind, float* y, const float* x, std::int64_t count);
void activation_backward(On on, Activation kind, float* dx, const float* dy, const float* kept,
                         std::int64_t count);
void dropout(On on, float* y, const float* x, const std::uint64_t* keys, const DropoutShape& shape);
void accumulate(On on, float* acc, const float* g, float scale, std::int64_t count, Write write);
void to_channels_last(On on, float* y, const float* x, std::int64_t batch, std::int64_t channels,
                      std::int64_t pixels);
void to_channels_first(On on, float* y, const float* x, std::int64_t batch, std::int64_t channels,
                       std::int64_t pixels);

// ---- convert.cu ----

void convert(On on, void* to, DType to_type, const void* from, DType from_type, std::int64_t count);

// ---- encoding.cu ----

void encode(On on, const EncodingBuffers& buffers, const Encoding& encoding);

// ---- embedding.cu ----

void embedding_forward(On on, float* y, const float* tokens, ConstSlices weight,
                       const EmbeddingShape& shape);
void embedding_backward(On on, Slices dweight, const float* dy, const float* tokens,
                        const EmbeddingShape& shape);

// ---- positions.cu, attention.cu ----

void positions_forward(On on, float* y, const float* x, ConstSlices weight,
                       const PositionsShape& shape);
void positions_backward(On on, Slices dweight, const float* dy, const PositionsShape& shape);
/// For backward; forward needs no scratch.
std::size_t attention_scratch_bytes(const AttentionShape& shape);
void attention_forward(On on, float* y, float* log_sum, const float* x,
                       const AttentionShape& shape);
void attention_backward(On on, float* dx, const float* dy, const float* x, const float* y,
                        const float* log_sum, std::byte* scratch, const AttentionShape& shape);

// ---- losses.cu. `result`: host memory that the device can write. ----

void softmax_cross_entropy(On on, ClassLoss* result, float* dlogits, const float* logits,
                           const std::int32_t* labels, std::int64_t batch, std::int64_t classes,
                           float scale);
void sigmoid_cross_entropy(On on, ClassLoss* result, float* dy, const float* y, const float* t,
                           std::int64_t count, float scale);
void mean_squared_error(On on, ClassLoss* result, float* dy, const float* y, const float* t,
                        std::int64_t count, float scale);

// ---- update.cu, delay_correction.cu, finite.cu, squares.cu ----

void update(On on, const UpdateBuffers& buffers, const UpdateFormula& formula);
void correct_delay(On on, const DelayBuffers& buffers, const DelayFormula& formula);
/// Waits for the queue. `found`: host memory for the result that the device can write.
std::int64_t find_non_finite(On on, std::int64_t* found, const float* x, std::int64_t count);
/// The same.
double sum_of_squares(On on, double* found, const float* x, std::int64_t count);

}  // namespace leeway::kernels::cuda
