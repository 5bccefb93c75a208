#include "actors/worker/push_encoder.hpp"

#include <algorithm>
#include <utility>

#include "core/rng.hpp"
#include "kernels/accumulate.hpp"

namespace leeway {

PushEncoder::PushEncoder(std::shared_ptr<const Job> job, WorkerId id)
    : job_(std::move(job)), id_(id) {
  if (job_->push_codec) kept_.resize(job_->layout->blocks().size());
}

msg::BlockData PushEncoder::encode(BlockId block, Version version, Iteration iteration,
                                   Blob gradient) {
  const std::int64_t floats = job_->layout->block(block).floats;
  const auto count = static_cast<std::size_t>(floats);
  msg::BlockData data{block, version, DType::f32, Shape{floats}, std::move(gradient)};
  const Codec* const codec = job_->push_codec_of(job_->layout->block(block));
  if (!codec) return data;
  data.codec = id_of(job_->plan.compress.push);
  Blob& kept = kept_[block.value()];
  if (job_->cost_only) {  // all gradients are zero
    if (!kept) {
      kept = Blob::allocate(codec->size(count));
      codec->encode({data.data.as_floats(), count}, 0, {kept.mutable_data(), kept.size()});
    }
    data.data = kept;
    return data;
  }
  if (!data.data.unique()) {
    Blob copy = Blob::floats(floats);
    std::copy_n(data.data.as_floats(), count, copy.mutable_floats());
    data.data = std::move(copy);
  }
  float* const values = data.data.mutable_floats();
  if (kept) kernels::accumulate(values, kept.as_floats(), 1, floats, kernels::Write::add);
  const std::uint64_t draw = mix64(static_cast<std::uint64_t>(iteration.value()) ^
                                   static_cast<std::uint64_t>(block.value()) << 40);
  Blob encoded = Blob::allocate(codec->size(count));
  const std::span<std::byte> bytes(encoded.mutable_data(), encoded.size());
  codec->encode({values, count}, mix64(job_->plan.seed ^ mix64(id_.value()) ^ draw), bytes);
  codec->accumulate(bytes, -1, {values, count});
  zero_padding(*job_->model, job_->layout->block(block), values);  // an encoding may change it
  kept = std::exchange(data.data, std::move(encoded));
  return data;
}

}  // namespace leeway
