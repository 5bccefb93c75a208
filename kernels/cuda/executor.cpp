#include "kernels/cuda/executor.hpp"

#include <atomic>
#include <memory>

#include "core/check.hpp"
#include "kernels/cuda/families.hpp"
#include "kernels/cuda/pool.hpp"

namespace leeway::kernels::cuda {

namespace {

/// The workspace that cuBLAS recommends for the newest GPUs, so that it never allocates.
constexpr std::size_t kBlasBytes = std::size_t{32} << 20;

QueueId next_queue() {
  static std::atomic<QueueId> last{0};
  return ++last;
}

/// A cuBLAS handle on one stream that computes entirely in single precision.
class Blas {
 public:
  Blas(cudaStream_t stream, std::byte* workspace) {
    LW_CUBLAS(cublasCreate(&handle_));
    // The stream first, because setting it resets the workspace.
    LW_CUBLAS(cublasSetStream(handle_, stream));
    LW_CUBLAS(cublasSetWorkspace(handle_, workspace, kBlasBytes));
    LW_CUBLAS(cublasSetMathMode(handle_, CUBLAS_DEFAULT_MATH));
    LW_CUBLAS(cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_HOST));
    LW_CUBLAS(cublasSetAtomicsMode(handle_, CUBLAS_ATOMICS_NOT_ALLOWED));
  }
  ~Blas() { cublasDestroy(handle_); }
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;
  cublasHandle_t get() const { return handle_; }

 private:
  cublasHandle_t handle_ = nullptr;
};

class CudaExecutor final : public Executor {
 public:
  explicit CudaExecutor(int index)
      : index_(used(index)),
        pool_(device_pool(index)),
        scratch_(pool_.take(On::kScratchBytes)),
        found_(pinned_pool().take(sizeof(std::int64_t))) {
    wait_for(scratch_, true);
  }
  ~CudaExecutor() override {
    drain();  // this executor's scratch memory has no fences
  }

  Device device() const override { return pool_.device(); }

  // ---- memory ----

  Blob allocate(std::size_t bytes) override {
    use_device(index_);
    Blob blob = pool_.take(bytes);
    wait_for(blob, true);
    return blob;
  }
  Blob allocate_host(std::size_t bytes) override {
    use_device(index_);
    return pinned_pool().take(bytes);
  }
  void upload(void* to, const void* from, std::size_t bytes) override {
    move(to, from, bytes, cudaMemcpyHostToDevice);
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    move(to, from, bytes, cudaMemcpyDeviceToHost);
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    move(to, from, bytes, cudaMemcpyDeviceToDevice);
  }
  void zero(void* to, std::size_t bytes) override {
    const On here = on();
    if (bytes > 0) LW_CUDA(cudaMemsetAsync(to, 0, bytes, here.stream));
  }

  // ---- order ----

  void begin_read(const Blob& blob) override {
    use_device(index_);
    wait_for(blob, false);
  }
  void end_read(const Blob& blob) override {
    if (blob.fences()) blob.fences()->read(id_, fence());
  }
  void begin_write(const Blob& blob) override {
    use_device(index_);
    wait_for(blob, true);
  }
  void end_write(const Blob& blob) override {
    if (blob.fences()) blob.fences()->wrote(id_, fence());
  }
  void mark() override { mark_ = fence(); }
  void wait_mark() override {
    use_device(index_);
    if (mark_) LW_CUDA(cudaEventSynchronize(mark_->get()));
  }
  void synchronize() override {
    use_device(index_);
    LW_CUDA(cudaStreamSynchronize(stream_.get()));
  }

  // ---- kernels: layers ----

