#include "cli/onnx_model.hpp"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/files.hpp"
#include "core/text.hpp"
#include "models/datasets/file.hpp"
#include "models/weights_metadata.hpp"
#include "runtime/trained/module_tree.hpp"

namespace leeway::cli {
namespace {

// Versions that ONNX 1.8 and later runtimes read.
constexpr std::int64_t kIrVersion = 7;
constexpr std::int64_t kOperatorSet = 13;

using Ints = std::vector<std::int64_t>;

/// A graph that grows node by node. Values are named by their producer.
class Graph {
 public:
  explicit Graph(onnx::GraphProto& graph) : graph_(graph) {}

  /// Adds a node with one output, and returns the output's name.
  std::string node(const std::string& op, std::vector<std::string> inputs,
                   const std::string& output = "") {
    onnx::NodeProto& node = *graph_.add_node();
    node.set_op_type(op);
    for (auto& input : inputs) node.add_input(std::move(input));
    const std::string name = output.empty() ? concat("v", ++values_) : output;
    node.add_output(name);
    latest_ = &node;
    return name;
  }
  /// Attributes of the latest node.
  void set(const char* name, std::int64_t value) {
    onnx::AttributeProto& attribute = add(name, onnx::AttributeProto::INT);
    attribute.set_i(value);
  }
  void set(const char* name, double value) {
    onnx::AttributeProto& attribute = add(name, onnx::AttributeProto::FLOAT);
    attribute.set_f(static_cast<float>(value));
  }
  void set(const char* name, const Ints& values) {
    onnx::AttributeProto& attribute = add(name, onnx::AttributeProto::INTS);
    for (const auto value : values) attribute.add_ints(value);
  }

  std::string floats(const std::string& name, const Shape& shape, const float* values) {
    return tensor(name, onnx::TensorProto::FLOAT, shape, values, sizeof(float));
  }
  std::string doubles(const std::string& name, const std::vector<double>& values) {
    return tensor(name, onnx::TensorProto::DOUBLE, Shape{std::ssize(values)}, values.data(),
                  sizeof(double));
  }
  std::string scalar(float value) { return floats(concat("c", ++values_), Shape{}, &value); }

 private:
  onnx::AttributeProto& add(const char* name, onnx::AttributeProto::AttributeType type) {
    onnx::AttributeProto& attribute = *latest_->add_attribute();
    attribute.set_name(name);
    attribute.set_type(type);
    return attribute;
  }
  std::string tensor(const std::string& name, onnx::TensorProto::DataType type, const Shape& shape,
                     const void* values, std::size_t size) {
    onnx::TensorProto& out = *graph_.add_initializer();
    out.set_name(name);
    out.set_data_type(type);
    for (const auto extent : shape.extents()) out.add_dims(extent);
    out.set_raw_data(values, static_cast<std::size_t>(shape.count()) * size);
    return name;
  }

  onnx::GraphProto& graph_;
  onnx::NodeProto* latest_ = nullptr;
  int values_ = 0;
};

/// Adds the layers of a model to a graph.
class LayerNodes {
 public:
  LayerNodes(const TrainedModel& trained, Graph& graph) : tree_(*trained.model), graph_(graph) {
    for (const auto& tensor : trained.weights)
      graph.floats(tensor.name, tensor.shape, tensor.data.as_floats());
  }

  /// Returns the value of the last layer. `path`: prefix of the names, "" or "3.body.".
  Expected<std::string> add(const std::vector<plan::Layer>& layers, const std::string& path,
                            std::string x) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      place_ = concat(path, i);
      auto y = std::visit(
          [&](const auto& layer) -> Value {
            if constexpr (requires { this->layer_node(layer, x); })
              return this->layer_node(layer, x);
            else
              return refuse("layers of this kind");
          },
          layers[i]);
      if (!y) return y;
      x = *y;
    }
    return x;
  }

 private:
  using Value = Expected<std::string>;

  std::string weight(const char* name) const { return concat(place_, '.', name); }

  Value refuse(const std::string& kind) const {
    return Error{
        concat("layer ", place_, " (", kind, ") is not exported to ONNX; give --torch instead")};
  }

