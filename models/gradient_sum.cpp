#include "models/gradient_sum.hpp"

#include <algorithm>

#include "core/check.hpp"

namespace leeway {

void add_gradient(Executor& on, GradientView to, GradientView from, const Shape& shape) {
  const std::int64_t row = shape.row_count();
  auto source = from.begin();
  for (const auto& slice : to)
    for (std::int64_t next = slice.first_row, end = next + slice.rows; next < end;) {
      while (source != from.end() && source->first_row + source->rows <= next) ++source;
      LW_CHECK(source != from.end() && source->first_row <= next, next, end);
      const std::int64_t rows = std::min(end, source->first_row + source->rows) - next;
      on.accumulate(slice.data + (next - slice.first_row) * row,
                    source->data + (next - source->first_row) * row, 1, rows * row,
                    kernels::Write::add);
      next += rows;
    }
}

std::vector<BlockId> blocks_of_chunk(const Model& model, const Layout& layout, ModelChunk chunk) {
  std::vector<bool> wanted(static_cast<std::size_t>(model.layers()));
  for (int layer = chunk.first; layer < chunk.end; ++layer) {
    wanted[static_cast<std::size_t>(layer)] = true;
    if (const int parameter = model.borrowed_parameter(layer); parameter != Model::kNone)
      wanted[static_cast<std::size_t>(
          model.parameters()[static_cast<std::size_t>(parameter)].layer)] = true;
  }
  std::vector<BlockId> blocks;
  for (const Block& block : layout.blocks())
    if (wanted[static_cast<std::size_t>(block.layer)]) blocks.push_back(block.id);
  return blocks;
}

GradientSum::GradientSum(std::shared_ptr<const Model> model, std::shared_ptr<const Layout> layout,
                         ModelChunk chunk, std::shared_ptr<Executor> on, bool several)
    : model_(std::move(model)),
      layout_(std::move(layout)),
      on_(std::move(on)),
      chunk_(chunk),
      blocks_(blocks_of_chunk(*model_, *layout_, chunk_)),
      sums_(layout_->blocks().size()),
      latest_(sums_.size()),
      added_(sums_.size()),
      slices_(*model_, *layout_, std::vector<float*>(sums_.size(), nullptr)) {
  for (const BlockId id : blocks_)
    if (several) latest_[id.value()] = on_->floats(layout_->block(id).floats);
}

GradientSum::~GradientSum() {
  on_->drain();
}

void GradientSum::start(std::int64_t total, std::int64_t micro_batches) {
  LW_CHECK(total > 0 && micro_batches > 0, total, micro_batches);
  total_ = total;
  micro_batches_ = micro_batches;
  for (const BlockId id : blocks_) {
    const Block& block = layout_->block(id);
    Blob& sum = sums_[id.value()];
    sum = on_->floats(block.floats);
    added_[id.value()] = 0;
    // No backward writes the gradients of a frozen layer.
    if (!model_->has_weights(block.layer))
      on_->zero(sum.mutable_floats(), static_cast<std::size_t>(block.floats) * sizeof(float));
    // No kernel writes the padding between slices, and it must not carry NaN into an update.
    Blob& target = micro_batches == 1 ? sum : latest_[id.value()];
    LW_CHECK(target, micro_batches);
    zero_padding(*on_, block, target.mutable_floats());
    slices_.set_block(*layout_, id, target.mutable_floats());
  }
}

void GradientSum::add(int layer, std::int64_t samples) {
  int owner = layer;
  if (const int parameter = model_->borrowed_parameter(layer); parameter != Model::kNone) {
    owner = model_->parameters()[static_cast<std::size_t>(parameter)].layer;
    if (chunk_.has(owner)) return;  // the owner's backward adds this layer's contribution
  }
  for (const BlockId id : blocks_) {
    const Block& block = layout_->block(id);
    if (block.layer != owner) continue;
    std::int64_t& added = added_[id.value()];
    LW_CHECK(added < micro_batches_, added, micro_batches_);
    if (micro_batches_ > 1)
      on_->accumulate(sums_[id.value()].mutable_floats(), latest_[id.value()].as_floats(),
                      mean_scale(samples, total_), block.floats,
                      added == 0 ? kernels::Write::assign : kernels::Write::add);
    ++added;
  }
}

std::int64_t GradientSum::bytes() const {
  std::size_t bytes = 0;
  for (const auto* blobs : {&sums_, &latest_})
    for (const Blob& blob : *blobs) bytes += blob.size();
  return static_cast<std::int64_t>(bytes);
}

}  // namespace leeway