  void linear_forward(float* y, const float* x, ConstSlices weight, ConstSlices bias,
                      const LinearShape& shape) override {
    cuda::linear_forward(on_with_blas(), y, x, weight, bias, shape);
  }
  void linear_backward(float* dx, Slices dweight, Slices dbias, const float* dy, const float* x,
                       ConstSlices weight, const LinearShape& shape) override {
    cuda::linear_backward(on_with_blas(), dx, dweight, dbias, dy, x, weight, shape);
  }
  PackForm linear_half_form(const LinearShape& shape) override {
    return cuda::linear_half_form(shape);
  }
  void linear_half_pack(std::byte* packed, ConstSlices weight, const LinearShape& shape) override {
    cuda::linear_half_pack(on(), packed, weight, shape);
  }
  std::size_t linear_half_scratch_bytes(const LinearShape& shape) override {
    return cuda::linear_half_scratch_bytes(shape);
  }
  void linear_half_forward(float* y, const float* x, const std::byte* packed, const float* bias,
                           std::byte* scratch, const LinearShape& shape) override {
    cuda::linear_half_forward(on_with_blas(), y, x, packed, bias, scratch, shape);
  }
  void linear_half_backward(float* dx, Slices dweight, float* dbias, const float* dy,
                            const float* x, const std::byte* packed, std::byte* scratch,
                            const LinearShape& shape) override {
    cuda::linear_half_backward(on_with_blas(), dx, dweight, dbias, dy, x, packed, scratch, shape);
  }
  PackForm conv2d_form(const Conv2dShape& shape, ConvPass) override {
    return cuda::conv2d_form(shape);
  }
  void conv2d_pack(std::byte* packed, ConstSlices weight, const Conv2dShape& shape,
                   ConvPass) override {
    cuda::conv2d_pack(on(), packed, weight, shape);
  }
  std::size_t conv2d_scratch_bytes(const Conv2dShape& shape) override {
    return cuda::conv2d_scratch_bytes(shape);
  }
  void conv2d_forward(float* y, const float* x, const std::byte* packed, const float* bias,
                      std::byte* scratch, const Conv2dShape& shape) override {
    cuda::conv2d_forward(on_with_blas(), y, x, packed, bias, scratch, shape);
  }
  void conv2d_backward(float* dx, Slices dweight, float* dbias, const float* dy, const float* x,
                       const std::byte* packed, std::byte* scratch,
                       const Conv2dShape& shape) override {
    cuda::conv2d_backward(on_with_blas(), dx, dweight, dbias, dy, x, packed, scratch, shape);
  }
  void max_pool2d_forward(float* y, std::uint8_t* from, const float* x,
                          const Pool2dShape& shape) override {
    cuda::max_pool2d_forward(on(), y, from, x, shape);
  }
  void max_pool2d_backward(float* dx, const float* dy, const std::uint8_t* from,
                           const Pool2dShape& shape) override {
    cuda::max_pool2d_backward(on(), dx, dy, from, shape);
  }
  void avg_pool2d_forward(float* y, const float* x, const Pool2dShape& shape) override {
    cuda::avg_pool2d_forward(on(), y, x, shape);
  }
  void avg_pool2d_backward(float* dx, const float* dy, const Pool2dShape& shape) override {
    cuda::avg_pool2d_backward(on(), dx, dy, shape);
  }
  void batch_norm_forward(float* y, float* mean, float* inv_std, const float* x, const float* gamma,
                          const float* beta, const NormShape& shape) override {
    cuda::batch_norm_forward(on(), y, mean, inv_std, x, gamma, beta, shape);
  }
  void batch_norm_inference(float* y, const float* x, const float* gamma, const float* beta,
                            const float* mean, const float* variance,
                            const NormShape& shape) override {
    cuda::batch_norm_inference(on(), y, x, gamma, beta, mean, variance, shape);
  }
  void batch_norm_statistics(float* batch_mean, float* batch_variance, const float* mean,
                             const float* inv_std, const NormShape& shape) override {
    cuda::batch_norm_statistics(on(), batch_mean, batch_variance, mean, inv_std, shape);
  }
  void batch_norm_backward(float* dx, float* dgamma, float* dbeta, const float* dy, const float* x,
                           const float* mean, const float* inv_std, const float* gamma,
                           const NormShape& shape) override {
    cuda::batch_norm_backward(on(), dx, dgamma, dbeta, dy, x, mean, inv_std, gamma, shape);
  }
  void layer_norm_forward(float* y, float* mean, float* inv_std, const float* x, const float* gamma,
                          const float* beta, const NormShape& shape) override {
    cuda::layer_norm_forward(on(), y, mean, inv_std, x, gamma, beta, shape);
  }
  void layer_norm_backward(float* dx, float* dgamma, float* dbeta, const float* dy, const float* x,
                           const float* mean, const float* inv_std, const float* gamma,
                           const NormShape& shape) override {
    cuda::layer_norm_backward(on(), dx, dgamma, dbeta, dy, x, mean, inv_std, gamma, shape);
  }
  void relu_forward(float* y, const float* x, std::int64_t count) override {
    cuda::relu_forward(on(), y, x, count);
  }
  void relu_backward(float* dx, const float* dy, const float* y, std::int64_t count) override {
    cuda::relu_backward(on(), dx, dy, y, count);
  }
  void activation_forward(Activation kind, float* y, const float* x, std::int64_t count) override {
    cuda::activation_forward(on(), kind, y, x, count);
  }
  void activation_backward(Activation kind, float* dx, const float* dy, const float* kept,
                           std::int64_t count) override {
    cuda::activation_backward(on(), kind, dx, dy, kept, count);
  }
  void dropout(float* y, const float* x, const std::uint64_t* keys,
               const DropoutShape& shape) override {
    cuda::dropout(on(), y, x, keys, shape);
  }
  void embedding_forward(float* y, const float* tokens, ConstSlices weight,
                         const EmbeddingShape& shape) override {
    cuda::embedding_forward(on(), y, tokens, weight, shape);
  }
  void embedding_backward(Slices dweight, const float* dy, const float* tokens,
                          const EmbeddingShape& shape) override {
    cuda::embedding_backward(on(), dweight, dy, tokens, shape);
  }
  void positions_forward(float* y, const float* x, ConstSlices weight,
                         const PositionsShape& shape) override {
    cuda::positions_forward(on(), y, x, weight, shape);
  }
  void positions_backward(Slices dweight, const float* dy, const PositionsShape& shape) override {
    cuda::positions_backward(on(), dweight, dy, shape);
  }
  std::size_t attention_scratch_bytes(const AttentionShape& shape) override {
    return cuda::attention_scratch_bytes(shape);
  }
  void attention_forward(float* y, float* log_sum, const float* x, std::byte*,
                         const AttentionShape& shape) override {
    cuda::attention_forward(on(), y, log_sum, x, shape);
  }
  void attention_backward(float* dx, const float* dy, const float* x, const float* y,
                          const float* log_sum, std::byte* scratch,
                          const AttentionShape& shape) override {
    cuda::attention_backward(on(), dx, dy, x, y, log_sum, scratch, shape);
  }
  void to_channels_last(float* y, const float* x, std::int64_t batch, std::int64_t channels,
                        std::int64_t pixels) override {
    cuda::to_channels_last(on(), y, x, batch, channels, pixels);
  }
  void to_channels_first(float* y, const float* x, std::int64_t batch, std::int64_t channels,
                         std::int64_t pixels) override {
    cuda::to_channels_first(on(), y, x, batch, channels, pixels);
  }

