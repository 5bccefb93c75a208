#include "models/pass_plan.hpp"

#include <algorithm>
#include <limits>

#include "core/check.hpp"

namespace leeway {

namespace {

constexpr int kForever = std::numeric_limits<int>::max();

/// The layer that wrote the output of `layer`: itself, or the one under its views; kBatch for the
/// chunk's input.
int writer_of(const Model& model, ModelChunk chunk, int layer) {
  while (layer >= chunk.first && model.layer(layer).is_view()) layer = model.input_of(layer);
  return layer < chunk.first ? Model::kBatch : layer;
}

/// The readers of each layer's output.
struct Readers {
  Readers(const Model& model, ModelChunk chunk)
      : count(static_cast<std::size_t>(model.layers())), last(count.size(), PassPlan::kNone) {
    const auto read = [&](int source, int by) {
      const int writer = writer_of(model, chunk, source);
      if (writer == Model::kBatch) return;
      ++count[static_cast<std::size_t>(writer)];
      last[static_cast<std::size_t>(writer)] = by;
    };
    for (int i = chunk.first; i < chunk.end; ++i) {
      if (!model.layer(i).is_view()) read(model.input_of(i), i);
      if (model.is_sum(i)) read(model.other_input_of(i), i);
    }
    read(chunk.end - 1, kForever);  // the loss, the next chunk, or outputs()
  }
  std::vector<int> count;
  std::vector<int> last;
};

/// Buffers that are taken and given back. Each grows to the largest request that it served; with
/// `exact`, a buffer only serves requests of one size.
class BufferPool {
 public:
  explicit BufferPool(std::vector<std::int64_t>& floats, bool exact = false)
      : floats_(floats), exact_(exact) {}

  /// A new buffer.
  int add(std::int64_t floats) {
    floats_.push_back(floats);
    return static_cast<int>(floats_.size()) - 1;
  }
  int take(std::int64_t floats) {
    if (free_.empty()) return add(floats);
    // The buffer with the nearest size.
    const auto best = std::min_element(free_.begin(), free_.end(), [&](int a, int b) {
      const auto distance = [&](int buffer) { return std::abs(size(buffer) - floats); };
      return distance(a) < distance(b);
    });
    const int buffer = *best;
    if (exact_ && size(buffer) != floats) return add(floats);
    free_.erase(best);
    auto& held = floats_[static_cast<std::size_t>(buffer)];
    held = std::max(held, floats);
    return buffer;
  }
  void give_back(int buffer) { free_.push_back(buffer); }

 private:
  std::int64_t size(int buffer) const { return floats_[static_cast<std::size_t>(buffer)]; }
  std::vector<std::int64_t>& floats_;
  const bool exact_;
  std::vector<int> free_;
};

}  // namespace

PassPlan::PassPlan(const Model& model, ModelChunk of, PassPlanOptions options) : chunk(of) {
  LW_CHECK(chunk.first >= 0 && chunk.first < chunk.end && chunk.end <= model.layers(), chunk.first,
           chunk.end, model.layers());
  place_outputs(model, options.backward);
  if (options.backward) place_gradients(model, options);
}

void PassPlan::place_outputs(const Model& model, bool with_backward) {
  const Readers readers(model, chunk);
  BufferPool pool(output_floats);
  output.assign(static_cast<std::size_t>(model.layers()), PassPlan::kNone);
  for (int i = chunk.first; i < chunk.end; ++i) {
    const Layer& layer = model.layer(i);
    const int input = model.input_of(i);
    const int writer = writer_of(model, chunk, input);
    int& buffer = output[static_cast<std::size_t>(i)];
    if (layer.is_view()) {
      buffer = output_of(input);
      continue;
    }
    const bool wanted = writer == Model::kBatch ||
                        readers.count[static_cast<std::size_t>(writer)] > 1 ||
                        (with_backward && model.layer(writer).backward_reads_output());
    const bool in_place = layer.in_place() && !wanted;
    buffer = in_place ? output_of(input) : pool.take(model.output_of(i).count());
    if (with_backward) continue;
    // An output without later readers frees its buffer.
    const auto release = [&](int source, bool kept) {
      const int of = writer_of(model, chunk, source);
      if (of != Model::kBatch && !kept && readers.last[static_cast<std::size_t>(of)] == i)
        pool.give_back(output_of(of));
    };
    release(input, in_place);
    if (model.is_sum(i) && writer_of(model, chunk, model.other_input_of(i)) != writer)
      release(model.other_input_of(i), false);
  }
}

bool PassPlan::backward_reads_output(const Model& model) const {
  const int buffer = output_of(chunk.end - 1);
  if (buffer == PassPlan::kNone) return false;
  for (int i = chunk.first; i < chunk.end; ++i) {
    const Layer& layer = model.layer(i);
    if (layer.is_view() || model.is_sum(i)) continue;
    if (output_of(i) == buffer && layer.backward_reads_output()) return true;
    if (output_of(model.input_of(i)) == buffer && !layer.in_place()) return true;
  }
  return false;
}

/// Walks through backward, and assigns gradient buffers on the way.
class PassPlan::Gradients {
 public:
  Gradients(const Model& model, PassPlan& plan, PassPlanOptions options)
      : model_(model),
        plan_(plan),
        options_(options),
        pool_(plan.gradient_floats, options.split_backward),
        held_(static_cast<std::size_t>(model.layers()), PassPlan::kNone) {
    // The gradient of an output matters if a parameter at or before it is trained.
    for (int i = 0; i < plan.chunk.end; ++i)
      matters_.push_back(model.has_weights(i) || matters(model.input_of(i)) ||
                         (model.is_sum(i) && matters(model.other_input_of(i))));
  }

