#include "models/part_bytes.hpp"

#include "models/pass_plan.hpp"

namespace leeway {

namespace {

constexpr std::int64_t kFloat = sizeof(float);

std::int64_t parameter_bytes(const Parameter& parameter) {
  return parameter.spec.shape.count() * kFloat;
}

void add_parameters(PartBytes& bytes, const Model& model, ModelPart part) {
  for (const Parameter& parameter : model.parameters())
    if (part.has(parameter.layer))
      (parameter.spec.average == 0 ? bytes.weights : bytes.statistics) +=
          parameter_bytes(parameter);
  for (int i = part.first; i < part.end; ++i) {
    const int borrowed = model.borrowed_parameter(i);
    if (borrowed == Model::kNone) continue;
    const Parameter& table = model.parameters()[static_cast<std::size_t>(borrowed)];
    if (!part.has(table.layer)) bytes.weights += parameter_bytes(table);
  }
}

}  // namespace

PartBytes part_bytes(const Model& model, ModelPart part, std::int64_t batch,
                     const PartOptions& options) {
  const PassPlan plan(model, part,
                      {.backward = true, .several = options.several, .halves = options.halves});
  const bool on_gpu = options.on && options.on->device().kind == Device::Kind::cuda;
  const bool first = part.first == 0, last = part.end == model.layers();
  const std::int64_t output = batch * model.output_of(part.end - 1).count() * kFloat;
  PartBytes bytes;
  bytes.input = batch * model.output_of(part.first - 1).count() * kFloat;
  if (first && on_gpu) bytes.input *= moves_samples(model.input()) ? 3 : 2;
  bytes.told = batch * static_cast<std::int64_t>(sizeof(std::uint64_t));
  if (last) {
    bytes.told += static_cast<std::int64_t>(sizeof(kernels::ClassLoss));
    const bool by_class = model.loss() == plan::Loss::softmax_cross_entropy;
    if (on_gpu || options.recompute)
      bytes.told += batch * kFloat * (by_class ? model.labels() : model.output().count());
  }
  const int sent = last ? PassPlan::kNone : plan.output_of(part.end - 1);
  for (std::size_t i = 0; i < plan.output_floats.size(); ++i)
    if (static_cast<int>(i) != sent) bytes.activations += batch * plan.output_floats[i] * kFloat;
  if (!last && plan.backward_reads_output(model)) bytes.activations += output;
  for (int i = part.first; i < part.end; ++i)
    bytes.activations += static_cast<std::int64_t>(model.layer(i).kept_bytes(batch));
  for (std::size_t i = 0; i < plan.gradient_floats.size(); ++i) {
    const std::int64_t gradient = batch * plan.gradient_floats[i] * kFloat;
    if (plan.gradient_place[i] == PassPlan::Place::kept) bytes.activations += gradient;
    if (plan.gradient_place[i] == PassPlan::Place::open) bytes.open += gradient;
  }
  if (plan.keeps_output_gradient) bytes.open += output;
  if (options.recompute) {
    bytes.shared = bytes.activations;
    if (options.halves) bytes.open += bytes.activations;
    bytes.activations = 0;
  }
  if (!last) bytes.sent = output;
  add_parameters(bytes, model, part);
  return bytes;
}

}  // namespace leeway
