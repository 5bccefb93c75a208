#include "models/datasets/synthetic.hpp"

#include <cmath>
#include <limits>
#include <numeric>

#include "core/check.hpp"

namespace leeway {
namespace {

using Catch::Matchers::Contains;

struct Samples {
  std::vector<float> x, targets;
  std::vector<std::int32_t> labels;
};
Samples all_of(const Dataset& set) {
  const auto size = static_cast<std::size_t>(set.size());
  Samples out{std::vector<float>(size * static_cast<std::size_t>(set.sample_shape().count())),
              std::vector<float>(size), std::vector<std::int32_t>(size)};
  std::vector<std::int64_t> samples(size);
  std::iota(samples.begin(), samples.end(), std::int64_t{0});
  set.gather(samples, out.x.data(), out.labels.data(), out.targets.data());
  return out;
}

TEST_CASE("a line has the slope, intercept and noise of its source") {
  const plan::Synthetic source{20'000, 5'000, plan::Line{-4, 7, 0.5}};
  const auto data = make_synthetic(source, 3);
  REQUIRE(data);
  CHECK(data->train->size() == 20'000);
  CHECK(data->test->size() == 5'000);
  CHECK(data->train->sample_shape() == Shape{1});
  CHECK(data->train->classes() == 0);
  CHECK(data->train->target_count() == 1);
  for (const auto* set : {data->train.get(), data->test.get()}) {
    const auto all = all_of(*set);
    const auto n = static_cast<double>(set->size());
    double sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (std::size_t i = 0; i < all.x.size(); ++i) {
      const double x = all.x[i], y = all.targets[i];
      CHECK((x >= -1 && x < 1));
      sx += x, sy += y, sxx += x * x, sxy += x * y;
    }
    const double slope = (n * sxy - sx * sy) / (n * sxx - sx * sx);
    const double intercept = (sy - slope * sx) / n;
    CHECK(slope == Approx(-4).margin(0.05));
    CHECK(intercept == Approx(7).margin(0.05));
    double residual = 0;
    for (std::size_t i = 0; i < all.x.size(); ++i)
      residual += std::pow(all.targets[i] - slope * all.x[i] - intercept, 2) / n;
    CHECK(std::sqrt(residual) == Approx(0.5).epsilon(0.05));
  }
}

/// (classes, features): the mean of each class.
std::vector<double> means(const Samples& all, std::size_t classes, std::size_t features) {
  std::vector<double> sums(classes * features), counts(classes);
  for (std::size_t i = 0; i < all.labels.size(); ++i) {
    const auto label = static_cast<std::size_t>(all.labels[i]);
    ++counts[label];
    for (std::size_t f = 0; f < features; ++f)
      sums[label * features + f] += all.x[i * features + f];
  }
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] /= counts[i / features];
  return sums;
}

TEST_CASE("clusters lie on the sphere, the same in training and test data") {
  const plan::Synthetic source{20'000, 20'000, plan::Clusters{4, 16, 5}};
  const auto data = make_synthetic(source, 3);
  REQUIRE(data);
  CHECK(data->train->classes() == 4);
  CHECK(data->train->target_count() == 0);
  const auto train = all_of(*data->train), test = all_of(*data->test);
  CHECK(train.x != test.x);
  const auto centers = means(train, 4, 16), others = means(test, 4, 16);
  double spread = 0;
  for (std::size_t i = 0; i < centers.size(); ++i)
    CHECK(centers[i] == Approx(others[i]).margin(0.1));
  for (std::size_t i = 0; i < train.labels.size(); ++i)
    for (std::size_t f = 0; f < 16; ++f)
      spread += std::pow(
          train.x[i * 16 + f] - centers[static_cast<std::size_t>(train.labels[i]) * 16 + f], 2);
  CHECK(spread / 320'000 == Approx(1).epsilon(0.02));
  for (std::size_t c = 0; c < 4; ++c) {
    double square = 0;
    for (std::size_t f = 0; f < 16; ++f) square += centers[c * 16 + f] * centers[c * 16 + f];
    CHECK(std::sqrt(square) == Approx(5).margin(0.1));
  }
}

TEST_CASE(
    "synthetic data depends only on the seed, and the test set not on the training set's size") {
  plan::Synthetic source{100, 50, plan::Clusters{3, 4, 2}};
  const auto one = make_synthetic(source, 1), same = make_synthetic(source, 1),
             other = make_synthetic(source, 2);
  CHECK(all_of(*one->train).x == all_of(*same->train).x);
  CHECK(all_of(*one->train).x != all_of(*other->train).x);
  source.samples = 7;
  CHECK(all_of(*make_synthetic(source, 1)->test).x == all_of(*one->test).x);
}

TEST_CASE(
    "counts of zero, numbers that are not finite and sizes beyond memory are refused by key") {
  const auto error_of = [](const plan::Synthetic& source) {
    const auto data = make_synthetic(source, 1);
    REQUIRE_FALSE(data);
    return data.error().text;
  };
  CHECK(error_of({0, 10, plan::Line{}}) ==
        "data.synthetic.samples: 0 is not allowed; give 1 to 2147483647");
  CHECK_THAT(error_of({10, 0, plan::Line{}}), Contains("data.synthetic.test_samples: 0"));
  CHECK_THAT(error_of({10, 10, plan::Clusters{0, 3, 1}}), Contains("clusters.classes: 0"));
  CHECK_THAT(error_of({10, 10, plan::Clusters{3, 0, 1}}), Contains("clusters.features: 0"));
  CHECK_THAT(error_of({10, 10, plan::Line{std::nan(""), 0, 0}}), Contains("line.slope: nan"));
  CHECK_THAT(error_of({10, 10, plan::Line{0, 0, std::numeric_limits<double>::infinity()}}),
             Contains("line.noise: inf"));
  CHECK_THAT(error_of({2'000'000'000, 10, plan::Clusters{3, 1000, 1}}), Contains("GB; give fewer"));
}

}  // namespace
}  // namespace leeway