  Value layer_node(const plan::Linear& of, const std::string& x) {
    if (tree_.input(place_).rank() == 1) {
      std::vector<std::string> inputs{x, weight("weight")};
      if (of.bias) inputs.push_back(weight("bias"));
      const std::string y = graph_.node("Gemm", std::move(inputs));
      graph_.set("transB", std::int64_t{1});
      return y;
    }
    const std::string bias = weight("bias");
    const std::string transposed = graph_.node("Transpose", {weight("weight")});
    graph_.set("perm", Ints{1, 0});
    const std::string y = graph_.node("MatMul", {x, transposed});
    return of.bias ? graph_.node("Add", {y, bias}) : y;
  }
  Value layer_node(const plan::Conv2d& of, const std::string& x) {
    std::vector<std::string> inputs{x, weight("weight")};
    if (of.bias) inputs.push_back(weight("bias"));
    const std::string y = graph_.node("Conv", std::move(inputs));
    set_windows(of);
    graph_.set("group", std::int64_t{of.groups});
    return y;
  }
  Value layer_node(const plan::MaxPool2d& of, const std::string& x) {
    const std::string y = graph_.node("MaxPool", {x});
    set_windows(of);
    return y;
  }
  Value layer_node(const plan::AvgPool2d& of, const std::string& x) {
    if (of.kernel == 0) return graph_.node("GlobalAveragePool", {x});
    const std::string y = graph_.node("AveragePool", {x});
    set_windows(of);
    graph_.set("count_include_pad", std::int64_t{1});
    return y;
  }
  Value layer_node(const plan::BatchNorm& of, const std::string& x) {
    const std::string y = graph_.node(
        "BatchNormalization",
        {x, weight("weight"), weight("bias"), weight("running_mean"), weight("running_var")});
    graph_.set("epsilon", of.epsilon);
    return y;
  }
  Value layer_node(const plan::LayerNorm& of, const std::string& x) {
    const auto mean = [&](const std::string& value) {
      const std::string result = graph_.node("ReduceMean", {value});
      graph_.set("axes", Ints{-1});
      return result;
    };
    const std::string centred = graph_.node("Sub", {x, mean(x)});
    const std::string variance = mean(graph_.node("Mul", {centred, centred}));
    const std::string epsilon = graph_.scalar(static_cast<float>(of.epsilon));
    const std::string deviation = graph_.node("Sqrt", {graph_.node("Add", {variance, epsilon})});
    const std::string scaled =
        graph_.node("Mul", {graph_.node("Div", {centred, deviation}), weight("weight")});
    return graph_.node("Add", {scaled, weight("bias")});
  }
  /// x / 2 * (1 + erf(x / sqrt(2)))
  Value layer_node(const plan::Gelu&, const std::string& x) {
    const std::string erf =
        graph_.node("Erf", {graph_.node("Mul", {x, graph_.scalar(0.70710678f)})});
    const std::string half = graph_.node("Mul", {x, graph_.scalar(0.5f)});
    return graph_.node("Mul", {half, graph_.node("Add", {erf, graph_.scalar(1.0f)})});
  }
  Value layer_node(const plan::Residual& of, const std::string& x) {
    const std::string here = place_;
    const auto body = add(of.body, here + ".body.", x);
    if (!body) return body;
    const auto shortcut = add(of.shortcut, here + ".shortcut.", x);
    if (!shortcut) return shortcut;
    return graph_.node("Add", {*body, *shortcut});
  }
  Value layer_node(const plan::Flatten&, const std::string& x) {
    return graph_.node("Flatten", {x});
  }
  Value layer_node(const plan::Relu&, const std::string& x) { return graph_.node("Relu", {x}); }
  Value layer_node(const plan::Tanh&, const std::string& x) { return graph_.node("Tanh", {x}); }
  Value layer_node(const plan::Sigmoid&, const std::string& x) {
    return graph_.node("Sigmoid", {x});
  }
  Value layer_node(const plan::Dropout&, const std::string& x) { return x; }
  Value layer_node(const plan::Embedding&, const std::string&) { return refuse("embedding"); }
  Value layer_node(const plan::Positions&, const std::string&) { return refuse("positions"); }
  Value layer_node(const plan::Attention&, const std::string&) { return refuse("attention"); }
  Value layer_node(const plan::Unembedding&, const std::string&) { return refuse("unembedding"); }
  Value layer_node(const plan::CustomLayer& of, const std::string&) {
    return Error{concat("layer ", place_, " (custom \"", of.name,
                        "\") is part of the scenario program, and ONNX lacks it; export a model "
                        "without custom layers")};
  }

  template <class Windows>
  void set_windows(const Windows& of) {
    const std::int64_t kernel = of.kernel, stride = of.stride, padding = of.padding;
    graph_.set("kernel_shape", Ints{kernel, kernel});
    graph_.set("strides", Ints{stride, stride});
    graph_.set("pads", Ints{padding, padding, padding, padding});
  }

  ModuleTree tree_;
  Graph& graph_;
  std::string place_;
};

