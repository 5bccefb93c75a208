#pragma once
// Executor: runs kernels in an ordered queue on one device.
//
// Work runs in the order of the calls. On the CPU it is done on the calling thread before the call
// returns. On a GPU a call may return earlier: the host reads results after synchronize(), and
// executors that share a blob declare when they begin and end to use it. An executor serves one
// thread at a time. The headers of the kernels document them. Pointers refer to memory of the
// executor's device unless stated otherwise.
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>

#include "core/expected.hpp"
#include "kernels/accumulate.hpp"
#include "kernels/activation.hpp"
#include "kernels/attention.hpp"
#include "kernels/batch_norm.hpp"
#include "kernels/conv2d.hpp"
#include "kernels/convert.hpp"
#include "kernels/delay_correction.hpp"
#include "kernels/dropout.hpp"
#include "kernels/embedding.hpp"
#include "kernels/encoding.hpp"
#include "kernels/layer_norm.hpp"
#include "kernels/linear_half.hpp"
#include "kernels/pool2d.hpp"
#include "kernels/positions.hpp"
#include "kernels/softmax_cross_entropy.hpp"
#include "kernels/update.hpp"
#include "tensor/blob.hpp"

namespace leeway {

class Executor {
 public:
  virtual ~Executor() = default;
  virtual Device device() const = 0;

  // ---- memory ----

  /// Uninitialised memory of the device, from its pool. This executor may write it at once.
  virtual Blob allocate(std::size_t bytes) = 0;
  Blob floats(std::int64_t count) {
    return allocate(static_cast<std::size_t>(count) * sizeof(float));
  }
  /// Floats of one value, which any executor can read.
  Blob filled(std::int64_t count, float value);
  /// Host memory for fast transfers; kernels can write losses into it.
  virtual Blob allocate_host(std::size_t bytes) = 0;
  /// Host to device. Requires that `from` does not change until the queue has done the copy.
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  /// Device to host. `to` is complete when the queue has done the copy.
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;
  /// Within the device.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual void zero(void* to, std::size_t bytes) = 0;
  /// `blob`, or a copy of it on this executor's device if it lies on another device.
  Blob fetch(const Blob& blob);

  // ---- order ----

  /// Later work reads `blob`, after all earlier writes of other executors. end_read ends the reads.
  virtual void begin_read(const Blob& blob) = 0;
  virtual void end_read(const Blob& blob) = 0;
  /// Later work writes `blob`, after all earlier reads and writes of other executors. end_write
  /// lets others use it.
  virtual void begin_write(const Blob& blob) = 0;
  virtual void end_write(const Blob& blob) = 0;
  /// Marks this position of the queue. wait_mark returns when all work before the last mark is
  /// done.
  virtual void mark() = 0;
  virtual void wait_mark() = 0;
  /// Returns when all work is done.
  virtual void synchronize() = 0;
  /// synchronize() without its exception, for destructors: the next call reports a failed device.
  void drain() noexcept {
    try {
      synchronize();
    } catch (const std::exception&) {
    }
  }

  // ---- kernels: layers ----

