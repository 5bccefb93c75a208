// Writes weights, one batch, its logits and all gradients of a model to a safetensors file, which
// bench/peers/same_answers.py compares with PyTorch.
//
//   answers MODEL FILE [--device cpu] [--precision fp32]
#include <CLI/CLI.hpp>
#include <cstdio>

#include "bench/models.hpp"
#include "bench/random_samples.hpp"
#include "core/limits.hpp"
#include "kernels/executors.hpp"
#include "models/layout.hpp"
#include "models/pass.hpp"
#include "models/safetensors.hpp"

namespace {

using namespace leeway;

constexpr std::int64_t kBatch = 16;

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "answers: %s\n", why.c_str());
  std::exit(2);
}

NamedTensor tensor(std::string name, const Shape& shape, const float* values) {
  NamedTensor made{std::move(name), shape, DType::f32, Blob::floats(shape.count())};
  std::copy_n(values, shape.count(), made.data.mutable_floats());
  return made;
}

std::vector<NamedTensor> answers(const bench::Task& task, const std::string& precision,
                                 std::shared_ptr<Executor> on) {
  const auto built = task.model(precision);
  if (!built) fail(built.error().text);
  const Model& model = **built;
  const bench::RandomSamples data(task, kBatch);
  std::vector<NamedTensor> all;
  std::vector<Blob> weights, gradients;
  std::vector<RowSlice<const float>> weight_slices;
  std::vector<RowSlice<float>> gradient_slices;
  for (const auto& parameter : model.parameters()) {
    const Shape& shape = parameter.spec.shape;
    std::vector<float> values(static_cast<std::size_t>(shape.count()));
    model.initialize(static_cast<int>(weights.size()), 1, values.data());
    all.push_back(tensor(parameter.name, shape, values.data()));
    weights.push_back(on->fetch(all.back().data));
    gradients.push_back(on->floats(shape.count()));
    weight_slices.push_back({0, shape.rows(), weights.back().as_floats()});
    gradient_slices.push_back({0, shape.rows(), gradients.back().mutable_floats()});
  }
  std::vector<ParameterView> weight_views;
  std::vector<GradientView> gradient_views;
  for (const auto& slice : weight_slices) weight_views.push_back({&slice, 1});
  for (const auto& slice : gradient_slices) gradient_views.push_back({&slice, 1});

  Pass pass(*built, kBatch, true, {.on = on});
  const auto result =
      pass.forward({.size = kBatch, .x = data.x(0), .labels = data.labels(0)}, weight_views);
  for (int layer = model.layers() - 1; layer >= 0; --layer)
    pass.backward(layer, weight_views, gradient_views);
  const auto from_device = [&](const float* values, std::int64_t count) {
    Blob host = on->allocate_host(static_cast<std::size_t>(count) * sizeof(float));
    on->download(host.mutable_data(), values, host.size());
    on->synchronize();
    return host;
  };
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const auto& parameter = model.parameters()[i];
    const Blob host = from_device(gradients[i].as_floats(), parameter.spec.shape.count());
    all.push_back(tensor("gradient." + parameter.name, parameter.spec.shape, host.as_floats()));
  }
  const std::int64_t outputs = model.output().count();
  const Blob logits = from_device(pass.outputs(), kBatch * outputs);
  all.push_back(
      tensor("logits", {kBatch * task.labels, outputs / task.labels}, logits.as_floats()));
  const auto loss = static_cast<float>(result.loss);
  all.push_back(tensor("loss", {1}, &loss));
  std::vector<std::int64_t> extents{kBatch};
  for (const auto extent : task.input.extents()) extents.push_back(extent);
  all.push_back(tensor("x", Shape(extents), data.x(0)));
  const std::vector<float> labels(data.labels(0), data.labels(kBatch));
  all.push_back(tensor("labels", {kBatch * task.labels}, labels.data()));
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  std::string model, file, device = "cpu", precision = "fp32";
  CLI::App app("One batch through a model, with all gradients, as a safetensors file.");
  app.add_option("model", model, "mlp, lenet, vgg, resnet or gpt")->required();
  app.add_option("file", file, "safetensors file to write")->required();
  app.add_option("--device", device, "cpu, cuda or cuda:1");
  app.add_option("--precision", precision, "fp32, bf16, fp16 or tf32");
  CLI11_PARSE(app, argc, argv);
  const auto task = bench::tasks().find(model);
  if (task == bench::tasks().end())
    fail("unknown model \"" + model + "\"; give mlp, lenet, vgg, resnet or gpt");
  const auto where = parse_device(device);
  if (!where) fail(where.error().text);
  const auto on = make_executor(*where);
  if (!on) fail(on.error().text);
  const auto saved = write_safetensors(file, answers(task->second, precision, *on), {});
  if (!saved) fail(saved.error().text);
  return 0;
}
