#pragma once
// PushEncoder: encodes a worker's gradients, and keeps what the encodings lose.
//
// With error feedback, a push has the gradient plus the residual of the block, and what its
// encoding loses is the next residual (policies/codec/codec.hpp). So the sum of all decoded pushes
// and the residual is the sum of all gradients, to rounding. The residual is part of the worker: it
// outlives sessions, and is lost with the worker. A push before a checkpoint carries it in full, so
// that the checkpoint lacks nothing.
// With a momentum correction, it keeps velocities too (policies/codec/momentum_correction.hpp).
//
// A dense codec runs on the device of the gradient: one kernel adds the residual, encodes, and
// writes the next residual. A GPU keeps the residual, and only the encoding is copied to the host.
// The host handles everything else: top_k and random_k, whose selections need several passes;
// velocities, which only these codecs have; gradients in full (flushes, assign); and runs with
// checkers, which need sums over the values.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "actors/job.hpp"
#include "actors/outbox.hpp"
#include "kernels/executor.hpp"
#include "messages/tensors.hpp"
#include "policies/codec/momentum_correction.hpp"

namespace leeway {

class PushEncoder {
 public:
  PushEncoder(std::shared_ptr<const Job> job, WorkerId id);

  /// Whether the plan's pushes have a codec.
  bool is_active() const { return job_->push_codecs != nullptr; }
  /// A gradient of a block as a push carries it. `version`: of the weights that it was computed on.
  /// `scale`: a factor of the gradient, which limits its norm. The push's own factor is then 1.
  /// `flushes`: the push carries gradient and residual in full, and nothing is left. Without a
  /// codec, the gradient stays as it is.
  msg::BlockData encode(BlockId block, Version version, Iteration iteration, Blob gradient,
                        float scale, Outbox& out, bool flushes = false);
  /// A block of a bucket with new weights, which travels without an encoding. `values`: the new
  /// weights of these slices, and the gradients of others. The residuals of the others are sent
  /// with their gradients; those of the slices are dropped, as new weights replace them, and their
  /// velocities stay. With `only_assigns` no gradients are sent.
  msg::BlockData assign(BlockId block, Version version, Iteration iteration, Blob values,
                        const std::set<std::uint32_t>& slices, float scale, bool only_assigns,
                        Outbox& out);
  /// A shard has acknowledged the push of this block. If it has dropped the push, the residual
  /// becomes what it would be without it.
  void acknowledged(BlockId block, Iteration iteration, bool dropped);
  /// Forgets the pushes without an acknowledgement: they are of an earlier session.
  void forget_pushed() { pushed_.clear(); }

 private:
  /// The state of a block before a push that its shard may drop, and the residual after it.
  struct Pushed {
    Blob residual, velocity, after;
  };
  /// The present state, without `after`; empty if no push may be dropped.
  Pushed state_of(BlockId block) const;
  /// The encoding, in host memory, of scale * gradient + residual, on the gradient's device.
  /// Replaces the residual.
  Blob encode_with_residual(const Block& block, const kernels::Encoding& encoding, Blob gradient,
                            float scale);
  /// The same on the host, for all codecs and with what checkers need. With `flushes`, the values
  /// themselves.
  Blob encode_on_host(const Block& block, const Codec& codec, Iteration iteration, Blob gradient,
                      float scale, Outbox& out, bool flushes);
  /// For the work of this encoder: the executors of works serve other threads.
  Executor& executor_on(Device device);
  /// Keeps the state before a push until the push is acknowledged, if it may be dropped.
  void keep(BlockId block, Iteration iteration, Pushed before);
  /// The encoding of zeros, for runs that compute no gradients.
  const Blob& encoded_zeros(BlockId block, const Codec& codec);
  /// With a momentum correction: replaces a gradient by the velocity that it gives.
  void add_velocity(BlockId block, std::span<float> gradient);
  /// Calls `handle(begin, end)` with the floats of each of these slices.
  template <class Handle>
  static void for_each(const Block& block, const std::set<std::uint32_t>& slices, Handle handle);
  /// Sets the slices to zero.
  static void clear(const Block& block, const std::set<std::uint32_t>& slices, float* values);
  /// Subtracts what an encoding carries from the values, and clears its velocity.
  void subtract_sent(BlockId block, const Codec& codec, std::span<const std::byte> encoded,
                     std::span<float> values);
  /// Clears the velocities of the values that are sent.
  void clear_sent(BlockId block, std::span<const float> sent);

  std::shared_ptr<const Job> job_;
  WorkerId id_;
  std::vector<std::shared_ptr<Executor>> executors_;  // of the devices so far
  std::optional<MomentumCorrection> correction_;
  // By block; null: none yet.
  std::vector<Blob> residuals_, velocities_, zeros_;
  bool may_be_dropped_;                                     // pushes may be
  std::map<std::pair<BlockId, Iteration>, Pushed> pushed_;  // that may be; not acknowledged
};

}  // namespace leeway
