#pragma once
// Shared by tests of a model in chunks: models with data, one stage that computes micro-batch by
// micro-batch, and stages that play a schedule's table.
#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "models/chunk_pass.hpp"
#include "models/gradient_sum.hpp"
#include "models/pieces.hpp"
#include "policies/pipeline/play.hpp"
#include "tests/models/support.hpp"

namespace leeway::test {

using pipeline::Op;
using pipeline::OpKind;
using pipeline::Table;

/// A model with samples in micro-batches of nearly the same size.
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

/// Adds the gradients of one micro-batch times its share of the samples.
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
    // A single micro-batch is not scaled.
    if (micro_batches == 1)
      sums[p] = piece;
    else
      kernels::accumulate(sums[p].data(), piece.data(), static_cast<float>(share),
                          static_cast<std::int64_t>(piece.size()),
                          m == 0 ? kernels::Write::assign : kernels::Write::add);
  }
  return result;
}

/// Computes all micro-batches on one stage.
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

/// Chunks of nearly the same number of pieces.
inline std::vector<ModelChunk> split_into(const Model& model, int chunks) {
  const auto pieces = pieces_of(model, 1, *make_cpu_executor());
  const auto count = static_cast<int>(pieces.size());
  LW_CHECK(chunks <= count, chunks, count);
  std::vector<ModelChunk> all;
  for (int i = 0; i < chunks; ++i)
    all.push_back({pieces[static_cast<std::size_t>(count * i / chunks)].first,
                   pieces[static_cast<std::size_t>(count * (i + 1) / chunks - 1)].end});
  return all;
}

