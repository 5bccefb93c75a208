#include "actors/worker/push_encoder.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "actors/worker/checked_sum.hpp"
#include "core/mutant.hpp"
#include "core/rng.hpp"
#include "kernels/accumulate.hpp"
#include "policies/codec/blobs.hpp"

namespace leeway {
namespace {

struct Sums {
  double checked = 0, absolute = 0;
};

Sums sums_of(std::span<const float> values) {
  Sums sums{.checked = checked_sum(values)};
  for (const double value : values) sums.absolute += std::abs(value);
  return sums;
}

/// The floats of a blob, in memory of the host that no other blob refers to.
Blob unique_on_host(Blob blob) {
  Blob values = blob.on_host();
  blob.reset();
  return values.unique() ? values : Blob::copy_of(values.bytes());
}

void multiply(std::span<float> values, float factor) {
  if (factor == 1) return;
  for (float& value : values) value *= factor;
}

}  // namespace

PushEncoder::PushEncoder(std::shared_ptr<const Job> job, WorkerId id)
    : job_(std::move(job)),
      id_(id),
      correction_(MomentumCorrection::of(job_->plan)),
      may_be_dropped_(job_->may_drop_pushes()) {
  if (!is_active()) return;
  const auto blocks = job_->layout->blocks().size();
  residuals_.resize(blocks);
  zeros_.resize(blocks);
  if (correction_) velocities_.resize(blocks);
}

msg::BlockData PushEncoder::encode(BlockId id, Version version, Iteration iteration, Blob gradient,
                                   float scale, Outbox& out, bool flushes) {
  flushes = flushes && !planted(Mutant::residual_kept_back);
  const Block& block = job_->layout->block(id);
  msg::BlockData data{id, version, DType::f32, Shape{block.floats}, std::move(gradient)};
  const Codec* const codec = job_->push_codec_of(block, iteration);
  if (!codec || (flushes && job_->cost_only)) return data;
  if (!flushes) data.codec = id_of(job_->plan.compress.push);
  if (job_->cost_only) {
    data.data = encoded_zeros(id, *codec);
    return data;
  }
  Pushed before = state_of(id);
  const kernels::Encoding* const encoding = codec->encoding();
  data.data =
      encoding && !flushes && !out.is_checked()
          ? encode_with_residual(block, *encoding, std::move(data.data), scale)
          : encode_on_host(block, *codec, iteration, std::move(data.data), scale, out, flushes);
  keep(id, iteration, std::move(before));
  return data;
}

Blob PushEncoder::encode_with_residual(const Block& block, const kernels::Encoding& encoding,
                                       Blob gradient, float scale) {
  Executor& on = executor_on(gradient.device());
  const bool in_place = gradient.unique();
  const Blob values = on.fetch(gradient), residual = on.fetch(residuals_[block.id.value()]);
  Blob rest = in_place ? std::move(gradient) : on.floats(block.floats);
  if (in_place) on.begin_write(rest);
  Blob encoded = on.allocate(encoding.bytes(static_cast<std::size_t>(block.floats)));
  on.encode({.count = block.floats,
             .bytes = encoded.mutable_data(),
             .rest_out = rest.mutable_floats(),
             .values = values.as_floats(),
             .residual = residual.as_floats(),
             .scale = scale},
            encoding);
  zero_padding(on, block, rest.mutable_floats());  // an encoding may change it
  on.end_read(values);
  on.end_read(residual);
  on.end_write(encoded);
  on.end_write(rest);
  if (!planted(Mutant::residual_forgotten)) residuals_[block.id.value()] = std::move(rest);
  return encoded.on_host();
}

Blob PushEncoder::encode_on_host(const Block& block, const Codec& codec, Iteration iteration,
                                 Blob gradient, float scale, Outbox& out, bool flushes) {
  const BlockId id = block.id;
  Blob values = unique_on_host(std::move(gradient));
  const std::span<float> floats(values.mutable_floats(), static_cast<std::size_t>(block.floats));
  multiply(floats, scale);
  if (correction_) add_velocity(id, floats);
  Sums given, encoded;
  if (out.is_checked()) given = sums_of(floats);
  if (const Blob residual = residuals_[id.value()].on_host())
    kernels::accumulate(floats.data(), residual.as_floats(), 1, block.floats, kernels::Write::add);
  if (out.is_checked()) encoded = sums_of(floats);
  Sums rest;
  Blob pushed;
  if (flushes) {
    pushed = std::move(values);
    residuals_[id.value()].reset();
    if (correction_) velocities_[id.value()].reset();
  } else {
    const std::uint64_t draw = mix64(static_cast<std::uint64_t>(iteration.value()) ^
                                     static_cast<std::uint64_t>(id.value()) << 40);
    pushed = encode_blob(codec, values, block.floats,
                         mix64(job_->plan.seed ^ mix64(id_.value()) ^ draw));
    subtract_sent(id, codec, pushed.bytes(), floats);
    zero_padding(block, floats.data());
    if (out.is_checked()) rest = sums_of(floats);
    if (!planted(Mutant::residual_forgotten)) residuals_[id.value()] = std::move(values);
  }
  if (out.is_checked())
    out.emit_to_checkers(event::GradientEncoded{id_, iteration, id, given.checked, rest.checked,
                                                given.absolute + encoded.absolute});
  return pushed;
}

Executor& PushEncoder::executor_on(Device device) {
  for (const auto& on : executors_)
    if (on->device() == device) return *on;
  return *executors_.emplace_back(job_->executor(device));
}

msg::BlockData PushEncoder::assign(BlockId id, Version version, Iteration iteration, Blob values,
                                   const std::set<std::uint32_t>& slices, float scale,
                                   bool only_assigns, Outbox& out) {
  const Block& block = job_->layout->block(id);
  const auto count = static_cast<std::size_t>(block.floats);
  msg::BlockData data{id, version, DType::f32, Shape{block.floats}, std::move(values)};
  if (job_->cost_only || !job_->push_codec_of(block, iteration)) return data;
  Blob& residual = residuals_[id.value()];
  if (residual) residual = residual.on_host();
  const auto sums_of_residual = [&] {
    return residual && out.is_checked() ? sums_of({residual.as_floats(), count}) : Sums();
  };
  const Sums before = sums_of_residual();
  if (residual && !residual.unique()) residual = Blob::copy_of(residual.bytes());
  if (residual) clear(block, slices, residual.mutable_floats());
  const Sums others = sums_of_residual();
  Pushed pushed = state_of(id);
  Sums given;
  if (!only_assigns) {
    const Blob assigned = data.data.on_host();
    data.data = Blob::copy_of(assigned.bytes());
    const std::span<float> floats(data.data.mutable_floats(), count);
    clear(block, slices, floats.data());
    multiply(floats, scale);
    if (correction_) add_velocity(id, floats);
    clear(block, slices, floats.data());
    if (out.is_checked()) given = sums_of(floats);
    if (residual)
      kernels::accumulate(floats.data(), residual.as_floats(), 1, block.floats,
                          kernels::Write::add);
    residual.reset();
    if (correction_) clear_sent(id, floats);
    for_each(block, slices, [&](std::int64_t begin, std::int64_t end) {
      std::copy(assigned.as_floats() + begin, assigned.as_floats() + end, floats.data() + begin);
    });
  }
  if (!only_assigns) keep(id, iteration, std::move(pushed));
  if (out.is_checked())
    out.emit_to_checkers(event::GradientEncoded{
        id_, iteration, id, given.checked - (before.checked - others.checked),
        sums_of_residual().checked, given.absolute + before.absolute + others.absolute});
  return data;
}

PushEncoder::Pushed PushEncoder::state_of(BlockId block) const {
  if (!may_be_dropped_) return {};
  Pushed state{.residual = residuals_[block.value()]};
  if (correction_ && velocities_[block.value()])
    state.velocity = Blob::copy_of(velocities_[block.value()].bytes());
  return state;
}

void PushEncoder::keep(BlockId block, Iteration iteration, Pushed before) {
  if (!may_be_dropped_) return;
  before.after = residuals_[block.value()];
  pushed_.insert_or_assign({block, iteration}, std::move(before));
}

void PushEncoder::acknowledged(BlockId block, Iteration iteration, bool dropped) {
  const auto found = pushed_.find({block, iteration});
  if (found == pushed_.end()) return;
  const Pushed pushed = std::move(found->second);
  pushed_.erase(found);
  if (!dropped || planted(Mutant::residual_not_restored)) return;
  Blob& residual = residuals_[block.value()];
  if (residual.same_as(pushed.after)) {
    residual = pushed.residual;
    if (correction_) velocities_[block.value()] = pushed.velocity;
    return;
  }
  // A later push has changed the residual: takes back what this one did to it.
  const std::int64_t count = job_->layout->block(block).floats;
  Executor& on = executor_on((residual ? residual : pushed.after).device());
  Blob restored = residual ? on.floats(count) : on.filled(count, 0);
  const auto add = [&](const Blob& blob, float factor, kernels::Write write) {
    if (!blob) return;
    const Blob values = on.fetch(blob);
    on.accumulate(restored.mutable_floats(), values.as_floats(), factor, count, write);
    on.end_read(values);
  };
  add(residual, 1, kernels::Write::assign);
  add(pushed.residual, 1, kernels::Write::add);
  add(pushed.after, -1, kernels::Write::add);
  on.end_write(restored);
  residual = std::move(restored);
}

template <class Handle>
void PushEncoder::for_each(const Block& block, const std::set<std::uint32_t>& slices,
                           Handle handle) {
  for (const std::uint32_t number : slices) {
    const BlockSlice& slice = block.slices[number];
    handle(slice.offset, slice.offset + slice.floats);
  }
}

void PushEncoder::clear(const Block& block, const std::set<std::uint32_t>& slices, float* values) {
  for_each(block, slices, [&](std::int64_t begin, std::int64_t end) {
    std::fill(values + begin, values + end, 0.0f);
  });
}

const Blob& PushEncoder::encoded_zeros(BlockId block, const Codec& codec) {
  Blob& zeros = zeros_[block.value()];
  const auto floats = static_cast<std::size_t>(job_->layout->block(block).floats);
  if (zeros && zeros.size() == codec.size(floats)) return zeros;
  const std::vector<float> values(floats);
  zeros = Blob::allocate(codec.size(floats));
  codec.encode(values, 0, {zeros.mutable_data(), zeros.size()});
  return zeros;
}

void PushEncoder::add_velocity(BlockId block, std::span<float> gradient) {
  const auto count = static_cast<std::int64_t>(gradient.size());
  Blob& velocity = velocities_[block.value()];
  if (!velocity) {
    velocity = Blob::floats(count);
    std::fill_n(velocity.mutable_floats(), count, 0.0f);
  }
  kernels::accumulate(gradient.data(), velocity.as_floats(), correction_->factor, count,
                      kernels::Write::add);
  std::copy_n(gradient.data(), count, velocity.mutable_floats());
}

void PushEncoder::subtract_sent(BlockId block, const Codec& codec,
                                std::span<const std::byte> encoded, std::span<float> values) {
  if (!correction_) return codec.accumulate(encoded, -1, values);
  std::vector<float> sent(values.size());
  codec.accumulate(encoded, 1, sent);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] -= sent[i];
  clear_sent(block, sent);
}

void PushEncoder::clear_sent(BlockId block, std::span<const float> sent) {
  float* const velocity = velocities_[block.value()].mutable_floats();
  for (std::size_t i = 0; i < sent.size(); ++i)
    if (sent[i] != 0) velocity[i] = 0;
}

}  // namespace leeway
