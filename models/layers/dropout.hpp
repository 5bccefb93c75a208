#pragma once
// Dropout: in training, zeroes elements at random and scales up the others; in evaluation, the
// identity.
#include "core/check.hpp"
#include "kernels/executor.hpp"
#include "models/layer.hpp"

namespace leeway {

class Dropout final : public Layer {
 public:
  /// `salt` gives each dropout layer of a model its own mask. Requires 0 <= probability < 1.
  Dropout(const plan::Dropout& spec, std::uint32_t salt) : spec_(spec), salt_(salt) {}

  std::string_view kind() const override { return "dropout"; }
  Expected<Shape> set_input(const Shape& input) override {
    count_ = input.count();
    return input;
  }
  bool in_place() const override { return true; }
  bool backward_reads_output() const override { return false; }
  std::int64_t flops() const override { return count_; }
  void forward(const ForwardArgs& args) const override {
    if (args.training) {
      LW_CHECK(args.sample_keys || args.batch == 0, "dropout draws by sample keys");
      args.on.dropout(args.y, args.x, args.sample_keys, shape(args.batch));
    } else if (args.y != args.x) {
      args.on.copy(args.y, args.x, static_cast<std::size_t>(args.batch * count_) * sizeof(float));
    }
  }
  void backward(const BackwardArgs& args) const override {
    if (args.dx) args.on.dropout(args.dx, args.dy, args.sample_keys, shape(args.batch));
  }

 private:
  kernels::DropoutShape shape(std::int64_t batch) const {
    return {batch, count_, static_cast<float>(spec_.probability), salt_};
  }

  plan::Dropout spec_;
  std::uint32_t salt_;
  std::int64_t count_ = 0;
};

}  // namespace leeway