/// All operations of a table, in an order that respects their dependencies.
inline std::vector<std::pair<int, Op>> order_of(const Table& table) {
  const auto timeline =
      pipeline::play(table, pipeline::Costs::equal(table.model_chunks(), {1, 1, 1, 1}));
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

/// The stages of a pipeline without messages: computes chunks operation by operation.
class Stages {
 public:
  /// `memory`: the weights, and the buffers that receive gradients.
  Stages(const Task& task, const Table& table, bool recompute,
         std::shared_ptr<Executor> on = nullptr)
      : task_(task),
        table_(table),
        on_(on ? std::move(on) : std::shared_ptr<Executor>(make_cpu_executor())),
        layout_(std::make_shared<Layout>(*task.model, 1, kBlockBytes)) {
    bool split_backward = false;
    for (const auto& ops : table.ops)
      for (const Op& op : ops) split_backward = split_backward || op.kind == OpKind::backward_input;
    const std::int64_t most = (task.size() + table.micro_batches - 1) / table.micro_batches;
    for (const ModelChunk chunk : split_into(*task.model, table.model_chunks())) {
      passes_.push_back(std::make_unique<ChunkPass>(
          task.model, chunk, most, true,
          ChunkOptions{.on = on_, .split_backward = split_backward, .recompute = recompute}));
      sums_.push_back(
          std::make_unique<GradientSum>(task.model, layout_, chunk, on_, table.micro_batches > 1));
      sums_.back()->start(task.size(), table.micro_batches);
    }
  }

  /// Runs one operation, not an update.
  void run(int stage, const Op& op, std::span<const ParameterView> weights) {
    const int chunk = table_.model_chunk(stage, op.chunk);
    if (op.kind == OpKind::forward) return forward(chunk, op, weights);
    const BackwardFor purpose = op.kind == OpKind::backward         ? BackwardFor::both
                                : op.kind == OpKind::backward_input ? BackwardFor::inputs
                                                                    : BackwardFor::weights;
    const Key key{chunk, op.micro_batch};
    Stash& stash = *stashes_.at(key);
    const bool takes = purpose != BackwardFor::weights && chunk + 1 < table_.model_chunks();
    Blob dx = pass(chunk).backward(stash, purpose, takes ? take(gradients_, key) : Blob(), weights,
                                   sum(chunk));
    if (purpose != BackwardFor::weights && chunk > 0)
      gradients_[{chunk - 1, op.micro_batch}] = std::move(dx);
    if (purpose == BackwardFor::inputs) return;
    pass(chunk).release(stash);
    stashes_.erase(key);
  }

  /// The sums of all chunks; tied gradients are added.
  Outcome outcome() {
    LW_CHECK(stashes_.empty() && activations_.empty() && gradients_.empty());
    Outcome out{.loss = loss_, .correct = correct_, .gradients = {}};
    for (int chunk = 0; chunk < table_.model_chunks(); ++chunk) collect(out.gradients, chunk);
    return out;
  }
  /// Takes the sum of one chunk for an update, and starts a new one.
  std::vector<Floats> take_gradients(int chunk) {
    std::vector<Floats> gradients;
    collect(gradients, chunk);
    sum(chunk).start(task_.size(), table_.micro_batches);
    return gradients;
  }

  ChunkPass& pass(int chunk) { return *passes_[static_cast<std::size_t>(chunk)]; }
  GradientSum& sum(int chunk) { return *sums_[static_cast<std::size_t>(chunk)]; }

 private:
  static constexpr std::size_t kBlockBytes = 400;  // so that parameters have several blocks
  using Key = std::pair<int, int>;                 // chunk, micro-batch

  static Blob take(std::map<Key, Blob>& from, Key key) {
    Blob blob = std::move(from.at(key));
    from.erase(key);
    return blob;
  }

  void forward(int chunk, const Op& op, std::span<const ParameterView> weights) {
    const int m = op.micro_batch;
    const Batch batch = task_.micro_batch(m % table_.micro_batches, table_.micro_batches);
    // A stage does not keep the gathered keys.
    std::vector<std::uint64_t> keys(batch.sample_keys.begin(), batch.sample_keys.end());
    ChunkInput input{.batch = {.size = batch.size, .sample_keys = keys}, .input = {}};
    if (chunk == 0) {
      input.input = Blob::floats(batch.size * task_.model->input().count());
      std::copy_n(batch.x, batch.size * task_.model->input().count(), input.input.mutable_floats());
    } else {
      input.input = take(activations_, {chunk - 1, m});
    }
    const bool last = chunk + 1 == table_.model_chunks();
    if (last) {
      input.batch.labels = batch.labels;
      input.batch.targets = batch.targets;
    }
    const std::vector<std::uint64_t> versions(weights.size(),
                                              static_cast<std::uint64_t>(op.version));
    Stash& stash = pass(chunk).take_stash();
    stashes_[{chunk, m}] = &stash;
    Blob y = pass(chunk).start_forward(stash, input, weights, versions);
    pass(chunk).executor().wait_mark();
    std::fill(keys.begin(), keys.end(), 0);
    LW_CHECK(last == !y);
    if (!last) {
      activations_[{chunk, m}] = std::move(y);
      return;
    }
    const PassResult result = pass(chunk).result(stash);
    loss_ += result.loss * static_cast<double>(batch.size) / static_cast<double>(task_.size());
    correct_ += result.correct;
  }

  /// Collects the gradients of one chunk by parameter. Adds a tied gradient to that of an earlier
  /// chunk.
  void collect(std::vector<Floats>& gradients, int of) {
    const ModelChunk chunk = pass(of).chunk();
    const auto& parameters = task_.model->parameters();
    gradients.resize(parameters.size());
    std::vector<Blob> taken(layout_->blocks().size());
    std::vector<float*> memory(taken.size(), nullptr);
    std::vector<bool> there(parameters.size());
    for (const BlockId id : blocks_of_chunk(*task_.model, *layout_, chunk)) {
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
      const bool shared = !gradient.empty();  // the owner comes first
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
  std::vector<std::unique_ptr<ChunkPass>> passes_;
  std::vector<std::unique_ptr<GradientSum>> sums_;
  std::map<Key, Stash*> stashes_;
  std::map<Key, Blob> activations_, gradients_;
  double loss_ = 0;
  std::int64_t correct_ = 0;
};

}  // namespace leeway::test
