#pragma once
// Shapes for tests of channels.
#include <cstdint>
#include <vector>

namespace leeway::test {

struct ChannelsCase {
  std::int64_t batch, channels, pixels;
};

inline std::vector<ChannelsCase> channels_cases() {
  std::vector<ChannelsCase> cases = {{0, 3, 16}, {1, 1, 1}, {2, 1, 50}, {2, 50, 1}, {2, 3, 1024}};
  for (std::int64_t channels = 2; channels < 40; channels += 3)
    for (const std::int64_t pixels : {2, 5, 16, 33, 49}) cases.push_back({2, channels, pixels});
  for (const std::int64_t channels : {3, 4}) cases.push_back({3, channels, 77});
  return cases;
}

}  // namespace leeway::test
