#include "tests/support/fake_gpu.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include "core/rng.hpp"
#include "tensor/blob_pool.hpp"

namespace leeway::test {

namespace {

constexpr int kFirstIndex = 90;

/// A position in a queue; set when the queue reaches it.
class Flag final : public Fence {
 public:
  void set() {
    std::lock_guard lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  void wait() const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return set_; });
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool set_ = false;
};

void wait_for(const std::vector<std::shared_ptr<const Fence>>& fences) {
  for (const auto& fence : fences) static_cast<const Flag&>(*fence).wait();
}

/// Memory of a fake device. It is never freed, because a queue may still use released blobs.
class FakePool final : public BlobPool {
 public:
  explicit FakePool(int index)
      : BlobPool({Device::Kind::cuda, index}, std::numeric_limits<std::size_t>::max() / 2, true) {}
  void read(std::byte* to, const Blob& blob) override {
    wait_for(blob.fences()->blocking(0, false));
    if (blob.size() > 0) std::memcpy(to, blob.data(), blob.size());
  }

 private:
  std::byte* system_allocate(std::size_t bytes) override {
    return static_cast<std::byte*>(::operator new (bytes, std::align_val_t{64}));
  }
  void system_free(std::byte* bytes) override { ::operator delete (bytes, std::align_val_t{64}); }
};

FakePool& pool_of(int index) {
  static std::mutex mutex;
  static auto& pools = *new std::map<int, FakePool*>;
  std::lock_guard lock(mutex);
  FakePool*& pool = pools[index];
  if (!pool) pool = new FakePool(index);
  return *pool;
}

QueueId next_queue() {
  static std::atomic<QueueId> last{0};
  return ++last;
}

/// A thread that runs work in order, with a CPU executor.
class Queue {
 public:
  using Work = std::function<void(Executor& cpu)>;

  explicit Queue(std::uint64_t seed) : rng_(seed), thread_([this] { serve(); }) {}
  ~Queue() {
    {
      std::lock_guard lock(mutex_);
      ending_ = true;
      held_ = false;
    }
    changed_.notify_all();
    thread_.join();
  }

  void add(Work work) {
    {
      std::lock_guard lock(mutex_);
      work_.push_back(std::move(work));
    }
    changed_.notify_all();
  }
  void hold(bool held) {
    {
      std::lock_guard lock(mutex_);
      held_ = held;
    }
    changed_.notify_all();
  }
  /// Rethrows the exception of a kernel, if any.
  void rethrow() {
    std::exception_ptr thrown;
    {
      std::lock_guard lock(mutex_);
      std::swap(thrown, thrown_);
    }
    if (thrown) std::rethrow_exception(thrown);
  }

 private:
  void serve() {
    const auto cpu = make_cpu_executor();
    while (auto work = next()) {
      if (rng_.one_in(4)) std::this_thread::sleep_for(std::chrono::microseconds(rng_.below(50)));
      try {
        (*work)(*cpu);
      } catch (...) {
        std::lock_guard lock(mutex_);
        thrown_ = std::current_exception();
      }
    }
  }
  std::optional<Work> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !held_ && (ending_ || !work_.empty()); });
    if (work_.empty()) return std::nullopt;
    Work work = std::move(work_.front());
    work_.pop_front();
    return work;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> work_;
  std::exception_ptr thrown_;
  bool held_ = false;
  bool ending_ = false;
  Rng rng_;  // used only by the thread
  std::thread thread_;
};

/// Copies the slices, because the caller does not wait and may free the list.
template <class T>
std::vector<RowSlice<T>> kept(std::span<const RowSlice<T>> slices) {
  return {slices.begin(), slices.end()};
}

class QueuedGpu final : public FakeGpu {
 public:
  QueuedGpu(int index, std::uint64_t seed) : pool_(pool_of(index)), queue_(seed) {}

  void hold() override { queue_.hold(true); }
  void release() override { queue_.hold(false); }
  Device device() const override { return pool_.device(); }

