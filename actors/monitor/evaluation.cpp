#include "actors/monitor/evaluation.hpp"

#include <algorithm>
#include <exception>
#include <numeric>

#include "core/check.hpp"
#include "core/text.hpp"

namespace leeway {

Evaluation::Evaluation(std::shared_ptr<const Job> job, std::uint64_t snapshot, Iteration iteration,
                       std::vector<Blob> weights)
    : job_(std::move(job)),
      snapshot_(snapshot),
      iteration_(iteration),
      slice_(evaluation_batch(*job_->model)),
      weights_(std::move(weights)) {
  LW_CHECK(weights_.size() == job_->layout->blocks().size(), weights_.size());
}

int Evaluation::parts() const {
  return static_cast<int>((job_->data.test->size() + slice_ - 1) / slice_);
}

Cost Evaluation::cost(int) const {
  return {job_->model->flops_per_sample() * slice_, 0};
}

void Evaluation::run(int part) {
  // With costs only, gradients are zero and the weights never change.
  if (!job_->has_losses() || !error_.empty()) return;
  try {
    evaluate(part);
  } catch (const std::exception& error) {
    error_ = concat("evaluation: ", error.what());
  }
}

void Evaluation::evaluate(int part) {
  if (!pass_) {
    pass_ = std::make_unique<Pass>(job_->model, slice_, false);
    for (auto& blob : weights_) blob = blob.on_host();
    versions_.assign(job_->model->parameters().size(), 1);  // the same in all slices
  }
  const Dataset& test = *job_->data.test;
  const std::int64_t first = part * slice_;
  const std::int64_t count = std::min(slice_, test.size() - first);
  std::vector<std::int64_t> samples(static_cast<std::size_t>(count));
  std::iota(samples.begin(), samples.end(), first);
  Blob x = Blob::floats(count * test.sample_shape().count());
  Blob targets = Blob::floats(count * std::max<std::int64_t>(test.target_count(), 1));
  std::vector<std::int32_t> labels(static_cast<std::size_t>(count * test.label_count()));
  test.gather(samples, x.mutable_floats(), labels.data(), targets.mutable_floats());

  std::vector<const float*> memory;
  for (const auto& blob : weights_) memory.push_back(blob.as_floats());
  const ParameterSlices<const float> slices(*job_->model, *job_->layout, memory);
  const Batch batch{count,
                    x.as_floats(),
                    test.classes() > 0 ? labels.data() : nullptr,
                    test.target_count() > 0 ? targets.as_floats() : nullptr,
                    {}};
  const auto result = pass_->forward(batch, slices.views(), versions_);
  loss_sum_ += result.loss * static_cast<double>(count);
  correct_ += result.correct;
}

}  // namespace leeway
