#pragma once
// What tests of a model in parts share: models with data, one stage that computes micro-batch by
// micro-batch, and stages that play a schedule's table.
#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "models/gradient_sum.hpp"
#include "models/part_pass.hpp"
#include "models/pieces.hpp"
#include "policies/pipeline/play.hpp"
#include "tests/models/support.hpp"

namespace leeway::test {

using pipeline::Op;
using pipeline::OpKind;
using pipeline::Table;

/// A model with samples, which are cut into micro-batches of nearly the same size.
struct Task {
  Task(std::shared_ptr<const Model> of, std::int64_t size, int vocabulary = 0)
      : model(std::move(of)), samples(*model, size, 1) {
    if (vocabulary == 0) return;
    Rng rng(2);
    const auto word = [&] {
      return static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(vocabulary)));
    };
    for (float& token : samples.x) token = static_cast<float>(word());
    samples.labels.clear();
    for (std::int64_t i = 0; i < size * model->labels(); ++i) samples.labels.push_back(word());
    samples.batch.labels = samples.labels.data();
  }

  std::int64_t size() const { return samples.batch.size; }
  std::int64_t first_of(int micro_batch, int micro_batches) const {
    return size() * micro_batch / micro_batches;
  }
  Batch micro_batch(int index, int of) const {
    const std::int64_t first = first_of(index, of), count = first_of(index + 1, of) - first;
    const Batch& all = samples.batch;
    return {.size = count,
            .x = all.x + first * model->input().count(),
            .labels = all.labels + first * model->labels(),
            .targets = all.targets ? all.targets + first * model->output().count() : nullptr,
            .sample_keys = all.sample_keys.subspan(static_cast<std::size_t>(first),
                                                   static_cast<std::size_t>(count))};
  }

  std::shared_ptr<const Model> model;
  RandomBatch samples;
};

/// The mean over all samples.
struct Outcome {
  double loss = 0;
  std::int64_t correct = 0;
  std::vector<Floats> gradients;  // per parameter
};

/// Adds the gradients of one micro-batch, by the definition: each by itself, times its share.
inline PassResult add_micro_batch(const Task& task, Memory& memory, int m, int micro_batches,
                                  std::vector<Floats>& sums) {
  const Batch batch = task.micro_batch(m, micro_batches);
  Pass pass(task.model, batch.size, true);
  const PassResult result = pass.forward(batch, memory.weights());
  run_backward(pass, memory);
  const double share = static_cast<double>(batch.size) / static_cast<double>(task.size());
  for (std::size_t p = 0; p < sums.size(); ++p) {
    const Floats piece = memory.gradient(p);
    sums[p].resize(piece.size());
    // A single one is taken as it is.
    if (micro_batches == 1)
      sums[p] = piece;
    else
      kernels::accumulate(sums[p].data(), piece.data(), static_cast<float>(share),
                          static_cast<std::int64_t>(piece.size()),
                          m == 0 ? kernels::Write::assign : kernels::Write::add);
  }
  return result;
}

/// One stage, micro-batch by micro-batch.
inline Outcome one_stage(const Task& task, Memory& memory, int micro_batches) {
  Outcome out;
  out.gradients.resize(task.model->parameters().size());
  for (int m = 0; m < micro_batches; ++m) {
    const PassResult result = add_micro_batch(task, memory, m, micro_batches, out.gradients);
    const auto samples = static_cast<double>(task.micro_batch(m, micro_batches).size);
    out.loss += result.loss * samples / static_cast<double>(task.size());
    out.correct += result.correct;
  }
  return out;
}

/// Parts of about as many pieces each.
inline std::vector<ModelChunk> cut_into(const Model& model, int parts) {
  const auto pieces = pieces_of(model, 1, *make_cpu_executor());
  const auto count = static_cast<int>(pieces.size());
  LW_CHECK(parts <= count, parts, count);
  std::vector<ModelChunk> snapshot;
  for (int part = 0; part < parts; ++part)
    snapshot.push_back({pieces[static_cast<std::size_t>(count * part / parts)].first,
                        pieces[static_cast<std::size_t>(count * (part + 1) / parts - 1)].end});
  return snapshot;
}

