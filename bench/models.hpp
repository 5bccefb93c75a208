#pragma once
// The models that benchmarks train, by name; bench/peers/models.py has them in PyTorch.
#include <map>
#include <string>
#include <vector>

#include "runtime/models.hpp"
#include "tensor/shape.hpp"

namespace leeway::bench {

struct Task {
  Shape input;
  std::vector<plan::Layer> layers;
};

inline const std::map<std::string, Task>& tasks() {
  static const std::map<std::string, Task> all = {
      {"mlp", {{784}, mlp({512, 256}, 10)}},
      {"lenet", {{1, 28, 28}, lenet5(10)}},
      {"vgg", {{3, 32, 32}, vgg_like(10)}},
      {"resnet", {{3, 32, 32}, small_resnet(10)}},
  };
  return all;
}

}  // namespace leeway::bench
