#include "actors/shard/push_check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "actors/shard/contribution.hpp"
#include "core/limits.hpp"
#include "core/text.hpp"
#include "policies/codec/blobs.hpp"

namespace leeway {
namespace {

Status validate_block(const msg::BlockData& data, const Block& expected, Iteration iteration,
                      const Job& job) {
  if (data.block != expected.id)
    return Error{concat("expected block ", expected.id, ", found ", data.block)};
  if (data.dtype != DType::f32 || data.shape.count() != expected.floats)
    return Error{concat("block ", data.block, " must be ", expected.floats, " x f32, is ",
                        data.shape, " x ", name_of(data.dtype))};
  const Status valid =
      check_encoding(data.codec, data.data, expected.floats, id_of(job.plan.compress.push),
                     job.push_codec_of(expected, iteration));
  return valid ? valid : Error{concat("block ", data.block, ": ", valid.error().text)};
}

/// Whether a factor of losses is a power of two that shards send.
bool is_loss_scale(float scale) {
  int exponent = 0;
  return scale >= 1 && scale <= limits::kMostLossScale && std::frexp(scale, &exponent) == 0.5f;
}

}  // namespace

Status validate_push(const msg::Push& push, const StageShare::AtShard& share, const Job& job) {
  if (push.bucket_count != share.buckets.size())
    return Error{concat("bucket_count is ", push.bucket_count, ", this shard has ",
                        share.buckets.size(), " buckets")};
  if (push.kind == msg::Push::Kind::delta && !job.local_optimizer)
    return Error{"deltas are not taken here, send gradients"};
  if (push.kind == msg::Push::Kind::gradient && job.local_optimizer)
    return Error{"gradients are not taken here, send the deltas of local steps"};
  if (!push.rows.empty()) return Error{"sparse pushes are not taken here, send all rows"};
  if (push.kind == msg::Push::Kind::empty) {
    if (!push.assigned.empty()) return Error{"an empty push assigns no slices"};
    if (push.samples == 0) return {};
    return Error{concat("an empty push has ", push.samples, " samples; send 0")};
  }
  if ((push.loss_scale > 0) != job.scales_losses)
    return Error{concat("the loss scale is ", push.loss_scale, ", and losses have ",
                        job.scales_losses ? "one" : "none", " in this run")};
  if (job.scales_losses && !is_loss_scale(push.loss_scale))
    return Error{concat("the loss scale is ", push.loss_scale, ", must be a power of two up to ",
                        limits::kMostLossScale)};
  const bool only_assigns = push.samples == 0 && push.weight == 0 && !push.assigned.empty();
  if (!only_assigns && (push.samples == 0 || push.weight <= 0))
    return Error{"a gradient needs samples and a weight above 0"};
  if (push.scale < 0 || push.scale > 1)
    return Error{concat("scale is ", push.scale, ", must be 0 to 1")};
  // The shard recovers the samples of a round from the weight.
  constexpr double kMostSamples = std::numeric_limits<std::uint32_t>::max();
  if (!only_assigns && (push.weight > 1 || push.samples / push.weight > kMostSamples))
    return Error{concat("weight ", push.weight, " is not the share of ", push.samples,
                        " samples in a round")};
  if (push.kind == msg::Push::Kind::overflow) {
    if (!job.scales_losses) return Error{"no loss is scaled, so no gradient overflows in this run"};
    if (push.blocks.empty() && push.assigned.empty()) return {};
    return Error{"a push of an overflow has no blocks"};
  }
  const auto& blocks = share.buckets[push.bucket].blocks;
  if (push.blocks.size() != blocks.size())
    return Error{concat("bucket ", push.bucket, " has ", blocks.size(), " blocks, not ",
                        push.blocks.size())};
  std::size_t slices = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (auto valid =
            validate_block(push.blocks[i], job.layout->block(blocks[i]), push.iteration, job);
        !valid)
      return valid;
    slices += job.layout->block(blocks[i]).slices.size();
  }
  if (!push.assigned.empty() && std::ranges::any_of(push.blocks, is_encoded))
    return Error{"slices of encoded blocks are assigned; send these blocks as they are"};
  if (!push.assigned.empty() && push.assigned.back() >= slices)
    return Error{concat("slice ", push.assigned.back(), " is assigned, bucket ", push.bucket,
                        " has ", slices)};
  return {};
}

}  // namespace leeway
