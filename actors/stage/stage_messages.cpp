// What a stage says to its neighbours, and hears of them.
#include <algorithm>
#include <utility>

#include "actors/stage/stage.hpp"
#include "core/limits.hpp"
#include "core/mutant.hpp"
#include "core/text.hpp"
#include "policies/balance/balance.hpp"
#include "policies/balance/micro_batches.hpp"

namespace leeway {
namespace {

/// The shape of a micro-batch of `samples` before layer `end` of the model.
Shape shape_before(const Model& model, int end, std::int64_t samples) {
  const Shape& of_one = model.output_of(end - 1);
  std::vector<std::int64_t> extents{samples};
  for (int axis = 0; axis < of_one.rank(); ++axis) extents.push_back(of_one[axis]);
  return Shape(extents);
}

}  // namespace

bool Stage::take(Address from, Envelope& envelope, Outbox& out) {
  const auto take_as = [&]<class T>(T*) {
    auto* message = std::get_if<T>(&envelope.body);
    if (!message) return false;
    if (!is_neighbour(from))
      refuse_malformed(from, message->iteration,
                       concat("a ", name_of(envelope.body), " of ", from,
                              ", which is not a stage before or behind this one"),
                       out);
    else if (!is_for_another_start(from, *message, out))
      handle(from, *message, out);
    return true;
  };
  return take_as(static_cast<msg::MiniBatch*>(nullptr)) ||
         take_as(static_cast<msg::NoMore*>(nullptr)) ||
         take_as(static_cast<msg::Activation*>(nullptr)) ||
         take_as(static_cast<msg::OutputGradient*>(nullptr)) ||
         take_as(static_cast<msg::GivenUp*>(nullptr));
}

template <class T>
bool Stage::is_for_another_start(Address from, T& message, Outbox& out) {
  if (message.start == start_ || (message.start < start_ && planted(Mutant::stale_start_taken)))
    return state_ != State::running || given_up_;
  if (message.start < start_) return true;
  // A Start is on its way here, and what can be said before it comes is little.
  if (early_.size() < limits::kMaxEarlyMessages)
    early_.emplace_back(from, Envelope{.body = std::move(message)});
  else
    refuse_malformed(from, message.iteration, "too much is said of a Start that does not come",
                     out);
  return true;
}

// ---- the samples of iterations ----

void Stage::announce(Outbox& out) {
  if (end_) return;
  if (stopping_) return end_at(announced_, out);
  // One iteration ahead, so that stages can pull while they wait for its first activation.
  const Iteration ahead = iteration_of(program_.next_forward(next_op_)) + 1;
  lease_beyond(announced_, out);
  while (announced_ <= ahead && leases_.leased(announced_)) {
    begin_iteration(announced_, leases_.take(), out);
    lease_beyond(announced_, out);
  }
  if (leases_.no_data() && !leases_.leased(announced_)) end_at(announced_, out);
}

void Stage::begin_iteration(Iteration iteration, LeasedIteration leased, Outbox& out) {
  announced_ = iteration + 1;
  may_pull_ = true;
  auto& mini_batch = mini_batches_[iteration];
  mini_batch.micro_batches = micro_batches_of(job_->plan, leased.samples());
  mini_batch.backward.assign(updated_.size(), 0);
  mini_batch.summed.assign(updated_.size(), 0);
  mini_batch.leased = std::move(leased);
  if (is_last_stage()) return;
  const LeasedIteration& of = mini_batch.leased;
  send(stage_address(stage_ + 1),
       msg::MiniBatch{start_, iteration, of.epoch, of.begin, of.end, of.round_samples, of.applied},
       out);
}

void Stage::handle(Address from, msg::MiniBatch& said, Outbox& out) {
  const bool fits = said.end <= job_->data.train->size() &&
                    said.end - said.begin <= std::int64_t{largest_batch(job_->plan)};
  if (is_lead() || from != stage_address(stage_ - 1) || said.iteration != announced_ || end_ ||
      !fits)
    return refuse_malformed(from, said.iteration,
                            "mini-batch: not the next, or beyond what the plan allows", out);
  begin_iteration(said.iteration,
                  {said.epoch, said.begin, said.end, said.round_samples, std::move(said.applied)},
                  out);
  advance(out);
}

void Stage::end_at(Iteration iteration, Outbox& out) {
  end_ = iteration;
  if (!is_last_stage()) send(stage_address(stage_ + 1), msg::NoMore{start_, iteration}, out);
}

void Stage::handle(Address from, const msg::NoMore& no_more, Outbox& out) {
  if (is_lead() || from != stage_address(stage_ - 1) || no_more.iteration != announced_ || end_)
    return refuse_malformed(from, no_more.iteration, "no more: of another iteration", out);
  end_at(no_more.iteration, out);
  advance(out);
}

// ---- tensors ----

std::string Stage::misfit(Address from, Address expected, const Key& key, int end, bool wanted,
                          const msg::StageTensor& tensor) const {
  const auto& [iteration, micro_batch, part] = key;
  if (from != expected) return concat("of part ", part, " it is not for ", from, " to say");
  const auto found = mini_batches_.find(iteration);
  if (found == mini_batches_.end()) return concat("iteration ", iteration, " is not under way");
  const std::int64_t samples = found->second.size_of(micro_batch);
  if (samples == 0) return concat("micro-batch ", micro_batch, " has no samples");
  const Shape shape = wanted ? shape_before(*job_->model, end, samples) : Shape{0};
  if (tensor.dtype == DType::f32 && tensor.shape == shape) return {};
  return concat("the tensor of micro-batch ", micro_batch, " is ", tensor.shape, " x ",
                name_of(tensor.dtype), ", not ", shape, " x f32");
}

void Stage::handle(Address from, msg::Activation& activation, Outbox& out) {
  const std::uint32_t part = activation.chunk;
  const Key key{activation.iteration, activation.micro_batch, part};
  const bool ours = part > 0 && part < parts() && part % job_->stages->count() == stage_;
  const std::string text = ours ? misfit(from, stage_of_chunk(part - 1), key, range_of(part).first,
                                         true, activation.tensor)
                                : concat("part ", part, " is not here");
  if (!text.empty())
    return refuse_malformed(from, activation.iteration, concat("activation: ", text), out);
  activations_.try_emplace(key, std::move(activation.tensor.data));
  advance(out);
}

void Stage::handle(Address from, msg::OutputGradient& gradient, Outbox& out) {
  const std::uint32_t part = gradient.chunk;
  const Key key{gradient.iteration, gradient.micro_batch, part};
  const bool ours = part < parts() - 1 && part % job_->stages->count() == stage_;
  const std::string text = ours ? misfit(from, stage_of_chunk(part + 1), key, range_of(part).end,
                                         gradient_wanted_[part], gradient.tensor)
                                : concat("part ", part, " is not here");
  if (!text.empty())
    return refuse_malformed(from, gradient.iteration, concat("gradient: ", text), out);
  // From the last stage to the first, between two chunks, nothing is said of those behind.
  if (!is_last_stage()) behind_ = std::max(behind_, gradient.clock);
  gradients_.try_emplace(key, std::move(gradient.tensor.data));
  advance(out);
}

void Stage::send_tensor(const StageWork& work, Blob data, Outbox& out) {
  const StageWork::Task& task = work.task();
  const auto& [iteration, micro_batch, part] = key_of(working_on_);
  const bool forward = task.kind == pipeline::OpKind::forward;
  const int end = forward ? range_of(part).end : range_of(part).first;
  msg::StageTensor tensor{DType::f32, Shape{0}, Blob::floats(0)};
  if (forward || gradient_wanted_[part - 1])
    tensor = {DType::f32, shape_before(*job_->model, end, task.micro_batch->size()),
              std::move(data)};
  if (forward)
    send(stage_of_chunk(part + 1),
         msg::Activation{start_, iteration, micro_batch, part + 1, std::move(tensor)}, out);
  else
    send(
        stage_of_chunk(part - 1),
        msg::OutputGradient{start_, iteration, micro_batch, part - 1, std::move(tensor), trained()},
        out);
}

// ---- a loss that is not finite ----

void Stage::give_up(Iteration iteration, Outbox& out) {
  given_up_ = true;
  if (!is_lead()) send(stage_address(stage_ - 1), msg::GivenUp{start_, iteration}, out);
}

void Stage::handle(Address from, const msg::GivenUp& given_up, Outbox& out) {
  if (is_last_stage() || from != stage_address(stage_ + 1))
    return refuse_malformed(from, given_up.iteration, "given up: not by the next stage", out);
  give_up(given_up.iteration, out);
  advance(out);
}

}  // namespace leeway
