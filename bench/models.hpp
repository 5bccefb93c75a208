#pragma once
// The models of the benchmarks, by name; bench/peers/models.py has the same models in PyTorch.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/model.hpp"
#include "plan/precision.hpp"
#include "runtime/models.hpp"
#include "tensor/shape.hpp"

namespace leeway::bench {

struct Task {
  Shape input;
  std::vector<plan::Layer> layers;
  int classes = 10;
  std::int64_t labels = 1;  // per sample; if more than one, samples are tokens

  /// `precision`: as --precision.
  Expected<std::shared_ptr<const Model>> model(const std::string& precision = "fp32") const {
    const auto precisions = parse_precision(precision, layers);
    if (!precisions) return precisions.error();
    return Model::build(layers, plan::Loss::softmax_cross_entropy, input, classes, 0, labels, {},
                        *precisions);
  }
};

inline const std::map<std::string, Task>& tasks() {
  static const std::map<std::string, Task> all = {
      {"mlp", {{784}, mlp({512, 256}, 10)}},
      {"lenet", {{1, 28, 28}, lenet5(10)}},
      {"vgg", {{3, 32, 32}, vgg_like(10)}},
      {"resnet", {{3, 32, 32}, small_resnet(10)}},
      {"gpt", {{64}, gpt({.layers = 2, .width = 128, .heads = 4}), 65, 64}},
  };
  return all;
}

}  // namespace leeway::bench
