// The memory that chunks of a model keep equals the predicted memory.
#include "models/chunk_bytes.hpp"

#include <catch2/catch.hpp>

#include "tensor/blob_pool.hpp"
#include "tests/actors/chunk_tasks.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

/// Runs forwards of several micro-batches of each chunk, then their backwards. Compares the bytes
/// that each micro-batch keeps, by its stash and by the pool.
void require_bytes(const Task& task, int chunks, std::int64_t batch, ChunkOptions options) {
  constexpr int kMicroBatches = 5;
  Memory memory(task.model);
  memory.initialize(3);
  const Model& model = *task.model;
  for (const ModelChunk chunk : split_into(model, chunks)) {
    CAPTURE(chunk.first, chunk.end);
    const ChunkBytes bytes = chunk_bytes(model, chunk, batch, options);
    const bool last = chunk.end == model.layers();
    ChunkPass pass(task.model, chunk, batch, true, options);
    const auto floats = [&](int layer) {
      Blob blob = Blob::floats(batch * model.output_of(layer).count());
      // Also valid as tokens.
      for (std::int64_t i = 0; i < batch * model.output_of(layer).count(); ++i)
        blob.mutable_floats()[i] = static_cast<float>(i % 3);
      return blob;
    };
    const Batch all = task.micro_batch(0, 1);
    const Batch given{.size = batch,
                      .labels = all.labels,
                      .targets = all.targets,
                      .sample_keys = all.sample_keys.first(static_cast<std::size_t>(batch))};
    // One version, so that all micro-batches share the packed weights.
    const std::vector<std::uint64_t> versions(model.parameters().size(), 1);
    std::vector<Stash*> stashes;
    std::vector<std::int64_t> in_use;
    for (int m = 0; m < kMicroBatches; ++m) {
      stashes.push_back(&pass.take_stash());
      pass.start_forward(*stashes.back(), {.batch = given, .input = floats(chunk.first - 1)},
                         memory.weights(), versions);
      REQUIRE(stashes.back()->bytes() == bytes.kept());
      in_use.push_back(static_cast<std::int64_t>(host_pool_counts().bytes_in_use));
    }
    // The pool rounds each blob up, by a quarter of its bytes or to 64. The first micro-batch uses
    // memory of the pass; each later one takes the same amount.
    const std::int64_t one = in_use[2] - in_use[1];
    REQUIRE(one >= bytes.kept());
    REQUIRE(one <= bytes.kept() * 5 / 4 + 64 * (4 + 2 * (chunk.end - chunk.first)));
    for (int m = 2; m < kMicroBatches; ++m)
      REQUIRE(in_use[static_cast<std::size_t>(m)] - in_use[static_cast<std::size_t>(m) - 1] == one);
    if (!options.split_backward) continue;
    for (Stash* stash : stashes) {
      pass.backward(*stash, BackwardFor::inputs, last ? Blob() : floats(chunk.end - 1),
                    memory.weights(), memory.gradients());
      REQUIRE(stash->bytes() == bytes.kept() + bytes.pending + bytes.shared);
    }
    for (Stash* stash : stashes) {
      pass.backward(*stash, BackwardFor::weights, {}, memory.weights(), memory.gradients());
      pass.release(*stash);
    }
  }
}

}  // namespace

TEST_CASE("a chunk keeps the bytes that its shapes predict", "[chunks]") {
  kernels::use_one_compute_thread();
  const std::int64_t batch = 4;
  for (const Task& task : {mlp_task(batch), conv_task(), residual_task(), text_task(true)})
    for (const int chunks : {1, 2, 3, 4})
      for (const bool recompute : {false, true})
        for (const bool split_backward : {false, true}) {
          CAPTURE(task.model->layers(), chunks, recompute, split_backward);
          require_bytes(task, chunks, batch,
                        {.split_backward = split_backward, .recompute = recompute});
        }
}

TEST_CASE("the bytes of pieces in a partition search add up to those of chunks", "[chunks]") {
  for (const Task& task : {mlp_task(), conv_task(), residual_task(), text_task(true)}) {
    const std::int64_t batch = 4;
    const Model& model = *task.model;
    const auto pieces = pieces_of(model, batch, *make_cpu_executor());
    for (std::size_t first = 0; first < pieces.size(); ++first)
      for (std::size_t end = first + 1; end <= pieces.size(); ++end) {
        const ModelChunk chunk{pieces[first].first, pieces[end - 1].end};
        CAPTURE(chunk.first, chunk.end);
        const ChunkBytes exact = chunk_bytes(model, chunk, batch, {.split_backward = true});
        std::int64_t kept = pieces[first].first_bytes, open = 0, weights = 0, statistics = 0;
        for (std::size_t i = first; i < end; ++i) {
          kept += pieces[i].kept_bytes;
          open += pieces[i].gradient_bytes;
          weights += pieces[i].weight_bytes;
          statistics += pieces[i].statistic_bytes;
        }
        // A chunk of views keeps nothing: its output is its input.
        kept = std::max<std::int64_t>(0, kept - unread_bytes(model, chunk, batch));
        REQUIRE(kept == exact.activations);
        REQUIRE(open == exact.pending);
        const std::int64_t table = model.borrowed_parameter(model.layers() - 1) == Model::kNone
                                       ? 0
                                       : 4 * model.parameters()[0].spec.shape.count();
        const bool twice = chunk == ModelChunk::whole(model);
        REQUIRE(weights == exact.weights + (twice ? table : 0));
        REQUIRE(statistics == exact.statistics);
      }
  }
}
