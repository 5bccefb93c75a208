#pragma once
// Every queue, table and message has a bound, and all the bounds stand here.
#include <cstddef>
#include <cstdint>

namespace leeway::limits {

inline constexpr std::uint32_t kMaxWorkers = 65536;
inline constexpr std::uint32_t kMaxShards = 4096;
/// Parts of one iteration that one shard is owed by one worker: at most one a layer.
inline constexpr std::uint32_t kMaxParts = 4096;
/// Residual layers inside one another.
inline constexpr std::uint32_t kMaxLayerDepth = 8;
inline constexpr std::uint32_t kMaxBlocks = 1u << 20;
inline constexpr std::uint32_t kMaxRank = 8;
/// Blobs of one message.
inline constexpr std::uint32_t kMaxBlobs = 1u << 16;
/// Header of one message, in bytes; tensor data travels in blobs.
inline constexpr std::size_t kMaxHeaderBytes = 16u << 20;
/// Pulls of one worker that one shard holds: the present one and one prefetch.
inline constexpr std::uint32_t kMaxPullsPerWorker = 2;
/// Pairs of who waited for whom that one shard reports.
inline constexpr std::size_t kMaxWaits = 16384;
/// A tensor above this is cut by rows into blocks of at most this size.
inline constexpr std::size_t kMaxBlockBytes = 4u << 20;
/// Tensors of a layer below this share a block.
inline constexpr std::size_t kSmallTensorBytes = 16u << 10;
/// Distinct version lags counted one by one; larger ones share the last bin.
inline constexpr std::size_t kLagBins = 64;
/// Memory that the host pool keeps for reuse.
inline constexpr std::size_t kPoolKeepBytes = std::size_t{4} << 30;

}  // namespace leeway::limits
