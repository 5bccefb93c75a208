#include <cstring>

#include "kernels/channels.hpp"
#include "kernels/executor.hpp"
#include "kernels/finite.hpp"
#include "kernels/mean_squared_error.hpp"
#include "kernels/relu.hpp"
#include "kernels/sigmoid_cross_entropy.hpp"
#include "kernels/squares.hpp"
#include "kernels/threads.hpp"

namespace leeway {

namespace {

/// Runs everything at once on the calling thread.
class CpuExecutor final : public Executor {
 public:
  Device device() const override { return {}; }

  Blob allocate(std::size_t bytes) override { return Blob::allocate(bytes); }
  Blob allocate_host(std::size_t bytes) override { return Blob::allocate(bytes); }
  void upload(void* to, const void* from, std::size_t bytes) override { copy(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override { copy(to, from, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes) std::memcpy(to, from, bytes);
  }
  void zero(void* to, std::size_t bytes) override {
    if (bytes) std::memset(to, 0, bytes);
  }

  void begin_read(const Blob&) override {}
  void end_read(const Blob&) override {}
  void begin_write(const Blob&) override {}
  void end_write(const Blob&) override {}
  void mark() override {}
  void wait_mark() override {}
  void synchronize() override {}

  void linear_forward(float* y, const float* x, kernels::ConstSlices weight,
                      kernels::ConstSlices bias, const kernels::LinearShape& shape) override {
    kernels::linear_forward(y, x, weight, bias, shape);
  }
  void linear_backward(float* dx, kernels::Slices dweight, kernels::Slices dbias, const float* dy,
                       const float* x, kernels::ConstSlices weight,
                       const kernels::LinearShape& shape) override {
    kernels::linear_backward(dx, dweight, dbias, dy, x, weight, shape);
  }
  kernels::PackForm linear_half_form(const kernels::LinearShape& shape) override {
    return kernels::linear_half_form(shape);
  }
  void linear_half_pack(std::byte* packed, kernels::ConstSlices weight,
                        const kernels::LinearShape& shape) override {
    kernels::linear_half_pack(packed, weight, shape);
  }
  std::size_t linear_half_scratch_bytes(const kernels::LinearShape& shape) override {
    return kernels::linear_half_scratch_bytes(shape);
  }
  void linear_half_forward(float* y, const float* x, const std::byte* packed, const float* bias,
                           std::byte* scratch, const kernels::LinearShape& shape) override {
    kernels::linear_half_forward(y, x, packed, bias, scratch, shape);
  }
  void linear_half_backward(float* dx, kernels::Slices dweight, float* dbias, const float* dy,
                            const float* x, const std::byte* packed, std::byte* scratch,
                            const kernels::LinearShape& shape) override {
    kernels::linear_half_backward(dx, dweight, dbias, dy, x, packed, scratch, shape);
  }
  kernels::PackForm conv2d_form(const kernels::Conv2dShape& shape,
                                kernels::ConvPass pass) override {
    return kernels::conv2d_form(shape, pass);
  }
  void conv2d_pack(std::byte* packed, kernels::ConstSlices weight,
                   const kernels::Conv2dShape& shape, kernels::ConvPass pass) override {
    kernels::conv2d_pack(packed, weight, shape, pass);
  }
  std::size_t conv2d_scratch_bytes(const kernels::Conv2dShape& shape) override {
    return kernels::conv2d_scratch_bytes(shape);
  }
  void conv2d_forward(float* y, const float* x, const std::byte* packed, const float* bias,
                      std::byte* scratch, const kernels::Conv2dShape& shape) override {
    kernels::conv2d_forward(y, x, packed, bias, scratch, shape);
  }
  void conv2d_backward(float* dx, kernels::Slices dweight, float* dbias, const float* dy,
                       const float* x, const std::byte* packed, std::byte* scratch,
                       const kernels::Conv2dShape& shape) override {
    kernels::conv2d_backward(dx, dweight, dbias, dy, x, packed, scratch, shape);
  }
  void max_pool2d_forward(float* y, std::uint8_t* from, const float* x,
                          const kernels::Pool2dShape& shape) override {
    kernels::max_pool2d_forward(y, from, x, shape);
  }
  void max_pool2d_backward(float* dx, const float* dy, const std::uint8_t* from,
                           const kernels::Pool2dShape& shape) override {
    kernels::max_pool2d_backward(dx, dy, from, shape);
  }
  void avg_pool2d_forward(float* y, const float* x, const kernels::Pool2dShape& shape) override {
    kernels::avg_pool2d_forward(y, x, shape);
  }
  void avg_pool2d_backward(float* dx, const float* dy, const kernels::Pool2dShape& shape) override {
    kernels::avg_pool2d_backward(dx, dy, shape);
  }
  void batch_norm_forward(float* y, float* mean, float* inv_std, const float* x, const float* gamma,
                          const float* beta, const kernels::NormShape& shape) override {
    kernels::batch_norm_forward(y, mean, inv_std, x, gamma, beta, shape);
  }
  void batch_norm_inference(float* y, const float* x, const float* gamma, const float* beta,
                            const float* mean, const float* variance,
                            const kernels::NormShape& shape) override {
    kernels::batch_norm_inference(y, x, gamma, beta, mean, variance, shape);
  }
  void batch_norm_statistics(float* batch_mean, float* batch_variance, const float* mean,
                             const float* inv_std, const kernels::NormShape& shape) override {
    kernels::batch_norm_statistics(batch_mean, batch_variance, mean, inv_std, shape);
  }
  void batch_norm_backward(float* dx, float* dgamma, float* dbeta, const float* dy, const float* x,
                           const float* mean, const float* inv_std, const float* gamma,
                           const kernels::NormShape& shape) override {
    kernels::batch_norm_backward(dx, dgamma, dbeta, dy, x, mean, inv_std, gamma, shape);
  }
  void layer_norm_forward(float* y, float* mean, float* inv_std, const float* x, const float* gamma,
                          const float* beta, const kernels::NormShape& shape) override {
    kernels::layer_norm_forward(y, mean, inv_std, x, gamma, beta, shape);
  }
  void layer_norm_backward(float* dx, float* dgamma, float* dbeta, const float* dy, const float* x,
                           const float* mean, const float* inv_std, const float* gamma,
                           const kernels::NormShape& shape) override {
    kernels::layer_norm_backward(dx, dgamma, dbeta, dy, x, mean, inv_std, gamma, shape);
  }
  void relu_forward(float* y, const float* x, std::int64_t count) override {
    kernels::relu_forward(y, x, count);
  }
  void relu_backward(float* dx, const float* dy, const float* y, std::int64_t count) override {
    kernels::relu_backward(dx, dy, y, count);
  }
  void activation_forward(kernels::Activation kind, float* y, const float* x,
                          std::int64_t count) override {
    kernels::activation_forward(kind, y, x, count);
  }
  void activation_backward(kernels::Activation kind, float* dx, const float* dy, const float* kept,
                           std::int64_t count) override {
    kernels::activation_backward(kind, dx, dy, kept, count);
  }
  void dropout(float* y, const float* x, const std::uint64_t* keys,
               const kernels::DropoutShape& shape) override {
    kernels::dropout(y, x, keys, shape);
  }
  void embedding_forward(float* y, const float* tokens, kernels::ConstSlices weight,
                         const kernels::EmbeddingShape& shape) override {
    kernels::embedding_forward(y, tokens, weight, shape);
  }
  void embedding_backward(kernels::Slices dweight, const float* dy, const float* tokens,
                          const kernels::EmbeddingShape& shape) override {
    kernels::embedding_backward(dweight, dy, tokens, shape);
  }
  void positions_forward(float* y, const float* x, kernels::ConstSlices weight,
                         const kernels::PositionsShape& shape) override {
    kernels::positions_forward(y, x, weight, shape);
  }
  void positions_backward(kernels::Slices dweight, const float* dy,
                          const kernels::PositionsShape& shape) override {
    kernels::positions_backward(dweight, dy, shape);
  }
  std::size_t attention_scratch_bytes(const kernels::AttentionShape& shape) override {
    return kernels::attention_scratch_bytes(shape);
  }
  void attention_forward(float* y, float* log_sum, const float* x, std::byte* scratch,
                         const kernels::AttentionShape& shape) override {
    kernels::attention_forward(y, log_sum, x, scratch, shape);
  }
  void attention_backward(float* dx, const float* dy, const float* x, const float* y,
                          const float* log_sum, std::byte* scratch,
                          const kernels::AttentionShape& shape) override {
    kernels::attention_backward(dx, dy, x, y, log_sum, scratch, shape);
  }
  void to_channels_last(float* y, const float* x, std::int64_t batch, std::int64_t channels,
                        std::int64_t pixels) override {
    kernels::to_channels_last(y, x, batch, channels, pixels);
  }
  void to_channels_first(float* y, const float* x, std::int64_t batch, std::int64_t channels,
                         std::int64_t pixels) override {
    kernels::to_channels_first(y, x, batch, channels, pixels);
  }
  void softmax_cross_entropy(kernels::ClassLoss* result, float* dlogits, const float* logits,
                             const std::int32_t* labels, std::int64_t batch, std::int64_t classes,
                             float scale) override {
    *result = kernels::softmax_cross_entropy(dlogits, logits, labels, batch, classes, scale);
  }
  void sigmoid_cross_entropy(kernels::ClassLoss* result, float* dy, const float* y, const float* t,
                             std::int64_t count, float scale) override {
    *result = kernels::sigmoid_cross_entropy(dy, y, t, count, scale);
  }
  void mean_squared_error(kernels::ClassLoss* result, float* dy, const float* y, const float* t,
                          std::int64_t count, float scale) override {
    *result = {kernels::mean_squared_error(dy, y, t, count, scale), 0};
  }
  void accumulate(float* acc, const float* g, float scale, std::int64_t count,
                  kernels::Write write) override {
    kernels::accumulate(acc, g, scale, count, write);
  }
  void convert(void* to, DType to_type, const void* from, DType from_type,
               std::int64_t count) override {
    kernels::convert(to, to_type, from, from_type, count);
  }
  void encode(const kernels::EncodingBuffers& buffers, const kernels::Encoding& encoding) override {
    kernels::encode(buffers, encoding);
  }
  void update(const kernels::UpdateBuffers& buffers,
              const kernels::UpdateFormula& formula) override {
    kernels::update(buffers, formula);
  }
  void correct_delay(const kernels::DelayBuffers& buffers,
                     const kernels::DelayFormula& formula) override {
    kernels::correct_delay(buffers, formula);
  }
  std::int64_t find_non_finite(const float* x, std::int64_t count) override {
    return kernels::find_non_finite(x, count);
  }
  double sum_of_squares(const float* x, std::int64_t count) override {
    return kernels::sum_of_squares(x, count);
  }
};

}  // namespace

std::unique_ptr<Executor> make_cpu_executor() {
  kernels::use_one_compute_thread();
  return std::make_unique<CpuExecutor>();
}

}  // namespace leeway
