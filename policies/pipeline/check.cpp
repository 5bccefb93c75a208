#include "policies/pipeline/check.hpp"

#include <algorithm>

#include "core/text.hpp"

namespace leeway::pipeline {

namespace {

constexpr int kUnset = -1;

/// Follows the operations of one stage in order.
class StageChecker {
 public:
  StageChecker(const Table& table, int stage)
      : table_(table),
        stage_(stage),
        runs_(static_cast<std::size_t>(table.chunks * table.all_micro_batches())),
        made_(static_cast<std::size_t>(table.chunks)) {}

  Expected<StageUse> check() {
    const auto& ops = table_.ops[static_cast<std::size_t>(stage_)];
    for (number_ = 0; number_ < ops.size(); ++number_)
      if (auto ok = check_op(ops[number_]); !ok) return ok.error();
    if (auto ok = check_all_done(); !ok) return ok.error();
    use_.versions = most_versions(ops);
    return use_;
  }

 private:
  /// The state of a micro-batch in a chunk.
  struct Run {
    int version = kUnset;  // of its forward
    bool input = false, weights = false;
  };

  Run& run_of(int chunk, int micro_batch) {
    return runs_[static_cast<std::size_t>(chunk * table_.all_micro_batches() + micro_batch)];
  }
  int& made(int chunk) { return made_[static_cast<std::size_t>(chunk)]; }

  template <class... Values>
  Error wrong(const Op& op, const Values&... values) const {
    return Error{concat("stage ", stage_, ", operation ", number_, " (", text_of(op, table_.chunks),
                        "): ", values...)};
  }

  Status check_op(const Op& op) {
    if (op.chunk < 0 || op.chunk >= table_.chunks || op.micro_batch < 0 ||
        op.micro_batch >= table_.all_micro_batches())
      return Error{concat("stage ", stage_, ", operation ", number_, ": there is no micro-batch ",
                          op.micro_batch, " of chunk ", op.chunk, "; the table has ",
                          table_.all_micro_batches(), " micro-batches and ", table_.chunks,
                          " chunks")};
    if (op.kind == OpKind::update) return update(op);
    if (op.kind == OpKind::forward) return forward(op);
    return backward(op);
  }

  Status forward(const Op& op) {
    Run& run = run_of(op.chunk, op.micro_batch);
    if (run.version != kUnset) return wrong(op, "repeats a forward; remove it");
    if (op.version < 0 || op.version > made(op.chunk))
      return wrong(op, "reads version ", op.version, ", but the newest is ", made(op.chunk),
                   "; let it read that version, or move it behind the update");
    run.version = op.version;
    use_.activations = std::max(use_.activations, ++alive_);
    const int lag = op.micro_batch / table_.micro_batches - op.version;
    const int most = table_.version_lag[static_cast<std::size_t>(stage_)];
    if (lag < 0)
      return wrong(op, "reads version ", op.version,
                   ", which contains its own gradient; let it read version ", op.version + lag);
    if (lag > most)
      return wrong(op, "reads weights that are ", lag,
                   " updates older than those that its gradient is applied to, but the table "
                   "promises at most ",
                   most, "; let it read version ", op.version + lag - most);
    use_.version_lag = std::max(use_.version_lag, lag);
    return {};
  }

  Status backward(const Op& op) {
    Run& run = run_of(op.chunk, op.micro_batch);
    if (run.version == kUnset) return wrong(op, "comes before its forward; swap them");
    if (run.version != op.version)
      return wrong(op, "reads version ", op.version, ", but its forward read ", run.version,
                   "; let both read the same version");
    if (gives_input_gradient(op.kind)) {
      if (run.input) return wrong(op, "repeats a backward; remove it");
      run.input = true;
    }
    if (op.kind == OpKind::backward_input)
      use_.pending_backwards = std::max(use_.pending_backwards, ++pending_);
    if (op.kind == OpKind::backward_weights) --pending_;
    if (gives_weight_gradient(op.kind)) {
      if (!run.input) return wrong(op, "comes before the backward for inputs; swap them");
      if (run.weights) return wrong(op, "repeats a backward; remove it");
      const int next = made(op.chunk);
      if (op.micro_batch / table_.micro_batches != next)
        return wrong(op, "gives gradients of update ", op.micro_batch / table_.micro_batches,
                     " while those of update ", next, " are summed; move it ",
                     op.micro_batch / table_.micro_batches > next ? "later" : "earlier");
      run.weights = true;
      --alive_;
    }
    return {};
  }

