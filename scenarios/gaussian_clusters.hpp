#pragma once
// GaussianClusters: the classes of the toy task of Liu et al., "Asynchronous Local-SGD Training for
// Language Modeling", arXiv 2401.09135, 2024. A class is a mixture of Gaussian clusters, whose
// centres are uniform on the unit sphere.
#include <leeway/core/rng.hpp>
#include <leeway/leeway.hpp>
#include <leeway/models/datasets/permutation.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

namespace leeway::study {

class GaussianClusters final : public Dataset {
 public:
  static constexpr std::int64_t kInputs = 512;
  static constexpr int kClasses = 4;
  static constexpr double kNoise = 0.5;  // standard deviation of each input

  /// As many samples in each cluster. Requires a multiple of the number of clusters.
  GaussianClusters(std::int64_t clusters_per_class, std::int64_t samples, std::uint64_t seed)
      : samples_(samples) {
    Rng rng(seed);
    const std::int64_t clusters = clusters_per_class * kClasses;
    values_.reserve(static_cast<std::size_t>(samples * kInputs));
    for (std::int64_t cluster = 0; cluster < clusters; ++cluster) {
      std::vector<double> center(kInputs);
      double squares = 0;
      for (double& one : center) {
        one = rng.normal();
        squares += one * one;
      }
      for (double& one : center) one /= std::sqrt(squares);
      for (std::int64_t sample = 0; sample < samples / clusters; ++sample)
        for (const double one : center)
          values_.push_back(static_cast<float>(one + kNoise * rng.normal()));
    }
  }

  std::int64_t size() const override { return samples_; }
  Shape sample_shape() const override { return Shape{kInputs}; }
  int classes() const override { return kClasses; }
  std::int64_t target_count() const override { return 0; }
  void gather(std::span<const std::int64_t> samples, float* x, std::int32_t* labels,
              float*) const override {
    for (const std::int64_t sample : samples) {
      x = std::copy_n(values_.begin() + sample * kInputs, kInputs, x);
      *labels++ = static_cast<std::int32_t>(sample * kClasses / samples_);
    }
  }

 private:
  const std::int64_t samples_;
  std::vector<float> values_;
};

/// Some samples of a data set, drawn at random; all of them if there are no more.
class DrawnSamples final : public Dataset {
 public:
  DrawnSamples(std::shared_ptr<const Dataset> all, std::int64_t size, std::uint64_t seed)
      : all_(std::move(all)), samples_(permutation(all_->size(), Rng(seed))) {
    samples_.resize(static_cast<std::size_t>(std::min(size, all_->size())));
  }

  std::int64_t size() const override { return std::ssize(samples_); }
  Shape sample_shape() const override { return all_->sample_shape(); }
  int classes() const override { return all_->classes(); }
  std::int64_t target_count() const override { return all_->target_count(); }
  void gather(std::span<const std::int64_t> samples, float* x, std::int32_t* labels,
              float* targets) const override {
    std::vector<std::int64_t> chosen;
    for (const std::int64_t sample : samples)
      chosen.push_back(samples_[static_cast<std::size_t>(sample)]);
    all_->gather(chosen, x, labels, targets);
  }

 private:
  const std::shared_ptr<const Dataset> all_;
  std::vector<std::int64_t> samples_;
};

}  // namespace leeway::study
