#include <catch2/catch.hpp>
#include <functional>
#include <numeric>

#include "tests/kernels/executors.hpp"
#include "tests/kernels/finite_difference.hpp"

using namespace leeway;
using namespace leeway::test;

TEST_CASE("an executor uploads, copies, zeroes and downloads any number of bytes", "[executor]") {
  for_each_executor([](Executor& executor) {
    Rng rng(1);
    for (const std::int64_t count : {0, 1, 1000}) {
      const Floats values = random_floats(rng, count);
      const auto bytes = values.size() * sizeof(float);
      const Array<float> from(executor, values);
      auto to = Array<float>::poisoned(executor, count);
      executor.copy(to.data(), from.data(), bytes);
      REQUIRE(from.read() == values);
      REQUIRE(to.read() == values);
      executor.zero(to.data(), bytes);
      REQUIRE(to.read() == Floats(values.size(), 0.0f));
    }
  });
}

TEST_CASE("fetch returns a blob of the same device unchanged and copies other blobs",
          "[executor]") {
  for_each_executor([](Executor& executor) {
    std::vector<std::byte> bytes(1000);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
    Blob own = executor.allocate(bytes.size());
    REQUIRE(own.device() == executor.device());
    executor.begin_write(own);
    executor.upload(own.mutable_data(), bytes.data(), bytes.size());
    executor.end_write(own);
    executor.synchronize();
    const Blob same = executor.fetch(own);
    REQUIRE(same.same_as(own));
    executor.end_read(same);

    Blob host = Blob::copy_of(bytes);
    const Blob here = executor.fetch(host);
    host.reset();
    REQUIRE(here.size() == bytes.size());
    std::vector<std::byte> got(bytes.size());
    executor.download(got.data(), here.data(), got.size());
    executor.synchronize();
    REQUIRE(got == bytes);
    REQUIRE(!executor.fetch(Blob()));
  });
}

TEST_CASE("linear on an executor equals its definition, with whole and with split parameters",
          "[executor]") {
  for_each_executor([](Executor& executor) {
    Rng rng(2);
    const kernels::LinearShape shape{5, 7, 9};
    const Floats xs = random_floats(rng, 35), ws = random_floats(rng, 63);
    const Floats bs = random_floats(rng, 9), dys = random_floats(rng, 45);
    Doubles y(45), dx(35), dw(63), db(9);
    for (std::size_t b = 0; b < 5; ++b)
      for (std::size_t o = 0; o < 9; ++o) {
        const double d = static_cast<double>(dys[b * 9 + o]);
        y[b * 9 + o] = static_cast<double>(bs[o]);
        db[o] += d;
        for (std::size_t i = 0; i < 7; ++i) {
          y[b * 9 + o] += static_cast<double>(xs[b * 7 + i]) * static_cast<double>(ws[o * 7 + i]);
          dx[b * 7 + i] += d * static_cast<double>(ws[o * 7 + i]);
          dw[o * 7 + i] += d * static_cast<double>(xs[b * 7 + i]);
        }
      }
    for (Rng* split : {static_cast<Rng*>(nullptr), &rng}) {
      const Array<float> x(executor, xs), dy(executor, dys);
      const SlicedArray<const float> weight(executor, ws, 9, 7, split),
          bias(executor, bs, 9, 1, split);
      const SlicedArray<float> dweight(executor, poisoned(63), 9, 7, split);
      const SlicedArray<float> dbias(executor, poisoned(9), 9, 1, split);
      auto out = Array<float>::poisoned(executor, 45), back = Array<float>::poisoned(executor, 35);
      executor.linear_forward(out.data(), x.data(), weight.slices(), bias.slices(), shape);
      executor.linear_backward(back.data(), dweight.slices(), dbias.slices(), dy.data(), x.data(),
                               weight.slices(), shape);
      REQUIRE(worst_error(out.read(), y) < 1e-5);
      REQUIRE(worst_error(back.read(), dx) < 1e-5);
      REQUIRE(worst_error(dweight.read(), dw) < 1e-5);
      REQUIRE(worst_error(dbias.read(), db) < 1e-5);
      // Computed one at a time, gradients have the same bits.
      const SlicedArray<float> only_dweight(executor, poisoned(63), 9, 7, nullptr);
      auto only_dx = Array<float>::poisoned(executor, 35);
      executor.linear_backward(only_dx.data(), {}, {}, dy.data(), x.data(), weight.slices(), shape);
      executor.linear_backward(nullptr, only_dweight.slices(), {}, dy.data(), x.data(),
                               weight.slices(), shape);
      REQUIRE(only_dx.read() == back.read());
      if (!split) REQUIRE(only_dweight.read() == dweight.read());
    }
  });
}

