#include "actors/evaluation.hpp"

#include <algorithm>
#include <numeric>

#include "core/check.hpp"

namespace leeway {
namespace {

constexpr std::int64_t kSlice = 256;  // samples: about a millisecond for a small model

}  // namespace

Evaluation::Evaluation(std::shared_ptr<const Job> job, std::uint64_t cut, std::vector<Blob> weights)
    : job_(std::move(job)), cut_(cut), weights_(std::move(weights)) {
  LW_CHECK(weights_.size() == job_->layout->blocks().size(), weights_.size());
}

int Evaluation::parts() const {
  return static_cast<int>((job_->data.test->size() + kSlice - 1) / kSlice);
}

Cost Evaluation::cost(int) const {
  return {job_->model->flops_per_sample() * kSlice, 0};
}

void Evaluation::run(int part) {
  if (!pass_) {
    pass_ = std::make_unique<Pass>(job_->model, kSlice, false);
    for (auto& blob : weights_) blob = blob.on_host();
    versions_.assign(job_->model->parameters().size(), 1);  // the same in all slices
  }
  const Dataset& test = *job_->data.test;
  const std::int64_t first = part * kSlice;
  const std::int64_t count = std::min(kSlice, test.size() - first);
  std::vector<std::int64_t> samples(static_cast<std::size_t>(count));
  std::iota(samples.begin(), samples.end(), first);
  Blob x = Blob::floats(count * test.sample_shape().count());
  Blob targets = Blob::floats(count * std::max<std::int64_t>(test.target_count(), 1));
  std::vector<std::int32_t> labels(samples.size());
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
