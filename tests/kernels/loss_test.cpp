#include <rapidcheck/catch.h>

#include "kernels/mean_squared_error.hpp"
#include "kernels/softmax_cross_entropy.hpp"
#include "tests/kernels/support.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

struct Reference {
  double loss = 0;
  std::int64_t correct = 0;
  std::vector<double> gradient;
};

Reference softmax_reference(const Floats& logits, const std::vector<std::int32_t>& labels,
                            std::size_t classes) {
  Reference r;
  r.gradient.resize(logits.size());
  const double n = static_cast<double>(labels.size());
  for (std::size_t b = 0; b < labels.size(); ++b) {
    const float* row = logits.data() + b * classes;
    const auto label = static_cast<std::size_t>(labels[b]);
    double sum = 0;
    std::size_t best = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      sum += std::exp(static_cast<double>(row[c]) - static_cast<double>(row[label]));
      if (row[c] > row[best]) best = c;
    }
    r.loss += std::log(sum) / n;
    r.correct += best == label;
    for (std::size_t c = 0; c < classes; ++c) {
      const double p =
          std::exp(static_cast<double>(row[c]) - static_cast<double>(row[label])) / sum;
      r.gradient[b * classes + c] = (p - (c == label)) / n;
    }
  }
  return r;
}

}  // namespace

TEST_CASE("softmax cross entropy equals its definition for small and large logits", "[loss]") {
  rc::prop("softmax cross entropy equals its definition", [] {
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    const std::int64_t batch = *rc::gen::inRange(1, 20), classes = *rc::gen::inRange(1, 80);
    const double scale = *rc::gen::element(0.1, 3.0, 40.0, 300.0);
    const Floats logits = random_floats(rng, batch * classes, scale);
    std::vector<std::int32_t> labels;
    for (std::int64_t b = 0; b < batch; ++b)
      labels.push_back(static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(classes))));
    const auto expected = softmax_reference(logits, labels, static_cast<std::size_t>(classes));
    Floats gradient = poisoned(batch * classes);
    const auto with = kernels::softmax_cross_entropy(gradient.data(), logits.data(), labels.data(),
                                                     batch, classes);
    const auto without =
        kernels::softmax_cross_entropy(nullptr, logits.data(), labels.data(), batch, classes);
    RC_ASSERT(std::abs(with.loss - expected.loss) < 1e-6 * (1 + expected.loss));
    RC_ASSERT(with.loss == without.loss);
    RC_ASSERT(with.correct == expected.correct);
    RC_ASSERT(without.correct == expected.correct);
    RC_ASSERT(worst_error(gradient, expected.gradient) < 1e-6);
  });
}

TEST_CASE("softmax cross entropy is 0 for an empty batch and NaN for a NaN", "[loss]") {
  REQUIRE(kernels::softmax_cross_entropy(nullptr, nullptr, nullptr, 0, 10).loss == 0);
  const std::int32_t label = 0;
  for (const float bad : {NAN, INFINITY}) {
    const float logits[] = {0, bad, 1};
    Floats gradient = poisoned(3);
    REQUIRE(std::isnan(kernels::softmax_cross_entropy(gradient.data(), logits, &label, 1, 3).loss));
    REQUIRE(std::isnan(kernels::softmax_cross_entropy(nullptr, logits, &label, 1, 3).loss));
  }
}

TEST_CASE("softmax probabilities are accurate down to the smallest normal float", "[loss]") {
  const std::int32_t label = 0;
  for (float x = 0; x < 86; x += 0.037f) {
    const float logits[] = {x, 0};
    Floats gradient = poisoned(2);
    kernels::softmax_cross_entropy(gradient.data(), logits, &label, 1, 2);
    const double exact = 1 / (1 + std::exp(static_cast<double>(x)));
    REQUIRE(std::abs(static_cast<double>(gradient[1]) / exact - 1) < 4e-7);
  }
  for (const float far : {-100.0f, -1e30f, -INFINITY}) {
    const float logits[] = {0, far};
    Floats gradient = poisoned(2);
    REQUIRE(kernels::softmax_cross_entropy(gradient.data(), logits, &label, 1, 2).loss == 0);
    REQUIRE(gradient == Floats{0, 0});
  }
}

TEST_CASE("softmax cross entropy refuses a label out of range", "[loss]") {
  const float logits[] = {0, 1, 2};
  for (const std::int32_t label : {-1, 3})
    REQUIRE_THROWS_AS(kernels::softmax_cross_entropy(nullptr, logits, &label, 1, 3), CheckFailed);
}

TEST_CASE("the first of several largest logits is the prediction", "[loss]") {
  const float logits[] = {1, 2, 2};
  const std::int32_t first = 1, second = 2;
  REQUIRE(kernels::softmax_cross_entropy(nullptr, logits, &first, 1, 3).correct == 1);
  REQUIRE(kernels::softmax_cross_entropy(nullptr, logits, &second, 1, 3).correct == 0);
}

TEST_CASE("mean squared error equals its definition, also in place", "[loss]") {
  rc::prop("mean squared error equals its definition", [] {
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    const std::int64_t count = *rc::gen::inRange(0, 3000);
    const Floats y = random_floats(rng, count, 5), t = random_floats(rng, count, 5);
    double loss = 0;
    std::vector<double> expected;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double difference = static_cast<double>(y[i]) - static_cast<double>(t[i]);
      loss += difference * difference / static_cast<double>(count);
      expected.push_back(2 * difference / static_cast<double>(count));
    }
    Floats gradient = poisoned(count), in_place = y;
    RC_ASSERT(std::abs(kernels::mean_squared_error(gradient.data(), y.data(), t.data(), count) -
                       loss) < 1e-5 * (1 + loss));
    kernels::mean_squared_error(in_place.data(), in_place.data(), t.data(), count);
    RC_ASSERT(worst_error(gradient, expected) < 1e-6);
    RC_ASSERT(in_place == gradient);
  });
}