  Status update(const Op& op) {
    const int index = made(op.chunk);
    const int end = (index + 1) * table_.micro_batches;
    if (index == table_.updates) return wrong(op, "is one update too many; remove it");
    if (op.version != index + 1 || op.micro_batch != end - 1)
      return wrong(op, "makes version ", op.version, " after micro-batch ", op.micro_batch,
                   "; the next one is ", index + 1, " after micro-batch ", end - 1);
    for (int m = end - table_.micro_batches; m < end; ++m)
      if (!run_of(op.chunk, m).weights)
        return wrong(op, "comes before the gradient of micro-batch ", m,
                     "; move it later, or add the gradient if it is missing");
    ++made(op.chunk);
    return {};
  }

  /// update() requires all gradients, and they require their forwards. So no operation is missing
  /// if no update is.
  Status check_all_done() {
    for (int chunk = 0; chunk < table_.chunks; ++chunk)
      if (made(chunk) < table_.updates)
        return Error{concat("stage ", stage_, ": the update after micro-batch ",
                            (made(chunk) + 1) * table_.micro_batches - 1, " of chunk ", chunk,
                            " is missing; add it")};
    return {};
  }

  /// Most versions alive at once. A version lives from its update to the last operation that reads
  /// it; the newest is always alive.
  int most_versions(const std::vector<Op>& ops) const {
    int most = 1;
    for (int chunk = 0; chunk < table_.chunks; ++chunk) {
      std::vector<std::size_t> last_read(static_cast<std::size_t>(table_.updates) + 1, 0);
      for (std::size_t i = 0; i < ops.size(); ++i)
        if (ops[i].chunk == chunk && ops[i].kind != OpKind::update)
          last_read[static_cast<std::size_t>(ops[i].version)] = i;
      int newest = 0, alive = 1;
      for (std::size_t i = 0; i < ops.size(); ++i) {
        const Op& op = ops[i];
        if (op.chunk != chunk) continue;
        const auto version = static_cast<std::size_t>(op.version);
        if (op.kind == OpKind::update) {
          // A version without later readers ends before the new one begins.
          if (last_read[static_cast<std::size_t>(newest)] < i) --alive;
          newest = op.version;
          most = std::max(most, ++alive);
        } else if (last_read[version] == i && op.version != newest) {
          --alive;
        }
      }
    }
    return most;
  }

  const Table& table_;
  const int stage_;
  std::size_t number_ = 0;
  std::vector<Run> runs_;
  std::vector<int> made_;  // per chunk: updates so far
  int alive_ = 0;
  int pending_ = 0;
  StageUse use_;
};

}  // namespace

Expected<CheckedTable> check(const Table& table, int channel_bound) {
  const auto stages = static_cast<std::size_t>(table.stages);
  if (table.ops.size() != stages || table.version_lag.size() != stages)
    return Error{concat("a table of ", stages, " stages has operations of ", table.ops.size(),
                        " and version lags of ", table.version_lag.size(),
                        "; give one of each per stage")};
  CheckedTable checked;
  for (int stage = 0; stage < table.stages; ++stage) {
    const auto use = StageChecker(table, stage).check();
    if (!use) return use.error();
    checked.stages.push_back(*use);
  }
  const Costs costs = Costs::equal(table.model_chunks(), {});
  if (const auto played = play(table, costs, channel_bound); !played) return played.error();
  const auto bound = least_channel_bound(table);
  if (!bound) return bound.error();
  checked.channel_bound = *bound;
  return checked;
}

}  // namespace leeway::pipeline
