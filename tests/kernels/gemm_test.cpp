#include "kernels/gemm.hpp"

#include <rapidcheck/catch.h>

#include <algorithm>
#include <thread>

#include "kernels/threads.hpp"
#include "tests/kernels/support.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

/// The definition, in double precision.
std::vector<double> reference(const kernels::GemmShape& s, const Floats& c, const Floats& a,
                              const Floats& b, const Floats& bias) {
  std::vector<double> out(c.begin(), c.end());
  for (std::int64_t i = 0; i < s.m; ++i)
    for (std::int64_t j = 0; j < s.n; ++j) {
      double sum = s.with_bias ? bias[static_cast<std::size_t>(j)] : 0.0;
      for (std::int64_t k = 0; k < s.k; ++k) {
        const auto at = static_cast<std::size_t>(s.transpose_a ? k * s.lda + i : i * s.lda + k);
        const auto bt = static_cast<std::size_t>(s.transpose_b ? j * s.ldb + k : k * s.ldb + j);
        sum += static_cast<double>(a[at]) * static_cast<double>(b[bt]);
      }
      auto& element = out[static_cast<std::size_t>(i * s.ldc + j)];
      element = s.add ? element + sum : sum;
    }
  return out;
}

}  // namespace

TEST_CASE("gemm equals its definition for any shape", "[gemm]") {
  kernels::use_one_compute_thread();
  rc::prop("gemm equals its definition", [] {
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    kernels::GemmShape s;
    s.m = *rc::gen::inRange(0, 70);
    s.n = *rc::gen::inRange(0, 70);
    s.k = *rc::gen::inRange(0, 90);
    s.transpose_a = rng.one_in(2);
    s.transpose_b = rng.one_in(2);
    s.add = rng.one_in(3);
    s.with_bias = rng.one_in(2);
    const auto slack = [&] { return static_cast<std::int64_t>(rng.one_in(2) ? rng.below(20) : 0); };
    s.lda = std::max<std::int64_t>(1, s.transpose_a ? s.m : s.k) + slack();
    s.ldb = std::max<std::int64_t>(1, s.transpose_b ? s.k : s.n) + slack();
    s.ldc = std::max<std::int64_t>(1, s.n) + slack();
    const Floats a = random_floats(rng, (s.transpose_a ? s.k : s.m) * s.lda);
    const Floats b = random_floats(rng, (s.transpose_b ? s.n : s.k) * s.ldb);
    const Floats bias = random_floats(rng, s.n);
    Floats c = random_floats(rng, s.m * s.ldc);  // floats between the rows must not change
    const auto expected = reference(s, c, a, b, bias);
    if (!s.add)
      for (std::int64_t i = 0; i < s.m; ++i)
        for (std::int64_t j = 0; j < s.n; ++j) c[static_cast<std::size_t>(i * s.ldc + j)] = NAN;
    kernels::gemm(s, c.data(), a.data(), b.data(), bias.data());
    RC_ASSERT(worst_error(c, expected) < 1e-5);
  });
}

TEST_CASE("gemm gives the same bits at any address", "[gemm]") {
  kernels::use_one_compute_thread();
  Rng rng(5);
  const kernels::GemmShape shape{
      .m = 33, .n = 47, .k = 129, .lda = 129, .ldb = 129, .ldc = 47, .transpose_b = true};
  const Floats a = random_floats(rng, 33 * 129);
  const Floats b = random_floats(rng, 47 * 129);
  Floats first = poisoned(33 * 47);
  kernels::gemm(shape, first.data(), a.data(), b.data());
  for (std::size_t shift = 1; shift < 16; shift += 3) {
    Floats moved_a(a.size() + shift), moved_b(b.size() + shift), c = poisoned(33 * 47);
    std::copy(a.begin(), a.end(), moved_a.data() + shift);
    std::copy(b.begin(), b.end(), moved_b.data() + shift);
    kernels::gemm(shape, c.data(), moved_a.data() + shift, moved_b.data() + shift);
    REQUIRE(c == first);
  }
}

TEST_CASE("gemm gives the same results on concurrent threads", "[gemm]") {
  Rng rng(6);
  const std::int64_t n = 40;
  const Floats a = random_floats(rng, n * n), b = random_floats(rng, n * n);
  std::vector<Floats> results(4, poisoned(n * n));
  const auto compute = [&](Floats& c) {
    kernels::use_one_compute_thread();
    for (std::int64_t k = 1; k <= n; ++k)
      kernels::gemm({.m = n, .n = n, .k = k, .lda = n, .ldb = n, .ldc = n}, c.data(), a.data(),
                    b.data());
  };
  std::vector<std::thread> threads;
  for (Floats& c : results) threads.emplace_back(compute, std::ref(c));
  for (auto& thread : threads) thread.join();
  for (const Floats& c : results) REQUIRE(c == results[0]);
  REQUIRE(!std::isnan(results[0][0]));
}

TEST_CASE("gemm refuses a null bias if its shape has one", "[gemm]") {
  Floats a(1), b(1), c(1);
  const kernels::GemmShape shape{
      .m = 1, .n = 1, .k = 1, .lda = 1, .ldb = 1, .ldc = 1, .with_bias = true};
  REQUIRE_THROWS_AS(kernels::gemm(shape, c.data(), a.data(), b.data()), CheckFailed);
}
