#pragma once
// Random streams of the run's seed, one per purpose of the data.
#include <cstdint>

namespace leeway::streams {

inline constexpr std::uint64_t kEpochOrder = 0x65706f6368ull;
inline constexpr std::uint64_t kDataSplit = 0x73706c6974ull;
inline constexpr std::uint64_t kTestShare = 0x7368617265ull;
inline constexpr std::uint64_t kClusterCenters = 0x63656e746572ull;
inline constexpr std::uint64_t kTrainSamples = 0x747261696eull;
inline constexpr std::uint64_t kTestSamples = 0x74657374ull;

}  // namespace leeway::streams
