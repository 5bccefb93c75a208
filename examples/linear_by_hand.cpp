// Linear regression by hand: each worker computes its gradients in its own process.
//
//   leeway launch --workers 4 --shards 2 ./linear_by_hand [EPOCHS]
#include <cstdlib>
#include <iostream>
#include <leeway/kv.hpp>
#include <vector>

namespace {

constexpr std::int64_t kFeatures = 3, kSamples = 4096;
const std::vector<float> kTrue = {3, -2, 0.5};

/// The features of a sample, from its number.
std::vector<float> features_of(std::int64_t sample) {
  leeway::Rng rng(static_cast<std::uint64_t>(sample));
  std::vector<float> x;
  for (std::int64_t i = 0; i < kFeatures; ++i) x.push_back(static_cast<float>(rng.uniform() - 0.5));
  return x;
}

float dot(const std::vector<float>& a, const std::vector<float>& b) {
  float sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  leeway::KvStore store = leeway::KvStore::create(
      "dist_ssp(3)",
      {.samples = kSamples, .batch = 32, .epochs = argc > 1 ? std::atof(argv[1]) : 20});
  std::vector<float> w(kFeatures, 0.0f), gradient(kFeatures);
  store.init("w", {w.data(), {kFeatures}});
  store.set_optimizer(leeway::sgd(0.5));
  double loss = 0;
  while (const auto range = store.next_range()) {
    store.pull("w", {w.data(), {kFeatures}}).wait();
    std::fill(gradient.begin(), gradient.end(), 0.0f);
    loss = 0;
    const auto batch = static_cast<float>(range->samples.size());
    for (const std::int64_t sample : range->samples) {
      const auto x = features_of(sample);
      const float error = dot(w, x) - dot(kTrue, x);
      loss += error * error / batch;
      for (std::size_t i = 0; i < x.size(); ++i) gradient[i] += 2 * error * x[i] / batch;
    }
    store.push("w", {gradient.data(), {kFeatures}});
  }
  std::cout << store.iterations() << " iterations, last loss " << loss << ", w = " << w[0] << ' '
            << w[1] << ' ' << w[2] << std::endl;
}
