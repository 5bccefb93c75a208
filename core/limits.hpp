#pragma once
// Every queue, table and message has a bound, and all the bounds stand here.
#include <cstddef>
#include <cstdint>

namespace leeway::limits {

inline constexpr std::uint32_t kMaxWorkers = 65536;
inline constexpr std::uint32_t kMaxShards = 4096;
/// Of one pipeline.
inline constexpr std::uint32_t kMaxStages = 1024;
/// Parts of a model on one stage; letters tell them apart.
inline constexpr std::uint32_t kMaxChunks = 26;
/// Of a cluster, the program's among them.
inline constexpr std::uint32_t kMaxNodes = 4096;
/// Events of one batch from node to program.
inline constexpr std::size_t kMaxEventBatch = 4096;
/// Parts of one iteration that one shard is owed by one worker: at most one a layer.
inline constexpr std::uint32_t kMaxBuckets = 4096;
/// Messages of neighbours that a stage keeps until it has been started as they have.
inline constexpr std::size_t kMaxEarlyMessages = 65536;
/// Parts of an unfinished iteration that shards have applied, over all of them.
inline constexpr std::uint32_t kMaxAppliedBuckets = 1u << 20;
/// Residual layers inside one another.
inline constexpr std::uint32_t kMaxLayerDepth = 8;
/// Different characters of a text.
inline constexpr std::size_t kMaxVocabulary = 1u << 16;
inline constexpr std::uint32_t kMaxBlocks = 1u << 20;
inline constexpr std::uint32_t kMaxRank = 8;
/// Blobs of one message.
inline constexpr std::uint32_t kMaxBlobs = 1u << 16;
/// Header of one message, in bytes; tensor data travels in blobs.
inline constexpr std::size_t kMaxHeaderBytes = 16u << 20;
/// Bytes of one blob, and of all blobs of one message, that a peer may announce.
inline constexpr std::uint64_t kMaxBlobBytes = std::uint64_t{4} << 30;
inline constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{64} << 30;
/// Processes that one mesh is connected with, and those that are about to be.
inline constexpr std::size_t kMaxPeers = 4096;
/// Messages of one peer that have begun to arrive: one of each pair of actors.
inline constexpr std::size_t kMaxArrivals = 1u << 16;
/// A host name, a version, a reason: texts in the greetings of processes.
inline constexpr std::size_t kMaxGreetingText = 1024;
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
/// A file of keys or certificates.
inline constexpr std::size_t kMaxCertificateBytes = 1u << 20;
inline constexpr int kMaxCertificateDays = 36500;
/// A node's name in its certificate; X.509 allows no more.
inline constexpr std::size_t kMaxNodeNameBytes = 64;
/// Addresses of the memory that a process shares with others of its host; memory is taken as blobs
/// need it.
inline constexpr std::size_t kArenaBytes = std::size_t{256} << 30;
/// Blobs from this size on lie there.
inline constexpr std::size_t kSharedBlobBytes = 64u << 10;
/// Blobs that a process has lent to one other at a time, and their bytes; what goes beyond is
/// copied.
inline constexpr std::uint32_t kMaxLoans = 4096;
inline constexpr std::size_t kMaxLentBytes = std::size_t{1} << 30;
/// Bytes of one lender that a process holds in place; it copies what goes beyond, so that a slow
/// reader does not pin the memory of another process.
inline constexpr std::size_t kMaxBorrowedBytes = std::size_t{256} << 20;

}  // namespace leeway::limits
