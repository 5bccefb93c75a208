#include "actors/stage/stage_position.hpp"

#include <algorithm>
#include <utility>

#include "models/pieces.hpp"

namespace leeway {
namespace {

/// The shape of a micro-batch between layers `end - 1` and `end`.
Shape shape_before(const Model& model, int end, std::int64_t samples) {
  const Shape& of_one = model.output_of(end - 1);
  std::vector<std::int64_t> extents{samples};
  for (int axis = 0; axis < of_one.rank(); ++axis) extents.push_back(of_one[axis]);
  return Shape(extents);
}

}  // namespace

StagePosition::StagePosition(std::shared_ptr<const Job> job, WorkerId id)
    : job_(std::move(job)),
      id_(id),
      stage_(job_->stages->stage_of(id)),
      neighbours_(job_->stages->neighbours(id)) {
  const auto wanted = wanted_gradients(*job_->model);
  for (const ModelChunk& chunk : job_->stages->chunks())
    needs_output_gradient_.push_back(chunk.end < job_->model->layers() &&
                                     wanted[static_cast<std::size_t>(chunk.end) - 1]);
}

bool StagePosition::is_neighbour(Address peer) const {
  return peer.kind == RoleKind::worker && std::find(neighbours_.begin(), neighbours_.end(),
                                                    WorkerId(peer.index)) != neighbours_.end();
}

Shape StagePosition::input_shape(std::uint32_t model_chunk, std::int64_t samples) const {
  return shape_before(*job_->model, layers_of(model_chunk).first, samples);
}

Shape StagePosition::output_shape(std::uint32_t model_chunk, std::int64_t samples) const {
  return shape_before(*job_->model, layers_of(model_chunk).end, samples);
}

}  // namespace leeway
