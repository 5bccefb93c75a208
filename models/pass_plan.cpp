#include "models/pass_plan.hpp"

#include <algorithm>
#include <limits>

namespace leeway {

namespace {

constexpr int kNone = PassPlan::kNone;
constexpr int kForever = std::numeric_limits<int>::max();

/// The layer that wrote what `layer` gives: itself, or the one under its views.
int writer_of(const Model& model, int layer) {
  while (layer != Model::kBatch && model.layer(layer).is_view()) layer = model.input_of(layer);
  return layer;
}

/// Who reads the output of each layer.
struct Readers {
  explicit Readers(const Model& model)
      : count(static_cast<std::size_t>(model.layers())), last(count.size(), kNone) {
    const auto read = [&](int source, int by) {
      const int writer = writer_of(model, source);
      if (writer == Model::kBatch) return;
      ++count[static_cast<std::size_t>(writer)];
      last[static_cast<std::size_t>(writer)] = by;
    };
    for (int i = 0; i < model.layers(); ++i) {
      if (!model.layer(i).is_view()) read(model.input_of(i), i);
      if (model.is_sum(i)) read(model.other_input_of(i), i);
    }
    read(model.layers() - 1, kForever);  // the loss, and whoever asks for the outputs
  }
  std::vector<int> count;
  std::vector<int> last;
};

/// Buffers that are taken and given back; each as large as the largest that it ever held.
class BufferPool {
 public:
  explicit BufferPool(std::vector<std::int64_t>& floats) : floats_(floats) {}

  int take(std::int64_t floats) {
    if (free_.empty()) {
      floats_.push_back(floats);
      return static_cast<int>(floats_.size()) - 1;
    }
    // The one that has to grow least, else the largest of those that need not.
    const auto best = std::min_element(free_.begin(), free_.end(), [&](int a, int b) {
      const auto distance = [&](int buffer) { return std::abs(size(buffer) - floats); };
      return distance(a) < distance(b);
    });
    const int buffer = *best;
    free_.erase(best);
    auto& held = floats_[static_cast<std::size_t>(buffer)];
    held = std::max(held, floats);
    return buffer;
  }
  void give_back(int buffer) { free_.push_back(buffer); }

 private:
  std::int64_t size(int buffer) const { return floats_[static_cast<std::size_t>(buffer)]; }
  std::vector<std::int64_t>& floats_;
  std::vector<int> free_;
};

}  // namespace

PassPlan::PassPlan(const Model& model, bool with_backward) {
  place_outputs(model, with_backward);
  if (with_backward) place_gradients(model);
}

void PassPlan::place_outputs(const Model& model, bool with_backward) {
  const Readers readers(model);
  BufferPool pool(output_floats);
  const auto buffer_of = [&](int layer) {
    return layer == Model::kBatch ? kNone : output[static_cast<std::size_t>(layer)];
  };
  for (int i = 0; i < model.layers(); ++i) {
    const Layer& layer = model.layer(i);
    const int input = model.input_of(i);
    const int writer = writer_of(model, input);
    if (layer.is_view()) {
      output.push_back(buffer_of(input));
      continue;
    }
    const bool wanted = writer == Model::kBatch ||
                        readers.count[static_cast<std::size_t>(writer)] > 1 ||
                        (with_backward && model.layer(writer).backward_reads_output());
    const bool in_place = layer.in_place() && !wanted;
    output.push_back(in_place ? buffer_of(input) : pool.take(model.output_of(i).count()));
    if (with_backward) continue;
    // What nobody reads after this layer makes room.
    const auto release = [&](int source, bool kept) {
      const int of = writer_of(model, source);
      if (of != Model::kBatch && !kept && readers.last[static_cast<std::size_t>(of)] == i)
        pool.give_back(buffer_of(of));
    };
    release(input, in_place);
    if (model.is_sum(i) && writer_of(model, model.other_input_of(i)) != writer)
      release(model.other_input_of(i), false);
  }
}

/// Which gradient buffer holds what, while backward is played through.
class PassPlan::Gradients {
 public:
  Gradients(const Model& model, PassPlan& plan)
      : model_(model),
        plan_(plan),
        pool_(plan.gradient_floats),
        held_(static_cast<std::size_t>(model.layers()), kNone) {
    // The gradient of an output matters when something at or before it is trained.
    for (int i = 0; i < model.layers(); ++i)
      matters_.push_back(model.has_weights(i) || matters(model.input_of(i)) ||
                         (model.is_sum(i) && matters(model.other_input_of(i))));
  }

  int start() {
    const int last = model_.layers() - 1;
    held_.back() = pool_.take(floats(last));
    if (!matters(last)) pool_.give_back(held_.back());
    return held_.back();
  }

  void pass(int layer) {
    ops_ = &plan_.backward[static_cast<std::size_t>(layer)];
    const int dy = held_[static_cast<std::size_t>(layer)];
    if (!matters(layer) || dy == kNone) return;
    if (model_.is_sum(layer)) {
      const int a = model_.input_of(layer), b = model_.other_input_of(layer);
      const bool both = matters(a) && matters(b);
      if (matters(a)) give(a, dy, !both);
      if (matters(b)) give(b, dy, true);
      if (!matters(a) && !matters(b)) pool_.give_back(dy);
      return;
    }
    const int input = model_.input_of(layer);
    if (model_.layer(layer).is_view()) return give(input, dy, true);
    int dx = kNone;
    if (matters(input)) dx = model_.layer(layer).in_place() ? dy : pool_.take(floats(input));
    ops_->push_back({Op::Kind::layer, dx, dy, 0});
    if (dx != dy) pool_.give_back(dy);
    if (dx != kNone) give(input, dx, true);
  }

 private:
  bool matters(int layer) const {
    return layer != Model::kBatch && matters_[static_cast<std::size_t>(layer)];
  }
  std::int64_t floats(int layer) const { return model_.output_of(layer).count(); }

  /// Buffer `from` holds a gradient of `layer`'s output; `whole`: nobody else wants the buffer.
  void give(int layer, int from, bool whole) {
    int& held = held_[static_cast<std::size_t>(layer)];
    if (held == kNone && whole) {
      held = from;
    } else if (held == kNone) {
      held = pool_.take(floats(layer));
      ops_->push_back({Op::Kind::copy, held, from, floats(layer)});
    } else {
      ops_->push_back({Op::Kind::add, held, from, floats(layer)});
      if (whole) pool_.give_back(from);
    }
  }

  const Model& model_;
  PassPlan& plan_;
  BufferPool pool_;
  std::vector<int> held_;  // per layer: the buffer with the gradient of its output
  std::vector<bool> matters_;
  std::vector<Op>* ops_ = nullptr;
};

void PassPlan::place_gradients(const Model& model) {
  backward.resize(static_cast<std::size_t>(model.layers()));
  Gradients gradients(model, *this);
  loss_gradient = gradients.start();
  for (int layer = model.layers() - 1; layer >= 0; --layer) gradients.pass(layer);
}

}  // namespace leeway
