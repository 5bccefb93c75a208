#pragma once
// Executors under test and arrays in their memory, so that one test covers all devices.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kernels/executors.hpp"
#include "tests/kernels/support.hpp"

namespace leeway::test {

struct NamedExecutor {
  std::string name;
  std::shared_ptr<Executor> executor;
};

/// One executor for each kind of device that this machine has or that LEEWAY_CUDA_MODULE emulates.
inline std::vector<NamedExecutor> executors() {
  std::vector<NamedExecutor> all;
  all.push_back({"cpu", make_cpu_executor()});
  if (cuda_unavailable().empty()) {
    auto cuda = make_executor({Device::Kind::cuda, 0});
    REQUIRE(cuda);
    all.push_back({"cuda", *cuda});
  }
  return all;
}

/// Calls f(executor) for each executor; a failure names it.
template <class F>
void for_each_executor(F f) {
  for (const auto& [name, executor] : executors()) {
    CAPTURE(name);
    f(*executor);
  }
}

/// An array in an executor's memory between guards. The destructor fails the test if a kernel wrote
/// into a guard. Only this executor may use it, so it needs no fences.
template <class T>
class Array {
 public:
  Array(Executor& executor, const std::vector<T>& values)
      : executor_(&executor),
        count_(values.size()),
        blob_(executor.allocate(kGuard + values.size() * sizeof(T) + kGuard)) {
    std::vector<std::byte> all(blob_.size(), kUntouched);
    if (count_ > 0) std::memcpy(all.data() + kGuard, values.data(), count_ * sizeof(T));
    executor.upload(blob_.mutable_data(), all.data(), all.size());
    executor.synchronize();
  }
  Array(Array&&) = default;
  ~Array() {
    if (blob_) CHECK(guards_are_untouched());
  }
  /// Sets all bits: NaN in floats, which reveals elements that a kernel does not write.
  static Array poisoned(Executor& executor, std::int64_t count) {
    std::vector<T> values(static_cast<std::size_t>(count));
    if (count > 0) std::memset(static_cast<void*>(values.data()), 0xff, values.size() * sizeof(T));
    return Array(executor, values);
  }

  T* data() { return reinterpret_cast<T*>(blob_.mutable_data() + kGuard); }
  const T* data() const { return reinterpret_cast<const T*>(blob_.data() + kGuard); }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    executor_->download(values.data(), data(), count_ * sizeof(T));
    executor_->synchronize();
    return values;
  }

 private:
  static constexpr std::size_t kGuard = 256;  // bytes; keeps the numbers aligned
  static constexpr std::byte kUntouched{0xa5};

  bool guards_are_untouched() const {
    std::vector<std::byte> all(blob_.size());
    executor_->download(all.data(), blob_.data(), all.size());
    executor_->synchronize();
    const auto untouched = [](std::byte byte) { return byte == kUntouched; };
    return std::all_of(all.begin(), all.begin() + kGuard, untouched) &&
           std::all_of(all.end() - kGuard, all.end(), untouched);
  }

  Executor* executor_;
  std::size_t count_;
  Blob blob_;
};

/// A parameter in an executor's memory, split at random rows by `rng`, or whole if it is null.
template <class T>
class SlicedArray {
 public:
  SlicedArray(Executor& executor, const Floats& whole, std::int64_t rows, std::int64_t row_floats,
              Rng* rng) {
    const auto split = RandomSlices<T>::of(whole, rows, row_floats, rng);
    for (const Floats& part : split.memory) memory_.emplace_back(executor, part);
    slices_ = split.slices;
    for (std::size_t i = 0; i < slices_.size(); ++i) slices_[i].data = memory_[i].data();
  }

  std::span<const RowSlice<T>> slices() const { return slices_; }
  Floats read() const {
    Floats all;
    for (const auto& part : memory_) {
      const Floats values = part.read();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

 private:
  std::vector<Array<float>> memory_;
  std::vector<RowSlice<T>> slices_;
};

/// Host memory for a loss.
class LossResult {
 public:
  explicit LossResult(Executor& executor)
      : executor_(&executor), blob_(executor.allocate_host(sizeof(kernels::ClassLoss))) {
    new (blob_.mutable_data()) kernels::ClassLoss{-1, -1};
  }
  kernels::ClassLoss* data() { return reinterpret_cast<kernels::ClassLoss*>(blob_.mutable_data()); }
  kernels::ClassLoss read() {
    executor_->synchronize();
    return *data();
  }

 private:
  Executor* executor_;
  Blob blob_;
};

}  // namespace leeway::test
