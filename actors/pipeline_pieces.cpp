#include "actors/pipeline_pieces.hpp"

namespace leeway {

std::vector<pipeline::Piece> pipeline_pieces(const std::vector<ModelPiece>& pieces,
                                             std::span<const LayerTime> times) {
  std::vector<pipeline::Piece> out;
  for (const ModelPiece& piece : pieces) {
    pipeline::OpCosts ns{0, 0, 0, 0};
    for (int layer = piece.first; layer < piece.end; ++layer) {
      const LayerTime& time = times[static_cast<std::size_t>(layer)];
      ns.forward += time.forward;
      ns.backward_input += time.backward_input;
      ns.backward_weights += time.backward_weights;
    }
    out.push_back({.name = piece.name,
                   .kind = piece.kind,
                   .ns = ns,
                   .output_bytes = piece.output_bytes,
                   .kept_bytes = piece.kept_bytes,
                   .first_bytes = piece.first_bytes,
                   .gradient_bytes = piece.gradient_bytes,
                   .working_bytes = piece.working_bytes,
                   .weight_bytes = piece.weight_bytes,
                   .statistic_bytes = piece.statistic_bytes});
  }
  return out;
}

}  // namespace leeway