  virtual void linear_forward(float* y, const float* x, kernels::ConstSlices weight,
                              kernels::ConstSlices bias, const kernels::LinearShape& shape) = 0;
  virtual void linear_backward(float* dx, kernels::Slices dweight, kernels::Slices dbias,
                               const float* dy, const float* x, kernels::ConstSlices weight,
                               const kernels::LinearShape& shape) = 0;
  virtual kernels::PackForm linear_half_form(const kernels::LinearShape& shape) = 0;
  virtual void linear_half_pack(std::byte* packed, kernels::ConstSlices weight,
                                const kernels::LinearShape& shape) = 0;
  virtual std::size_t linear_half_scratch_bytes(const kernels::LinearShape& shape) = 0;
  virtual void linear_half_forward(float* y, const float* x, const std::byte* packed,
                                   const float* bias, std::byte* scratch,
                                   const kernels::LinearShape& shape) = 0;
  virtual void linear_half_backward(float* dx, kernels::Slices dweight, float* dbias,
                                    const float* dy, const float* x, const std::byte* packed,
                                    std::byte* scratch, const kernels::LinearShape& shape) = 0;
  virtual kernels::PackForm conv2d_form(const kernels::Conv2dShape& shape,
                                        kernels::ConvPass pass) = 0;
  virtual void conv2d_pack(std::byte* packed, kernels::ConstSlices weight,
                           const kernels::Conv2dShape& shape, kernels::ConvPass pass) = 0;
  /// Bytes of scratch for forward or backward, whichever needs more.
  virtual std::size_t conv2d_scratch_bytes(const kernels::Conv2dShape& shape) = 0;
  virtual void conv2d_forward(float* y, const float* x, const std::byte* packed, const float* bias,
                              std::byte* scratch, const kernels::Conv2dShape& shape) = 0;
  virtual void conv2d_backward(float* dx, kernels::Slices dweight, float* dbias, const float* dy,
                               const float* x, const std::byte* packed, std::byte* scratch,
                               const kernels::Conv2dShape& shape) = 0;
  virtual void max_pool2d_forward(float* y, std::uint8_t* from, const float* x,
                                  const kernels::Pool2dShape& shape) = 0;
  virtual void max_pool2d_backward(float* dx, const float* dy, const std::uint8_t* from,
                                   const kernels::Pool2dShape& shape) = 0;
  virtual void avg_pool2d_forward(float* y, const float* x, const kernels::Pool2dShape& shape) = 0;
  virtual void avg_pool2d_backward(float* dx, const float* dy,
                                   const kernels::Pool2dShape& shape) = 0;
  virtual void batch_norm_forward(float* y, float* mean, float* inv_std, const float* x,
                                  const float* gamma, const float* beta,
                                  const kernels::NormShape& shape) = 0;
  virtual void batch_norm_inference(float* y, const float* x, const float* gamma, const float* beta,
                                    const float* mean, const float* variance,
                                    const kernels::NormShape& shape) = 0;
  virtual void batch_norm_statistics(float* batch_mean, float* batch_variance, const float* mean,
                                     const float* inv_std, const kernels::NormShape& shape) = 0;
  virtual void batch_norm_backward(float* dx, float* dgamma, float* dbeta, const float* dy,
                                   const float* x, const float* mean, const float* inv_std,
                                   const float* gamma, const kernels::NormShape& shape) = 0;
  virtual void layer_norm_forward(float* y, float* mean, float* inv_std, const float* x,
                                  const float* gamma, const float* beta,
                                  const kernels::NormShape& shape) = 0;
  virtual void layer_norm_backward(float* dx, float* dgamma, float* dbeta, const float* dy,
                                   const float* x, const float* mean, const float* inv_std,
                                   const float* gamma, const kernels::NormShape& shape) = 0;
  virtual void relu_forward(float* y, const float* x, std::int64_t count) = 0;
  virtual void relu_backward(float* dx, const float* dy, const float* y, std::int64_t count) = 0;
  virtual void activation_forward(kernels::Activation kind, float* y, const float* x,
                                  std::int64_t count) = 0;
  virtual void activation_backward(kernels::Activation kind, float* dx, const float* dy,
                                   const float* kept, std::int64_t count) = 0;
  virtual void dropout(float* y, const float* x, const std::uint64_t* keys,
                       const kernels::DropoutShape& shape) = 0;
  virtual void embedding_forward(float* y, const float* tokens, kernels::ConstSlices weight,
                                 const kernels::EmbeddingShape& shape) = 0;
  virtual void embedding_backward(kernels::Slices dweight, const float* dy, const float* tokens,
                                  const kernels::EmbeddingShape& shape) = 0;
  virtual void positions_forward(float* y, const float* x, kernels::ConstSlices weight,
                                 const kernels::PositionsShape& shape) = 0;
  virtual void positions_backward(kernels::Slices dweight, const float* dy,
                                  const kernels::PositionsShape& shape) = 0;
  /// Bytes of scratch for forward or backward, whichever needs more.
  virtual std::size_t attention_scratch_bytes(const kernels::AttentionShape& shape) = 0;
  virtual void attention_forward(float* y, float* log_sum, const float* x, std::byte* scratch,
                                 const kernels::AttentionShape& shape) = 0;
  virtual void attention_backward(float* dx, const float* dy, const float* x, const float* y,
                                  const float* log_sum, std::byte* scratch,
                                  const kernels::AttentionShape& shape) = 0;
  virtual void to_channels_last(float* y, const float* x, std::int64_t batch, std::int64_t channels,
                                std::int64_t pixels) = 0;
  virtual void to_channels_first(float* y, const float* x, std::int64_t batch,
                                 std::int64_t channels, std::int64_t pixels) = 0;

  // ---- kernels: losses. `result` is memory of allocate_host and holds the loss when the queue has
  // computed it. `scale` multiplies the gradient, not the loss. An invalid label makes the loss NaN
  // on a GPU and throws on the CPU. ----

  virtual void softmax_cross_entropy(kernels::ClassLoss* result, float* dlogits,
                                     const float* logits, const std::int32_t* labels,
                                     std::int64_t batch, std::int64_t classes, float scale) = 0;
  virtual void sigmoid_cross_entropy(kernels::ClassLoss* result, float* dy, const float* y,
                                     const float* t, std::int64_t count, float scale) = 0;
  virtual void mean_squared_error(kernels::ClassLoss* result, float* dy, const float* y,
                                  const float* t, std::int64_t count, float scale) = 0;

  // ---- kernels: gradients and weights ----

  virtual void accumulate(float* acc, const float* g, float scale, std::int64_t count,
                          kernels::Write write) = 0;
  virtual void convert(void* to, DType to_type, const void* from, DType from_type,
                       std::int64_t count) = 0;
  virtual void encode(const kernels::EncodingBuffers& buffers,
                      const kernels::Encoding& encoding) = 0;
  virtual void update(const kernels::UpdateBuffers& buffers,
                      const kernels::UpdateFormula& formula) = 0;
  virtual void correct_delay(const kernels::DelayBuffers& buffers,
                             const kernels::DelayFormula& formula) = 0;
  /// Waits for the queue.
  virtual std::int64_t find_non_finite(const float* x, std::int64_t count) = 0;
  /// Waits for the queue.
  virtual double sum_of_squares(const float* x, std::int64_t count) = 0;
};

/// A CPU executor for the calling thread (see threads.hpp).
std::unique_ptr<Executor> make_cpu_executor();

}  // namespace leeway