/// All operations of a table in an order in which stages may do them.
inline std::vector<std::pair<int, Op>> order_of(const Table& table) {
  const auto timeline = pipeline::play(table, pipeline::Costs::equal(table.parts(), {1, 1, 1, 1}));
  LW_CHECK(timeline.has_value());
  std::vector<std::tuple<std::int64_t, int, Op>> all;
  for (int stage = 0; stage < table.stages; ++stage) {
    const auto& ops = table.ops[static_cast<std::size_t>(stage)];
    for (std::size_t i = 0; i < ops.size(); ++i)
      all.emplace_back(timeline->slots[static_cast<std::size_t>(stage)][i].begin, stage, ops[i]);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return std::get<0>(a) < std::get<0>(b); });
  std::vector<std::pair<int, Op>> order;
  for (const auto& [begin, stage, op] : all) order.emplace_back(stage, op);
  return order;
}

/// The parts of a model, called one operation after the other: what stages do, without messages.
class Stages {
 public:
  /// `memory`: weights, and what gradients are read into.
  Stages(const Task& task, const Table& table, bool recompute,
         std::shared_ptr<Executor> on = nullptr)
      : task_(task),
        table_(table),
        on_(on ? std::move(on) : std::shared_ptr<Executor>(make_cpu_executor())),
        layout_(std::make_shared<Layout>(*task.model, 1, kBlockBytes)) {
    bool halves = false;
    for (const auto& ops : table.ops)
      for (const Op& op : ops) halves = halves || op.kind == OpKind::backward_input;
    const std::int64_t most = (task.size() + table.micro_batches - 1) / table.micro_batches;
    for (const ModelChunk part : cut_into(*task.model, table.parts())) {
      passes_.push_back(std::make_unique<PartPass>(
          task.model, part, most, true,
          PartOptions{.on = on_, .halves = halves, .recompute = recompute}));
      sums_.push_back(
          std::make_unique<GradientSum>(task.model, layout_, part, on_, table.micro_batches > 1));
      sums_.back()->start(task.size(), table.micro_batches);
    }
  }

  /// One operation but an update.
  void run(int stage, const Op& op, std::span<const ParameterView> weights) {
    const int part = table_.part_of(stage, op.chunk);
    if (op.kind == OpKind::forward) return forward(part, op, weights);
    const Half half = op.kind == OpKind::backward         ? Half::both
                      : op.kind == OpKind::backward_input ? Half::inputs
                                                          : Half::weights;
    const Key key{part, op.micro_batch};
    Stash& stash = *stashes_.at(key);
    const bool takes = half != Half::weights && part + 1 < table_.parts();
    Blob dx = pass(part).backward(stash, half, takes ? take(gradients_, key) : Blob(), weights,
                                  sum(part));
    if (half != Half::weights && part > 0) gradients_[{part - 1, op.micro_batch}] = std::move(dx);
    if (half == Half::inputs) return;
    pass(part).release(stash);
    stashes_.erase(key);
  }

  /// Reads what the parts have summed, a shared table from both of its parts.
  Outcome outcome() {
    LW_CHECK(stashes_.empty() && activations_.empty() && gradients_.empty());
    Outcome out{.loss = loss_, .correct = correct_, .gradients = {}};
    for (int part = 0; part < table_.parts(); ++part) collect(out.gradients, part);
    return out;
  }
  /// What one part has summed for an update, whose sum starts anew.
  std::vector<Floats> take_gradients(int part) {
    std::vector<Floats> gradients;
    collect(gradients, part);
    sum(part).start(task_.size(), table_.micro_batches);
    return gradients;
  }

  PartPass& pass(int part) { return *passes_[static_cast<std::size_t>(part)]; }
  GradientSum& sum(int part) { return *sums_[static_cast<std::size_t>(part)]; }

