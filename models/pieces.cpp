#include "models/pieces.hpp"

#include <algorithm>
#include <set>

#include "models/pass_plan.hpp"

namespace leeway {

namespace {

std::int64_t output_bytes(const Model& model, int layer, std::int64_t batch) {
  return batch * model.output_of(layer).count() * kFloatBytes;
}

/// "3" for "layer 3.body.0 (conv2d)".
std::string top_level_index(const std::string& layer_name) {
  const std::size_t begin = layer_name.find(' ') + 1;
  return layer_name.substr(begin, layer_name.find_first_of(". ", begin) - begin);
}

}  // namespace

bool can_split_before(const Model& model, int layer) {
  if (layer <= 0 || layer >= model.layers()) return false;
  std::set<int> crossing;
  for (int reader = layer; reader < model.layers(); ++reader) {
    if (model.input_of(reader) < layer) crossing.insert(model.input_of(reader));
    if (model.is_sum(reader) && model.other_input_of(reader) < layer)
      crossing.insert(model.other_input_of(reader));
  }
  return crossing.size() == 1 && *crossing.begin() == layer - 1;
}

std::vector<bool> wanted_gradients(const Model& model) {
  std::vector<bool> wanted;
  const auto is_wanted = [&](int layer) {
    return layer != Model::kBatch && wanted[static_cast<std::size_t>(layer)];
  };
  for (int i = 0; i < model.layers(); ++i)
    wanted.push_back(model.has_weights(i) || is_wanted(model.input_of(i)) ||
                     (model.is_sum(i) && is_wanted(model.other_input_of(i))));
  return wanted;
}

std::vector<ModelPiece> pieces_of(const Model& model, std::int64_t batch, Executor& on) {
  const PassPlan plan(model, true);
  std::set<int> buffers{PassPlan::kNone};  // written by the layers so far
  std::vector<ModelPiece> pieces;
  for (int i = 0; i < model.layers(); ++i) {
    const Layer& layer = model.layer(i);
    const std::int64_t bytes = output_bytes(model, i, batch);
    const bool fresh = buffers.insert(plan.output[static_cast<std::size_t>(i)]).second;
    if (i == 0 || can_split_before(model, i)) {
      pieces.push_back({.first = i, .name = top_level_index(model.layer_name(i)), .kind = {}});
      // A view needs memory if the next layer is in place.
      const bool is_pure_view =
          layer.is_view() && !(i + 1 < model.layers() && model.layer(i + 1).in_place());
      if (!fresh && i > 0 && !is_pure_view) pieces.back().first_bytes = bytes;
    }
    ModelPiece& piece = pieces.back();
    piece.end = i + 1;
    piece.kind = piece.end - piece.first == 1                         ? std::string(layer.kind())
                 : top_level_index(model.layer_name(i)) == piece.name ? "residual"
                                                                      : "layers";
    piece.output_bytes = bytes;
    if (fresh) piece.kept_bytes += bytes;
    piece.kept_bytes += static_cast<std::int64_t>(layer.kept_bytes(batch));
    const bool last = i == model.layers() - 1;
    if (last) piece.kept_bytes += bytes;  // the loss's gradient
    if (!last && model.has_weights(i) && layer.splits_backward()) piece.gradient_bytes += bytes;
    piece.working_bytes = std::max(
        piece.working_bytes, bytes + output_bytes(model, model.input_of(i), batch) +
                                 static_cast<std::int64_t>(layer.scratch_bytes(on, batch, true)));
    for (int p = model.first_parameter(i); p < model.first_parameter(i + 1); ++p) {
      const auto& spec = model.parameters()[static_cast<std::size_t>(p)].spec;
      (spec.average == 0 ? piece.weight_bytes : piece.statistic_bytes) +=
          spec.shape.count() * kFloatBytes;
    }
    if (const int p = model.borrowed_parameter(i); p != Model::kNone)
      piece.weight_bytes +=
          model.parameters()[static_cast<std::size_t>(p)].spec.shape.count() * kFloatBytes;
  }
  return pieces;
}

}  // namespace leeway
