#pragma once
// Positions: learned position embeddings. Adds row t of "weight" (T, D) to token t of a sample
// (T, D).
#include "core/text.hpp"
#include "kernels/executor.hpp"
#include "models/layer.hpp"

namespace leeway {

class Positions final : public Layer {
 public:
  explicit Positions(const plan::Positions& spec) : spec_(spec) {}

  std::string_view kind() const override { return "positions"; }
  Expected<Shape> set_input(const Shape& input) override {
    if (input.rank() != 2)
      return Error{concat("got samples of shape ", input,
                          " and needs sequences; put it after an embedding")};
    tokens_ = input[0];
    features_ = input[1];
    return input;
  }
  std::vector<ParameterSpec> parameters() const override {
    return {{"weight", Shape{tokens_, features_}, spec_.init, features_, features_, 0,
             spec_.deviation}};
  }
  bool in_place() const override { return true; }
  bool backward_reads_output() const override { return false; }
  std::int64_t flops() const override { return tokens_ * features_; }
  void forward(const ForwardArgs& args) const override {
    args.on.positions_forward(args.y, args.x, args.weights[0], shape(args.batch));
  }
  void backward(const BackwardArgs& args) const override {
    args.on.positions_backward(args.gradients[0], args.dy, shape(args.batch));
    if (args.dx && args.dx != args.dy)
      args.on.copy(args.dx, args.dy,
                   static_cast<std::size_t>(args.batch * tokens_ * features_) * sizeof(float));
  }

 private:
  kernels::PositionsShape shape(std::int64_t batch) const { return {batch, tokens_, features_}; }

  plan::Positions spec_;
  std::int64_t tokens_ = 0, features_ = 0;  // T, D
};

}  // namespace leeway