TEST_CASE("losses, relu, accumulate and update on an executor equal their definitions",
          "[executor]") {
  for_each_executor([](Executor& executor) {
    const Array<float> x(executor, {-1, 2, 0.5f, -3}), t(executor, {0, 2, 0.5f, -1});
    auto out = Array<float>::poisoned(executor, 4);
    executor.relu_forward(out.data(), x.data(), 4);
    REQUIRE(out.read() == Floats{0, 2, 0.5f, 0});
    auto back = Array<float>::poisoned(executor, 4);
    executor.relu_backward(back.data(), x.data(), out.data(), 4);
    REQUIRE(back.read() == Floats{0, 2, 0.5f, 0});
    LossResult loss(executor);
    executor.mean_squared_error(loss.data(), out.data(), x.data(), t.data(), 4, 1);
    REQUIRE(loss.read().loss == Approx(1.25));
    REQUIRE(out.read() == Floats{-0.5f, 0, 0, -1});
    const Array<std::int32_t> labels(executor, {1, 0});
    executor.softmax_cross_entropy(loss.data(), out.data(), x.data(), labels.data(), 2, 2, 1);
    REQUIRE(loss.read().correct == 2);
    REQUIRE(loss.read().loss ==
            Approx((std::log1p(std::exp(-3.0)) + std::log1p(std::exp(-3.5))) / 2));
    Array<float> sum(executor, {1, 1, 1, 1});
    executor.accumulate(sum.data(), x.data(), 2, 4, kernels::Write::add);
    REQUIRE(sum.read() == Floats{-1, 5, 2, -5});
    Array<float> weights(executor, {1, 1, 1, 1});
    executor.update({.count = 4, .w_out = weights.data(), .w = weights.data(), .g = x.data()},
                    kernels::SgdFormula{0.5f, 0});
    REQUIRE(weights.read() == Floats{1.5f, 0, 0.75f, 2.5f});
    REQUIRE(executor.find_non_finite(x.data(), 4) == -1);
    const Array<float> bad(executor, {1, 2, INFINITY, NAN});
    REQUIRE(executor.find_non_finite(bad.data(), 4) == 2);
  });
}

TEST_CASE("the scale of a loss multiplies its gradient and not the loss", "[executor]") {
  for_each_executor([](Executor& executor) {
    Rng rng(4);
    const std::int64_t batch = 70, classes = 40, count = batch * classes;
    const Array<float> y(executor, random_floats(rng, count, 3)), t(executor, Floats(2800, 0.25f));
    const Array<std::int32_t> labels(executor, std::vector<std::int32_t>(70, 5));
    const std::function<void(kernels::ClassLoss*, float*, float)> losses[] = {
        [&](auto* loss, float* dy, float scale) {
          executor.softmax_cross_entropy(loss, dy, y.data(), labels.data(), batch, classes, scale);
        },
        [&](auto* loss, float* dy, float scale) {
          executor.sigmoid_cross_entropy(loss, dy, y.data(), t.data(), count, scale);
        },
        [&](auto* loss, float* dy, float scale) {
          executor.mean_squared_error(loss, dy, y.data(), t.data(), count, scale);
        }};
    for (const auto& compute : losses) {
      auto plain = Array<float>::poisoned(executor, count);
      auto scaled = Array<float>::poisoned(executor, count);
      LossResult one(executor), other(executor);
      compute(one.data(), plain.data(), 1);
      compute(other.data(), scaled.data(), 1024);
      Floats expected = plain.read();
      for (float& value : expected) value *= 1024;
      REQUIRE(scaled.read() == expected);
      REQUIRE(one.read().loss == other.read().loss);
      REQUIRE(one.read().correct == other.read().correct);
    }
  });
}
