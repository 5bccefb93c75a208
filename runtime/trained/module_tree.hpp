#pragma once
// ModuleTree: a model's layers as nested lists, with the shapes that other frameworks ask for.
#include <map>
#include <string>

#include "core/text.hpp"
#include "runtime/trained/model.hpp"

namespace leeway {

class ModuleTree {
 public:
  explicit ModuleTree(const Model& model) : model_(model) {
    for (int i = 0; i < model.layers(); ++i) {
      // "layer 3.body.0 (conv2d)"
      const std::string name = model.layer_name(i);
      const std::size_t begin = name.find(' ') + 1;
      index_of_[name.substr(begin, name.find(' ', begin) - begin)] = i;
    }
    for (const auto& parameter : model.parameters()) shapes_[parameter.name] = parameter.spec.shape;
  }

  /// Shape of one sample that the layer at this path ("3.body.0") reads.
  const Shape& input(const std::string& path) const {
    return model_.output_of(model_.input_of(index_of_.at(path)));
  }
  const Shape& output(const std::string& path) const {
    return model_.output_of(index_of_.at(path));
  }
  const Shape& shape(const std::string& parameter) const { return shapes_.at(parameter); }

 private:
  const Model& model_;
  std::map<std::string, int> index_of_;
  std::map<std::string, Shape> shapes_;
};

}  // namespace leeway
