#include "models/chunk_bytes.hpp"

#include "models/pass_plan.hpp"
#include "models/pieces.hpp"

namespace leeway {

namespace {

std::int64_t parameter_bytes(const Parameter& parameter) {
  return parameter.spec.shape.count() * kFloatBytes;
}

void add_parameters(ChunkBytes& bytes, const Model& model, ModelChunk chunk) {
  for (const Parameter& parameter : model.parameters())
    if (chunk.has(parameter.layer))
      (parameter.spec.average == 0 ? bytes.weights : bytes.statistics) +=
          parameter_bytes(parameter);
  for (int i = chunk.first; i < chunk.end; ++i) {
    const int borrowed = model.borrowed_parameter(i);
    if (borrowed == Model::kNone) continue;
    const Parameter& table = model.parameters()[static_cast<std::size_t>(borrowed)];
    if (!chunk.has(table.layer)) bytes.weights += parameter_bytes(table);
  }
}

}  // namespace

std::int64_t key_and_label_bytes(const Model& model, bool last, std::int64_t batch, bool copied) {
  const std::int64_t keys = batch * static_cast<std::int64_t>(sizeof(std::uint64_t));
  if (!last) return keys;
  const auto loss = static_cast<std::int64_t>(sizeof(kernels::ClassLoss));
  const bool by_class = model.loss() == plan::Loss::softmax_cross_entropy;
  const std::int64_t each = by_class ? model.labels() : model.output().count();
  return keys + loss + (copied ? batch * kFloatBytes * each : 0);
}

std::int64_t unread_bytes(const Model& model, ModelChunk chunk, std::int64_t batch) {
  const PassPlan plan(model, chunk, {.backward = true, .several = true});
  const bool stays = plan.output_of(chunk.end - 1) == PassPlan::kNone ||
                     plan.backward_reads_output(model) || chunk.end == model.layers();
  return stays ? 0 : batch * model.output_of(chunk.end - 1).count() * kFloatBytes;
}

ChunkBytes chunk_bytes(const Model& model, ModelChunk chunk, std::int64_t batch,
                       const ChunkOptions& options) {
  const PassPlan plan(
      model, chunk,
      {.backward = true, .several = options.several, .split_backward = options.split_backward});
  const bool on_gpu = options.on && options.on->device().kind == Device::Kind::cuda;
  const bool first = chunk.first == 0, last = chunk.end == model.layers();
  const std::int64_t output = batch * model.output_of(chunk.end - 1).count() * kFloatBytes;
  ChunkBytes bytes;
  bytes.input = batch * model.output_of(chunk.first - 1).count() * kFloatBytes;
  if (first && on_gpu) bytes.input *= moves_samples(model.input()) ? 3 : 2;
  bytes.keys_and_labels = key_and_label_bytes(model, last, batch, on_gpu || options.recompute);
  const int sent = last ? PassPlan::kNone : plan.output_of(chunk.end - 1);
  for (std::size_t i = 0; i < plan.output_floats.size(); ++i)
    if (static_cast<int>(i) != sent)
      bytes.activations += batch * plan.output_floats[i] * kFloatBytes;
  if (!last && plan.backward_reads_output(model)) bytes.activations += output;
  for (int i = chunk.first; i < chunk.end; ++i)
    bytes.activations += static_cast<std::int64_t>(model.layer(i).kept_bytes(batch));
  for (std::size_t i = 0; i < plan.gradient_floats.size(); ++i) {
    const std::int64_t gradient = batch * plan.gradient_floats[i] * kFloatBytes;
    if (plan.gradient_place[i] == PassPlan::Place::kept) bytes.activations += gradient;
    if (plan.gradient_place[i] == PassPlan::Place::pending) bytes.pending += gradient;
  }
  if (plan.keeps_output_gradient) bytes.pending += output;
  if (options.recompute) {
    bytes.shared = bytes.activations;
    bytes.activations = 0;
  }
  if (!last) bytes.sent = output;
  add_parameters(bytes, model, chunk);
  return bytes;
}

}  // namespace leeway
