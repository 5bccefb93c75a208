// Views of other element types than f32: conversions, and stores that take them.
#include "kv/view.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kv.hpp"

namespace leeway::kv {
namespace {

constexpr std::uint16_t kF16One = 0x3c00, kF16Three = 0x4200, kBf16Half = 0x3f00;

TEST_CASE("elements are widened exactly, and rounded to nearest, ties to even") {
  const std::vector<float> floats = {1.0f, 0.1f, -2049.0f, 70000.0f};
  const auto count = static_cast<std::int64_t>(floats.size());
  const auto in_halves = [&](ElementType type) {
    std::vector<std::uint16_t> halves(floats.size());
    write(halves.data(), type, 0, floats.data(), count);
    return halves;
  };
  const auto out_of = [&](const std::vector<std::uint16_t>& halves, ElementType type) {
    std::vector<float> widened(halves.size());
    read(halves.data(), type, 0, widened.data(), count);
    return widened;
  };
  const auto f16 = in_halves(ElementType::f16), bf16 = in_halves(ElementType::bf16);
  CHECK(f16 == std::vector<std::uint16_t>{0x3c00, 0x2e66, 0xe800, 0x7c00});
  CHECK(bf16 == std::vector<std::uint16_t>{0x3f80, 0x3dcd, 0xc500, 0x4789});
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  CHECK(out_of(f16, ElementType::f16) ==
        std::vector<float>{1.0f, 0.0999755859375f, -2048.0f, kInfinity});
  CHECK(out_of(bf16, ElementType::bf16) ==
        std::vector<float>{1.0f, 0.10009765625f, -2048.0f, 70144.0f});

  const std::vector<double> doubles = {0.1, 1 + 0x1p-24, 1e300};
  std::vector<float> narrowed(3);
  read(doubles.data(), ElementType::f64, 0, narrowed.data(), 3);
  CHECK(narrowed == std::vector<float>{0.1f, 1.0f, kInfinity});
  std::vector<double> widened(2);
  write(widened.data(), ElementType::f64, 0, narrowed.data(), 2);
  CHECK(widened == std::vector<double>{static_cast<double>(0.1f), 1.0});
}

TEST_CASE("a part of a view is converted in its place") {
  const float sent[] = {1, 3};
  std::uint16_t halves[] = {7, 7, 7, 7};
  write(halves, ElementType::f16, 1, sent, 2);
  CHECK(std::vector<std::uint16_t>(halves, halves + 4) ==
        std::vector<std::uint16_t>{7, kF16One, kF16Three, 7});
  float received = 0;
  read(halves, ElementType::f16, 2, &received, 1);
  CHECK(received == 3);
}

/// Keys of all types: "large" has several blocks, and the others share one.
void add_in_all_types(Store& store) {
  const Shape large{2000, 1000}, small{3};
  const std::vector<std::uint16_t> ones(static_cast<std::size_t>(large.count()), kF16One);
  const std::vector<double> doubles(3, 0.5);
  const std::vector<std::uint16_t> halves(3, kBf16Half);
  store.init("large", {ones.data(), large, ElementType::f16});
  store.init("doubles", {doubles.data(), small});
  store.init("bf16", {halves.data(), small, ElementType::bf16});
  for (int round = 0; round < 2; ++round) {
    store.push("large", {ones.data(), large, ElementType::f16});
    store.push("doubles", {doubles.data(), small});
    store.push("bf16", {halves.data(), small, ElementType::bf16});
    store.end_iteration();
  }
  store.barrier();
  std::vector<std::uint16_t> large_out(ones.size()), bf16_out(3);
  std::vector<double> doubles_out(3);
  store.pull("large", {large_out.data(), large, ElementType::f16}).wait();
  store.pull("doubles", {doubles_out.data(), small}).wait();
  store.pull("bf16", {bf16_out.data(), small, ElementType::bf16}).wait();
  const double pushes = 2 * store.workers();
  std::vector<float> large_floats(ones.size());
  read(large_out.data(), ElementType::f16, 0, large_floats.data(), large.count());
  CHECK(large_floats == std::vector<float>(ones.size(), static_cast<float>(1 + pushes)));
  CHECK(doubles_out == std::vector<double>(3, 0.5 + 0.5 * pushes));
  CHECK(bf16_out[2] == (store.workers() == 1 ? 0x3fc0 : 0x4020));  // 1.5 or 2.5
  const std::vector<double> nines(3, 9.0);
  if (store.rank() == 0) store.set("doubles", {nines.data(), small});
  store.end_iteration();
  store.barrier();
  CHECK(store.get("doubles") == std::vector<float>(3, 9.0f));
}

TEST_CASE("stores take and give elements of other types") {
  SECTION("in a local store") {
    Store store = Store::create("local");
    add_in_all_types(store);
  }
  SECTION("on threads") {
    CHECK(run(add_in_all_types, {.workers = 1}).error == "");
  }
  SECTION("in a simulation") {
    CHECK(simulate(add_in_all_types, {.workers = 2}).error == "");
  }
}

TEST_CASE("a view has floats only if they are its elements") {
  double d = 1;
  float f = 2;
  CHECK(*View(&f, {}).floats() == 2);
  CHECK(*ConstView(View(&f, {})).floats() == 2);
  CHECK_THROWS(View(&d, {}).floats());
  CHECK_THROWS(ConstView(&d, {}).floats());
}

}  // namespace
}  // namespace leeway::kv