 private:
  static constexpr std::size_t kBlockBytes = 400;  // so that parameters are cut
  using Key = std::pair<int, int>;                 // part, micro-batch

  static Blob take(std::map<Key, Blob>& from, Key key) {
    Blob blob = std::move(from.at(key));
    from.erase(key);
    return blob;
  }

  void forward(int part, const Op& op, std::span<const ParameterView> weights) {
    const int m = op.micro_batch;
    const Batch batch = task_.micro_batch(m % table_.micro_batches, table_.micro_batches);
    // What a stage gathers, and does not keep itself.
    std::vector<std::uint64_t> keys(batch.sample_keys.begin(), batch.sample_keys.end());
    PartInput input{.batch = {.size = batch.size, .sample_keys = keys}, .input = {}};
    if (part == 0) {
      input.input = Blob::floats(batch.size * task_.model->input().count());
      std::copy_n(batch.x, batch.size * task_.model->input().count(), input.input.mutable_floats());
    } else {
      input.input = take(activations_, {part - 1, m});
    }
    const bool last = part + 1 == table_.parts();
    if (last) {
      input.batch.labels = batch.labels;
      input.batch.targets = batch.targets;
    }
    const std::vector<std::uint64_t> versions(weights.size(),
                                              static_cast<std::uint64_t>(op.version));
    Stash& stash = pass(part).take_stash();
    stashes_[{part, m}] = &stash;
    Blob y = pass(part).start_forward(stash, input, weights, versions);
    pass(part).executor().wait_mark();
    std::fill(keys.begin(), keys.end(), 0);
    LW_CHECK(last == !y);
    if (!last) {
      activations_[{part, m}] = std::move(y);
      return;
    }
    const PassResult result = pass(part).result(stash);
    loss_ += result.loss * static_cast<double>(batch.size) / static_cast<double>(task_.size());
    correct_ += result.correct;
  }

  /// Per parameter, those of the part; a shared one is added to what the part before has found.
  void collect(std::vector<Floats>& gradients, int of) {
    const ModelChunk part = pass(of).part();
    const auto& parameters = task_.model->parameters();
    gradients.resize(parameters.size());
    std::vector<Blob> taken(layout_->blocks().size());
    std::vector<float*> memory(taken.size(), nullptr);
    std::vector<bool> there(parameters.size());
    for (const BlockId id : blocks_of_chunk(*task_.model, *layout_, part)) {
      for (const BlockSlice& slice : layout_->block(id).slices)
        there[static_cast<std::size_t>(slice.parameter)] = true;
      on_->synchronize();
      taken[id.value()] = sum(of).take(id).on_host();
      memory[id.value()] = const_cast<float*>(taken[id.value()].as_floats());
    }
    const ParameterSlices<float> slices(*task_.model, *layout_, memory);
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const GradientView view = slices.views()[p];
      if (!there[p]) continue;
      const Shape& shape = parameters[p].spec.shape;
      Floats& gradient = gradients[p];
      const bool shared = !gradient.empty();  // the part that owns it comes first
      gradient.resize(static_cast<std::size_t>(shape.count()));
      const RowSlice<float> whole{0, shape.rows(), gradient.data()};
      const auto cpu = make_cpu_executor();
      if (!shared) std::fill(gradient.begin(), gradient.end(), -0.0f);  // x + -0 is x
      add_gradient(*cpu, {&whole, 1}, view, shape);
    }
  }

  const Task& task_;
  const Table& table_;
  std::shared_ptr<Executor> on_;
  std::shared_ptr<Layout> layout_;
  std::vector<std::unique_ptr<PartPass>> passes_;
  std::vector<std::unique_ptr<GradientSum>> sums_;
  std::map<Key, Stash*> stashes_;
  std::map<Key, Blob> activations_, gradients_;
  double loss_ = 0;
  std::int64_t correct_ = 0;
};

}  // namespace leeway::test