  // ---- memory ----

  Blob allocate(std::size_t bytes) override {
    Blob blob = pool_.take(bytes);
    begin_write(blob);
    queue_.add([to = blob.mutable_data(), bytes](Executor&) {
      std::memset(to, 0xff, bytes);  // NaN, as floats
    });
    return blob;
  }
  Blob allocate_host(std::size_t bytes) override { return Blob::allocate(bytes); }
  void upload(void* to, const void* from, std::size_t bytes) override { copy(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override { copy(to, from, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override {
    queue_.add([=](Executor& cpu) { cpu.copy(to, from, bytes); });
  }
  void zero(void* to, std::size_t bytes) override {
    queue_.add([=](Executor& cpu) { cpu.zero(to, bytes); });
  }

  // ---- order ----

  void begin_read(const Blob& blob) override { wait_in_queue(blob, false); }
  void end_read(const Blob& blob) override {
    if (blob.fences()) blob.fences()->read(id_, flag());
  }
  void begin_write(const Blob& blob) override { wait_in_queue(blob, true); }
  void end_write(const Blob& blob) override {
    if (blob.fences()) blob.fences()->wrote(id_, flag());
  }
  void mark() override { mark_ = flag(); }
  void wait_mark() override {
    if (mark_) mark_->wait();
    queue_.rethrow();
  }
  void synchronize() override {
    flag()->wait();
    queue_.rethrow();
  }

  // ---- kernels: layers ----

  void linear_forward(float* y, const float* x, kernels::ConstSlices weight,
                      kernels::ConstSlices bias, const kernels::LinearShape& shape) override {
    queue_.add([=, w = kept(weight), b = kept(bias)](Executor& cpu) {
      cpu.linear_forward(y, x, w, b, shape);
    });
  }
  void linear_backward(float* dx, kernels::Slices dweight, kernels::Slices dbias, const float* dy,
                       const float* x, kernels::ConstSlices weight,
                       const kernels::LinearShape& shape) override {
    queue_.add([=, dw = kept(dweight), db = kept(dbias), w = kept(weight)](Executor& cpu) {
      cpu.linear_backward(dx, dw, db, dy, x, w, shape);
    });
  }
  kernels::PackForm linear_half_form(const kernels::LinearShape& shape) override {
    return kernels::linear_half_form(shape);
  }
  void linear_half_pack(std::byte* packed, kernels::ConstSlices weight,
                        const kernels::LinearShape& shape) override {
    queue_.add([=, w = kept(weight)](Executor& cpu) { cpu.linear_half_pack(packed, w, shape); });
  }
  std::size_t linear_half_scratch_bytes(const kernels::LinearShape& shape) override {
    return kernels::linear_half_scratch_bytes(shape);
  }
  void linear_half_forward(float* y, const float* x, const std::byte* packed, const float* bias,
                           std::byte* scratch, const kernels::LinearShape& shape) override {
    queue_.add([=](Executor& cpu) { cpu.linear_half_forward(y, x, packed, bias, scratch, shape); });
  }
  void linear_half_backward(float* dx, kernels::Slices dweight, float* dbias, const float* dy,
                            const float* x, const std::byte* packed, std::byte* scratch,
                            const kernels::LinearShape& shape) override {
    queue_.add([=, dw = kept(dweight)](Executor& cpu) {
      cpu.linear_half_backward(dx, dw, dbias, dy, x, packed, scratch, shape);
    });
  }
  kernels::PackForm conv2d_form(const kernels::Conv2dShape& shape,
                                kernels::ConvPass pass) override {
    return facts_of(shape).form[pass == kernels::ConvPass::forward ? 0 : 1];
  }
  void conv2d_pack(std::byte* packed, kernels::ConstSlices weight,
                   const kernels::Conv2dShape& shape, kernels::ConvPass pass) override {
    queue_.add([=, w = kept(weight)](Executor& cpu) { cpu.conv2d_pack(packed, w, shape, pass); });
  }
  std::size_t conv2d_scratch_bytes(const kernels::Conv2dShape& shape) override {
    return facts_of(shape).scratch_bytes;
  }
  void conv2d_forward(float* y, const float* x, const std::byte* packed, const float* bias,
                      std::byte* scratch, const kernels::Conv2dShape& shape) override {
    queue_.add([=](Executor& cpu) { cpu.conv2d_forward(y, x, packed, bias, scratch, shape); });
  }
  void conv2d_backward(float* dx, kernels::Slices dweight, float* dbias, const float* dy,
                       const float* x, const std::byte* packed, std::byte* scratch,
                       const kernels::Conv2dShape& shape) override {
    queue_.add([=, dw = kept(dweight)](Executor& cpu) {
      cpu.conv2d_backward(dx, dw, dbias, dy, x, packed, scratch, shape);
    });
  }
  void max_pool2d_forward(float* y, std::uint8_t* from, const float* x,
                          const kernels::Pool2dShape& shape) override {
    queue_.add([=](Executor& cpu) { cpu.max_pool2d_forward(y, from, x, shape); });
  }
  void max_pool2d_backward(float* dx, const float* dy, const std::uint8_t* from,
                           const kernels::Pool2dShape& shape) override {
    queue_.add([=](Executor& cpu) { cpu.max_pool2d_backward(dx, dy, from, shape); });
  }
  void avg_pool2d_forward(float* y, const float* x, const kernels::Pool2dShape& shape) override {
    queue_.add([=](Executor& cpu) { cpu.avg_pool2d_forward(y, x, shape); });
  }
  void avg_pool2d_backward(float* dx, const float* dy, const kernels::Pool2dShape& shape) override {
    queue_.add([=](Executor& cpu) { cpu.avg_pool2d_backward(dx, dy, shape); });
  }
  void batch_norm_forward(float* y, float* mean, float* inv_std, const float* x, const float* gamma,
                          const float* beta, const kernels::NormShape& shape) override {
    queue_.add(
        [=](Executor& cpu) { cpu.batch_norm_forward(y, mean, inv_std, x, gamma, beta, shape); });
  }
  void batch_norm_inference(float* y, const float* x, const float* gamma, const float* beta,
                            const float* mean, const float* variance,
                            const kernels::NormShape& shape) override {
    queue_.add(
        [=](Executor& cpu) { cpu.batch_norm_inference(y, x, gamma, beta, mean, variance, shape); });
  }
  void batch_norm_statistics(float* batch_mean, float* batch_variance, const float* mean,
                             const float* inv_std, const kernels::NormShape& shape) override {
    queue_.add([=](Executor& cpu) {
      cpu.batch_norm_statistics(batch_mean, batch_variance, mean, inv_std, shape);
    });
  }
  void batch_norm_backward(float* dx, float* dgamma, float* dbeta, const float* dy, const float* x,
                           const float* mean, const float* inv_std, const float* gamma,
                           const kernels::NormShape& shape) override {
    queue_.add([=](Executor& cpu) {
      cpu.batch_norm_backward(dx, dgamma, dbeta, dy, x, mean, inv_std, gamma, shape);
    });
  }
  void layer_norm_forward(float* y, float* mean, float* inv_std, const float* x, const float* gamma,
                          const float* beta, const kernels::NormShape& shape) override {
    queue_.add(
        [=](Executor& cpu) { cpu.layer_norm_forward(y, mean, inv_std, x, gamma, beta, shape); });
  }
  void layer_norm_backward(float* dx, float* dgamma, float* dbeta, const float* dy, const float* x,
                           const float* mean, const float* inv_std, const float* gamma,
                           const kernels::NormShape& shape) override {
    queue_.add([=](Executor& cpu) {
      cpu.layer_norm_backward(dx, dgamma, dbeta, dy, x, mean, inv_std, gamma, shape);
    });
  }
  void relu_forward(float* y, const float* x, std::int64_t count) override {
    queue_.add([=](Executor& cpu) { cpu.relu_forward(y, x, count); });
  }
  void relu_backward(float* dx, const float* dy, const float* y, std::int64_t count) override {
    queue_.add([=](Executor& cpu) { cpu.relu_backward(dx, dy, y, count); });
  }
  void activation_forward(kernels::Activation kind, float* y, const float* x,
                          std::int64_t count) override {
    queue_.add([=](Executor& cpu) { cpu.activation_forward(kind, y, x, count); });
  }
  void activation_backward(kernels::Activation kind, float* dx, const float* dy,
                           const float* preserved, std::int64_t count) override {
    queue_.add([=](Executor& cpu) { cpu.activation_backward(kind, dx, dy, preserved, count); });
  }
  void dropout(float* y, const float* x, const std::uint64_t* keys,
               const kernels::DropoutShape& shape) override {
    queue_.add([=](Executor& cpu) { cpu.dropout(y, x, keys, shape); });
  }
  void embedding_forward(float* y, const float* tokens, kernels::ConstSlices weight,
                         const kernels::EmbeddingShape& shape) override {
    queue_.add(
        [=, w = kept(weight)](Executor& cpu) { cpu.embedding_forward(y, tokens, w, shape); });
  }
  void embedding_backward(kernels::Slices dweight, const float* dy, const float* tokens,
                          const kernels::EmbeddingShape& shape) override {
    queue_.add(
        [=, dw = kept(dweight)](Executor& cpu) { cpu.embedding_backward(dw, dy, tokens, shape); });
  }
  void positions_forward(float* y, const float* x, kernels::ConstSlices weight,
                         const kernels::PositionsShape& shape) override {
    queue_.add([=, w = kept(weight)](Executor& cpu) { cpu.positions_forward(y, x, w, shape); });
  }
  void positions_backward(kernels::Slices dweight, const float* dy,
                          const kernels::PositionsShape& shape) override {
    queue_.add([=, dw = kept(dweight)](Executor& cpu) { cpu.positions_backward(dw, dy, shape); });
  }
  std::size_t attention_scratch_bytes(const kernels::AttentionShape& shape) override {
    return kernels::attention_scratch_bytes(shape);
  }
  void attention_forward(float* y, float* log_sum, const float* x, std::byte* scratch,
                         const kernels::AttentionShape& shape) override {
    queue_.add([=](Executor& cpu) { cpu.attention_forward(y, log_sum, x, scratch, shape); });
  }
  void attention_backward(float* dx, const float* dy, const float* x, const float* y,
                          const float* log_sum, std::byte* scratch,
                          const kernels::AttentionShape& shape) override {
    queue_.add(
        [=](Executor& cpu) { cpu.attention_backward(dx, dy, x, y, log_sum, scratch, shape); });
  }
  void to_channels_last(float* y, const float* x, std::int64_t batch, std::int64_t channels,
                        std::int64_t pixels) override {
    queue_.add([=](Executor& cpu) { cpu.to_channels_last(y, x, batch, channels, pixels); });
  }
  void to_channels_first(float* y, const float* x, std::int64_t batch, std::int64_t channels,
                         std::int64_t pixels) override {
    queue_.add([=](Executor& cpu) { cpu.to_channels_first(y, x, batch, channels, pixels); });
  }

  // ---- kernels: losses, gradients, weights ----

  void softmax_cross_entropy(kernels::ClassLoss* result, float* dlogits, const float* logits,
                             const std::int32_t* labels, std::int64_t batch, std::int64_t classes,
                             float scale) override {
    queue_.add([=](Executor& cpu) {
      try {
        cpu.softmax_cross_entropy(result, dlogits, logits, labels, batch, classes, scale);
      } catch (const CheckFailed&) {  // a GPU cannot throw
        *result = {std::numeric_limits<double>::quiet_NaN(), 0};
      }
    });
  }
  void sigmoid_cross_entropy(kernels::ClassLoss* result, float* dy, const float* y, const float* t,
                             std::int64_t count, float scale) override {
    queue_.add([=](Executor& cpu) { cpu.sigmoid_cross_entropy(result, dy, y, t, count, scale); });
  }
  void mean_squared_error(kernels::ClassLoss* result, float* dy, const float* y, const float* t,
                          std::int64_t count, float scale) override {
    queue_.add([=](Executor& cpu) { cpu.mean_squared_error(result, dy, y, t, count, scale); });
  }
  void accumulate(float* acc, const float* g, float scale, std::int64_t count,
                  kernels::Write write) override {
    queue_.add([=](Executor& cpu) { cpu.accumulate(acc, g, scale, count, write); });
  }
  void convert(void* to, DType to_type, const void* from, DType from_type,
               std::int64_t count) override {
    queue_.add([=](Executor& cpu) { cpu.convert(to, to_type, from, from_type, count); });
  }
  void encode(const kernels::EncodingBuffers& buffers, const kernels::Encoding& encoding) override {
    queue_.add([=](Executor& cpu) { cpu.encode(buffers, encoding); });
  }
  void update(const kernels::UpdateBuffers& buffers,
              const kernels::UpdateFormula& formula) override {
    queue_.add([=](Executor& cpu) { cpu.update(buffers, formula); });
  }
  void correct_delay(const kernels::DelayBuffers& buffers,
                     const kernels::DelayFormula& formula) override {
    queue_.add([=](Executor& cpu) { cpu.correct_delay(buffers, formula); });
  }
  std::int64_t find_non_finite(const float* x, std::int64_t count) override {
    std::int64_t found = -1;
    queue_.add([&](Executor& cpu) { found = cpu.find_non_finite(x, count); });
    synchronize();
    return found;
  }
  double sum_of_squares(const float* x, std::int64_t count) override {
    double sum = 0;
    queue_.add([&](Executor& cpu) { sum = cpu.sum_of_squares(x, count); });
    synchronize();
    return sum;
  }

 private:
  /// Forms and scratch bytes of a convolution on the CPU, computed once per shape by the queue's
  /// thread, because they may depend on the thread.
  struct ConvFacts {
    kernels::Conv2dShape shape;
    kernels::PackForm form[2];
    std::size_t scratch_bytes = 0;
  };
  const ConvFacts& facts_of(const kernels::Conv2dShape& shape) {
    for (const auto& facts : conv_facts_)
      if (facts.shape == shape) return facts;
    ConvFacts facts{.shape = shape};
    queue_.add([&](Executor& cpu) {
      facts.form[0] = cpu.conv2d_form(shape, kernels::ConvPass::forward);
      facts.form[1] = cpu.conv2d_form(shape, kernels::ConvPass::backward);
      facts.scratch_bytes = cpu.conv2d_scratch_bytes(shape);
    });
    synchronize();
    return conv_facts_.emplace_back(facts);
  }

  /// Makes the queue, not the caller, wait for other queues that use `blob`.
  void wait_in_queue(const Blob& blob, bool also_readers) {
    if (!blob.fences()) return;
    LW_CHECK(blob.device() == device(), blob.device(), device());
    queue_.add(
        [fences = blob.fences()->blocking(id_, also_readers)](Executor&) { wait_for(fences); });
  }
  std::shared_ptr<const Flag> flag() {
    auto flag = std::make_shared<Flag>();
    queue_.add([flag](Executor&) { flag->set(); });
    return flag;
  }

  FakePool& pool_;
  const QueueId id_ = next_queue();
  std::shared_ptr<const Flag> mark_;
  std::deque<ConvFacts> conv_facts_;
  Queue queue_;  // last, so that its thread ends first
};

}  // namespace

std::shared_ptr<FakeGpu> make_fake_gpu(int index, std::uint64_t seed) {
  return std::make_shared<QueuedGpu>(kFirstIndex + index, seed);
}

}  // namespace leeway::test
