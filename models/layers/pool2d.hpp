#pragma once
// MaxPool2d and AvgPool2d: the largest, or the mean, of each window of an image.
#include "kernels/executor.hpp"
#include "models/layer.hpp"

namespace leeway {

class Pool2d : public Layer {
 public:
  /// Requires a stride of at least 1, and padding of at most half the kernel. A kernel of 0 covers
  /// the whole image.
  Pool2d(std::int64_t kernel, std::int64_t stride, std::int64_t padding)
      : kernel_(kernel), stride_(stride), padding_(padding) {}

  /// Requires images at least as large as the kernel.
  Expected<Shape> set_input(const Shape& input) final;
  bool backward_reads_output() const final { return false; }
  std::int64_t flops() const final { return outputs_ * shape_.kernel * shape_.kernel; }

 protected:
  kernels::Pool2dShape shape(std::int64_t batch) const {
    auto of = shape_;
    of.batch = batch;
    return of;
  }
  std::int64_t outputs_ = 0;  // elements of one output sample

 private:
  std::int64_t kernel_, stride_, padding_;
  kernels::Pool2dShape shape_;
};

class MaxPool2d final : public Pool2d {
 public:
  explicit MaxPool2d(const plan::MaxPool2d& spec)
      : Pool2d(spec.kernel, spec.stride, spec.padding) {}
  std::string_view kind() const override { return "max_pool2d"; }
  /// The position of each maximum in its window.
  std::size_t kept_bytes(std::int64_t batch) const override {
    return static_cast<std::size_t>(batch * outputs_);
  }
  void forward(const ForwardArgs& args) const override;
  void backward(const BackwardArgs& args) const override;
};

class AvgPool2d final : public Pool2d {
 public:
  explicit AvgPool2d(const plan::AvgPool2d& spec)
      : Pool2d(spec.kernel, spec.stride, spec.padding) {}
  std::string_view kind() const override { return "avg_pool2d"; }
  void forward(const ForwardArgs& args) const override;
  void backward(const BackwardArgs& args) const override;
};

}  // namespace leeway
