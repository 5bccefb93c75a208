#include "models/layers/attention.hpp"

#include "core/text.hpp"
#include "kernels/executor.hpp"

namespace leeway {

Expected<Shape> Attention::set_input(const Shape& input) {
  if (input.rank() != 2 || input[1] % 3 != 0)
    return Error{concat("got samples of shape ", input,
                        " and needs sequences of queries, keys and values side by side; put linear "
                        "with three times the features before it")};
  tokens_ = input[0];
  features_ = input[1] / 3;
  if (features_ % heads_ != 0)
    return Error{concat("has ", heads_, " heads, which do not divide its ", features_,
                        " features; give a number of heads that does")};
  constexpr std::int64_t kMax = kernels::AttentionShape::kMaxHeadFeatures;
  if (features_ / heads_ > kMax)
    return Error{concat("has ", features_ / heads_, " features per head, at most ", kMax,
                        " are allowed; give it at least ", (features_ + kMax - 1) / kMax,
                        " heads")};
  return Shape{tokens_, features_};
}

void Attention::forward(const ForwardArgs& args) const {
  args.on.attention_forward(args.y, reinterpret_cast<float*>(args.kept), args.x, args.scratch,
                            shape(args.batch));
}

void Attention::backward(const BackwardArgs& args) const {
  if (args.dx)
    args.on.attention_backward(args.dx, args.dy, args.x, args.y,
                               reinterpret_cast<const float*>(args.kept), args.scratch,
                               shape(args.batch));
}

}  // namespace leeway
