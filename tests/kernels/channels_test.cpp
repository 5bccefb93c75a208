#include <catch2/catch.hpp>

#include "tests/kernels/cases/channels.hpp"
#include "tests/kernels/executors.hpp"

using namespace leeway;
using namespace leeway::test;

TEST_CASE("to_channels_last and to_channels_first move each element to its place", "[channels]") {
  for_each_executor([](Executor& executor) {
    for (const auto& [batch, channels, pixels] : channels_cases()) {
      CAPTURE(batch, channels, pixels);
      const std::int64_t count = batch * channels * pixels;
      Floats first, last(static_cast<std::size_t>(count));
      for (std::int64_t i = 0; i < count; ++i) {
        first.push_back(static_cast<float>(i));
        const std::int64_t b = i / (channels * pixels), c = i / pixels % channels, s = i % pixels;
        last[static_cast<std::size_t>((b * pixels + s) * channels + c)] = static_cast<float>(i);
      }
      const Array<float> x(executor, first), back(executor, last);
      auto y = Array<float>::poisoned(executor, count), z = Array<float>::poisoned(executor, count);
      executor.to_channels_last(y.data(), x.data(), batch, channels, pixels);
      executor.to_channels_first(z.data(), back.data(), batch, channels, pixels);
      REQUIRE(y.read() == last);
      REQUIRE(z.read() == first);
    }
  });
}
