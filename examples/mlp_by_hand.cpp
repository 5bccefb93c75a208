// A network of two layers on Fashion-MNIST. Its gradients are plain C++; Leeway only reads the
// data.
//
//   leeway launch --workers 2 ./mlp_by_hand
#include <algorithm>
#include <cmath>
#include <iostream>
#include <leeway/kv.hpp>
#include <leeway/models/datasets/load.hpp>

namespace {
constexpr std::size_t kInputs = 784, kHidden = 64, kClasses = 10;
using Floats = std::vector<float>;

/// a * b, for matrices of rows x inner and inner x columns.
Floats product(const Floats& a, const Floats& b, std::size_t inner, std::size_t columns) {
  Floats out(a.size() / inner * columns);
  for (std::size_t i = 0; i * inner < a.size(); ++i)
    for (std::size_t k = 0; k < inner; ++k)
      for (std::size_t j = 0; j < columns; ++j)
        out[i * columns + j] += a[i * inner + k] * b[k * columns + j];
  return out;
}

Floats transposed(const Floats& a, std::size_t columns) {
  Floats out(a.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    out[i % columns * (a.size() / columns) + i / columns] = a[i];
  return out;
}

/// Turns scores into the gradient of the mean cross-entropy. Returns the share of correct rows.
double to_gradient(Floats& scores, const std::vector<std::int32_t>& labels) {
  int correct = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto row = scores.begin() + static_cast<std::ptrdiff_t>(i * kClasses);
    correct += std::max_element(row, row + kClasses) - row == labels[i] ? 1 : 0;
    float sum = 0;
    for (auto one = row; one < row + kClasses; ++one) sum += (*one = std::exp(*one));
    for (auto one = row; one < row + kClasses; ++one)
      *one = (*one / sum - (one - row == labels[i] ? 1 : 0)) / static_cast<float>(labels.size());
  }
  return correct / static_cast<double>(labels.size());
}
}  // namespace

int main() {
  const auto data = leeway::load_data(leeway::fashion_mnist(), 1);
  if (!data) return std::cerr << data.error().text << '\n', 1;
  auto store = leeway::KvStore::create("dist_ssp(3)",
                                       {.samples = data->train->size(), .batch = 32, .epochs = 2});
  leeway::Rng rng(1);
  const auto small = [&] { return static_cast<float>(rng.uniform() - 0.5) / 8; };
  Floats w1(kInputs * kHidden), w2(kHidden * kClasses);
  std::generate(w1.begin(), w1.end(), small);
  std::generate(w2.begin(), w2.end(), small);
  store.init("w1", {w1.data(), {kInputs, kHidden}});
  store.init("w2", {w2.data(), {kHidden, kClasses}});
  store.set_optimizer(leeway::momentum(0.01, 0.9));
  double accuracy = 0, batches = 0;  // moving average, of all batches while they are few
  while (const auto range = store.next_range()) {
    store.pull("w1", {w1.data(), {kInputs, kHidden}}).wait();
    store.pull("w2", {w2.data(), {kHidden, kClasses}}).wait();
    std::vector<std::int32_t> labels(range->samples.size());
    Floats x(labels.size() * kInputs);
    data->train->gather(range->samples, x.data(), labels.data(), nullptr);
    Floats hidden = product(x, w1, kInputs, kHidden);
    for (float& one : hidden) one = std::max(one, 0.0f);
    Floats out = product(hidden, w2, kHidden, kClasses);
    accuracy += std::max(0.01, 1 / ++batches) * (to_gradient(out, labels) - accuracy);
    Floats of_hidden = product(out, transposed(w2, kClasses), kClasses, kHidden);
    for (std::size_t i = 0; i < hidden.size(); ++i) of_hidden[i] *= hidden[i] > 0 ? 1 : 0;
    const Floats of_w1 = product(transposed(x, kInputs), of_hidden, labels.size(), kHidden);
    const Floats of_w2 = product(transposed(hidden, kHidden), out, labels.size(), kClasses);
    store.push("w2", {of_w2.data(), {kHidden, kClasses}});
    store.push("w1", {of_w1.data(), {kInputs, kHidden}});
  }
  std::cout << "accuracy of the last batches: " << accuracy << std::endl;
}