  /// Takes the buffer that the loss, or the next chunk, writes.
  int start() {
    const int last = plan_.chunk.end - 1;
    const bool from_loss = plan_.chunk.end == model_.layers();
    int& held = held_[static_cast<std::size_t>(last)];
    if (from_loss && !options_.several) {
      held = pool_.take(floats(last));
      if (!matters(last)) give_back(held);
    } else if (from_loss || matters(last)) {
      held = own(floats(last), from_loss ? Place::kept : Place::outside);
    }
    return held;
  }
  /// The buffer with the gradient of the chunk's input.
  int input_gradient() const {
    const int input = plan_.chunk.first - 1;
    return matters(input) ? held_[static_cast<std::size_t>(input)] : PassPlan::kNone;
  }

  void visit(int layer) {
    ops_ = &plan_.backward[static_cast<std::size_t>(layer)];
    const int dy = held_[static_cast<std::size_t>(layer)];
    if (!matters(layer) || dy == PassPlan::kNone) return;
    if (model_.is_sum(layer)) {
      const int a = model_.input_of(layer), b = model_.other_input_of(layer);
      const bool both = matters(a) && matters(b);
      if (matters(a)) give(a, dy, !both);
      if (matters(b)) give(b, dy, true);
      if (!matters(a) && !matters(b)) give_back(dy);
      return;
    }
    const int input = model_.input_of(layer);
    if (model_.layer(layer).is_view()) return give(input, dy, true);
    const bool kept = stays(layer, dy);
    if (kept && place(dy) == Place::working) place(dy) = Place::pending;
    if (kept && is_constant(dy)) plan_.keeps_output_gradient = true;
    int dx = PassPlan::kNone;
    if (matters(input)) dx = buffer_for(layer, input, dy);
    ops_->push_back({Op::Kind::layer, dx, dy, 0});
    if (dx != dy && !kept) give_back(dy);
    if (dx != PassPlan::kNone) give(input, dx, true);
  }

 private:
  bool matters(int layer) const {
    return layer != Model::kBatch && matters_[static_cast<std::size_t>(layer)];
  }
  std::int64_t floats(int layer) const { return model_.output_of(layer).count(); }
  bool is_input(int layer) const { return layer < plan_.chunk.first; }

  int own(std::int64_t count, Place where) {
    const int buffer = pool_.add(count);
    place(buffer) = where;
    return buffer;
  }
  Place& place(int buffer) {
    plan_.gradient_place.resize(plan_.gradient_floats.size(), Place::working);
    return plan_.gradient_place[static_cast<std::size_t>(buffer)];
  }
  void give_back(int buffer) {
    if (place(buffer) == Place::working) pool_.give_back(buffer);
  }
  /// The blob from the next chunk is read-only.
  bool is_constant(int buffer) {
    return place(buffer) == Place::outside && buffer == plan_.output_gradient;
  }
  /// Whether the backward for weights of `layer` reads `dy`.
  bool stays(int layer, int dy) const {
    return options_.split_backward && dy != PassPlan::kNone && model_.has_weights(layer) &&
           model_.layer(layer).splits_backward();
  }
  /// Where the backward of `layer` writes the gradient of its input.
  int buffer_for(int layer, int input, int dy) {
    const bool first = is_input(input) && held_[static_cast<std::size_t>(input)] == PassPlan::kNone;
    if (first) return own(floats(input), Place::outside);
    if (model_.layer(layer).in_place() && !is_input(input) && !is_constant(dy) && !stays(layer, dy))
      return dy;
    return pool_.take(floats(input));
  }

  /// Buffer `from` holds a gradient of `layer`'s output. `whole`: nothing else uses the buffer.
  void give(int layer, int from, bool whole) {
    int& held = held_[static_cast<std::size_t>(layer)];
    // The gradient for the previous chunk needs a separate blob, unless the next chunk sent it.
    const bool moves = is_input(layer) && place(from) != Place::outside;
    if (held == PassPlan::kNone && whole && !moves) {
      held = from;
      return;
    }
    if (held == PassPlan::kNone || is_constant(held)) {
      const int source = held == PassPlan::kNone ? from : held;
      held = is_input(layer) ? own(floats(layer), Place::outside) : pool_.take(floats(layer));
      ops_->push_back({Op::Kind::copy, held, source, floats(layer)});
      if (source == from) {
        if (whole) give_back(from);
        return;
      }
    }
    ops_->push_back({Op::Kind::add, held, from, floats(layer)});
    if (whole) give_back(from);
  }

  const Model& model_;
  PassPlan& plan_;
  const PassPlanOptions options_;
  BufferPool pool_;
  std::vector<int> held_;  // per layer: the buffer with the gradient of its output
  std::vector<bool> matters_;
  std::vector<Op>* ops_ = nullptr;
};

void PassPlan::place_gradients(const Model& model, PassPlanOptions options) {
  backward.resize(static_cast<std::size_t>(model.layers()));
  Gradients gradients(model, *this, options);
  output_gradient = gradients.start();
  for (int layer = chunk.end - 1; layer >= chunk.first; --layer) gradients.visit(layer);
  if (chunk.first > 0) input_gradient = gradients.input_gradient();
  gradient_place.resize(gradient_floats.size(), Place::working);
}

}  // namespace leeway