/// Scales the raw numbers of a table or the pixels of an image, in double precision like Leeway.
Expected<std::string> add_preprocessing(Graph& graph, const Preprocessing& of,
                                        const std::string& input) {
  std::vector<double> mean{of.pixel_mean}, deviation{of.pixel_deviation}, fill;
  bool fills = false;
  if (of.kind == Preprocessing::Kind::table) {
    mean.clear();
    deviation.clear();
    for (const auto& column : of.columns) {
      if (column.is_text())
        return Error{concat("column ", excerpt(column.name),
                            " holds text, which is not exported to ONNX; give --torch instead")};
      mean.push_back(column.mean);
      deviation.push_back(column.deviation);
      fill.push_back(column.fill.value_or(std::numeric_limits<double>::quiet_NaN()));
      fills |= column.fill.has_value();
    }
  }
  const auto cast = [&](const std::string& x, onnx::TensorProto::DataType type) {
    const std::string y = graph.node("Cast", {x});
    graph.set("to", std::int64_t{type});
    return y;
  };
  std::string x = cast(input, onnx::TensorProto::DOUBLE);
  if (fills) {
    const std::string missing = graph.node("IsNaN", {x});
    x = graph.node("Where", {missing, graph.doubles("preprocessing.fill", fill), x});
  }
  x = graph.node("Sub", {x, graph.doubles("preprocessing.mean", mean)});
  x = graph.node("Div", {x, graph.doubles("preprocessing.deviation", deviation)});
  return cast(x, onnx::TensorProto::FLOAT);
}

/// The outputs' meaning, under the name of the result.
void add_answer(Graph& graph, const TrainedModel& trained, const std::string& y) {
  if (trained.plan.loss == plan::Loss::softmax_cross_entropy) {
    graph.node("Softmax", {y}, "probabilities");
    graph.set("axis", std::int64_t{-1});
    return;
  }
  std::string value = y;
  if (trained.plan.loss == plan::Loss::sigmoid_cross_entropy) value = graph.node("Sigmoid", {y});
  if (trained.classes() == 2) {
    const std::string other = graph.node("Sub", {graph.scalar(1.0f), value});
    graph.node("Concat", {other, value}, "probabilities");
    graph.set("axis", std::int64_t{-1});
    return;
  }
  const Preprocessing& of = *trained.preprocessing;
  value = graph.node("Mul", {value, graph.scalar(static_cast<float>(of.target_deviation))});
  graph.node("Add", {value, graph.scalar(static_cast<float>(of.target_mean))}, "prediction");
}

/// Declares a float tensor (N, shape).
void declare(onnx::ValueInfoProto& info, const std::string& name, const Shape& shape) {
  info.set_name(name);
  auto& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  type.mutable_shape()->add_dim()->set_dim_param("N");
  for (const auto extent : shape.extents()) type.mutable_shape()->add_dim()->set_dim_value(extent);
}

Status build(const TrainedModel& trained, onnx::ModelProto& model) {
  const Preprocessing* pre = trained.preprocessing.get();
  if (!pre)
    return Error{
        "the run was trained on data that its program makes, so it is unknown how raw "
        "input becomes its input; give --torch instead"};
  model.set_ir_version(kIrVersion);
  model.set_producer_name("Leeway");
  auto& operators = *model.add_opset_import();
  operators.set_domain("");
  operators.set_version(kOperatorSet);
  onnx::GraphProto& proto = *model.mutable_graph();
  proto.set_name(trained.plan.name);
  Graph graph(proto);
  LayerNodes layers(trained, graph);
  std::string x = "x";
  if (!trained.is_text()) {
    const auto scaled = add_preprocessing(graph, *pre, x);
    if (!scaled) return scaled.error();
    x = *scaled;
  }
  const auto y = layers.add(trained.plan.model, "", x);
  if (!y) return y.error();
  add_answer(graph, trained, *y);
  const bool columns = pre->kind == Preprocessing::Kind::table;
  declare(*proto.add_input(), "x", columns ? Shape{std::ssize(pre->columns)} : pre->shape);
  const bool classes = trained.classes() > 0;
  declare(*proto.add_output(), classes ? "probabilities" : "prediction",
          classes ? Shape{trained.classes()} : trained.model->output());
  auto& about = *model.add_metadata_props();
  about.set_key(kPreprocessingKey);
  about.set_value(pre->to_json());
  return {};
}

}  // namespace

Status write_onnx(const TrainedModel& trained, const std::string& path) {
  onnx::ModelProto model;
  if (const Status built = build(trained, model); !built)
    return Error{concat(trained.path, ": ", built.error().text)};
  std::string bytes;
  if (!model.SerializeToString(&bytes))
    return Error{
        concat(trained.path, ": the model is larger than the 2 GB of an ONNX file; give --torch")};
  return write_durably(disk(), path, bytes);
}

}  // namespace leeway::cli