  // ---- kernels: losses, gradients, weights ----

  void softmax_cross_entropy(ClassLoss* result, float* dlogits, const float* logits,
                             const std::int32_t* labels, std::int64_t batch, std::int64_t classes,
                             float scale) override {
    cuda::softmax_cross_entropy(on(), result, dlogits, logits, labels, batch, classes, scale);
  }
  void sigmoid_cross_entropy(ClassLoss* result, float* dy, const float* y, const float* t,
                             std::int64_t count, float scale) override {
    cuda::sigmoid_cross_entropy(on(), result, dy, y, t, count, scale);
  }
  void mean_squared_error(ClassLoss* result, float* dy, const float* y, const float* t,
                          std::int64_t count, float scale) override {
    cuda::mean_squared_error(on(), result, dy, y, t, count, scale);
  }
  void accumulate(float* acc, const float* g, float scale, std::int64_t count,
                  Write write) override {
    cuda::accumulate(on(), acc, g, scale, count, write);
  }
  void convert(void* to, DType to_type, const void* from, DType from_type,
               std::int64_t count) override {
    cuda::convert(on(), to, to_type, from, from_type, count);
  }
  void encode(const EncodingBuffers& buffers, const Encoding& encoding) override {
    cuda::encode(on(), buffers, encoding);
  }
  void update(const UpdateBuffers& buffers, const UpdateFormula& formula) override {
    cuda::update(on(), buffers, formula);
  }
  void correct_delay(const DelayBuffers& buffers, const DelayFormula& formula) override {
    cuda::correct_delay(on(), buffers, formula);
  }
  std::int64_t find_non_finite(const float* x, std::int64_t count) override {
    return cuda::find_non_finite(on(), reinterpret_cast<std::int64_t*>(found_.mutable_data()), x,
                                 count);
  }
  double sum_of_squares(const float* x, std::int64_t count) override {
    return cuda::sum_of_squares(on(), reinterpret_cast<double*>(found_.mutable_data()), x, count);
  }

 private:
  static int used(int index) {
    use_device(index);
    return index;
  }

  /// The queue for new work; invalidates the fence at its end.
  On on() {
    use_device(index_);
    last_fence_.reset();
    return {stream_.get(), nullptr, scratch_.mutable_data()};
  }
  /// The queue for matrix products. Creates the cuBLAS handle on first use, because its workspace
  /// is large and many executors only update weights.
  On on_with_blas() {
    On here = on();
    if (!blas_) {
      blas_memory_ = pool_.take(kBlasBytes);
      wait_for(blas_memory_, true);
      blas_ = std::make_unique<Blas>(stream_.get(), blas_memory_.mutable_data());
    }
    here.blas = blas_->get();
    return here;
  }

  /// A fence at the end of the queue. One event serves all blobs until new work arrives.
  std::shared_ptr<const EventFence> fence() {
    use_device(index_);
    if (!last_fence_) last_fence_ = fence_after(index_, stream_.get());
    return last_fence_;
  }

  /// Makes the queue, not the caller, wait for other queues that write `blob`, and with
  /// `also_readers` for those that read it.
  void wait_for(const Blob& blob, bool also_readers) {
    if (!blob.fences()) return;
    LW_CHECK(blob.device() == device(), blob.device(), device());
    for (const auto& fence : blob.fences()->blocking(id_, also_readers)) {
      LW_CUDA(cudaStreamWaitEvent(stream_.get(), static_cast<const EventFence&>(*fence).get(), 0));
      last_fence_.reset();  // it does not cover this wait
    }
  }

  void move(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    const On here = on();
    if (bytes > 0) LW_CUDA(cudaMemcpyAsync(to, from, bytes, kind, here.stream));
  }

  const int index_;
  const QueueId id_ = next_queue();
  BlobPool& pool_;
  Stream stream_;
  Blob blas_memory_, scratch_, found_;
  std::unique_ptr<Blas> blas_;
  std::shared_ptr<const EventFence> last_fence_, mark_;
};

}  // namespace

std::shared_ptr<Executor> make_executor(int index) {
  return std::make_shared<CudaExecutor>(index);
}

}  // namespace leeway::kernels::cuda
