#include "actors/stage/stage_sender.hpp"

#include <utility>

namespace leeway {
namespace {

void count(const msg::StageTensor& tensor, msg::WorkerReport& report) {
  report.stage_bytes += tensor.data.size();
  report.plain_stage_bytes += static_cast<std::uint64_t>(tensor.shape.count()) * sizeof(float);
}

}  // namespace

void StageSender::send(Address to, Body body, Outbox& out) const {
  out.send(to, encode({.session = session_, .body = std::move(body)}));
}

void StageSender::send_mini_batch(Iteration iteration, const LeasedIteration& leased,
                                  Outbox& out) const {
  if (position_.is_last()) return;
  send(position_.next(),
       msg::MiniBatch{iteration, leased.epoch, leased.begin, leased.end, leased.round_samples,
                      leased.applied, leased.flushes},
       out);
}

void StageSender::send_no_more(Iteration iteration, Outbox& out) const {
  if (!position_.is_last()) send(position_.next(), msg::NoMore{iteration}, out);
}

void StageSender::send_given_up(Iteration iteration, Outbox& out) const {
  if (!position_.is_first()) send(position_.previous(), msg::GivenUp{iteration}, out);
  if (!position_.is_last()) send(position_.next(), msg::GivenUp{iteration}, out);
}

void StageSender::send_activation(const MicroBatchKey& of, std::int64_t samples, Blob data,
                                  msg::WorkerReport& report, Outbox& out) const {
  const auto& [iteration, micro_batch, model_chunk] = of;
  if (model_chunk + 1 == position_.model_chunks()) return;
  msg::StageTensor tensor =
      activations_.encode(position_.output_shape(model_chunk, samples), std::move(data));
  count(tensor, report);
  send(position_.owner_of(model_chunk + 1),
       msg::Activation{iteration, micro_batch, model_chunk + 1, std::move(tensor)}, out);
}

void StageSender::send_gradient(const MicroBatchKey& of, std::int64_t samples, Blob data,
                                Clock trained, msg::WorkerReport& report, Outbox& out) const {
  const auto& [iteration, micro_batch, model_chunk] = of;
  if (model_chunk == 0) return;
  msg::StageTensor tensor{DType::f32, Shape{0}, Blob::floats(0)};
  if (position_.needs_output_gradient(model_chunk - 1))
    tensor = gradients_.encode(position_.input_shape(model_chunk, samples), std::move(data));
  count(tensor, report);
  send(position_.owner_of(model_chunk - 1),
       msg::OutputGradient{iteration, micro_batch, model_chunk - 1, std::move(tensor), trained},
       out);
}

}  // namespace leeway
