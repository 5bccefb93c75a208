#pragma once
// Bounds of queues, tables and messages.
#include <cstddef>
#include <cstdint>

namespace leeway::limits {

/// Counts in messages, such as iterations and clocks, are below this number.
inline constexpr std::int64_t kCountEnd = std::int64_t{1} << 62;
inline constexpr std::uint32_t kMaxWorkers = 65536;
inline constexpr std::uint32_t kMaxShards = 4096;
/// Stages of one pipeline.
inline constexpr std::uint32_t kMaxStages = 1024;
/// Chunks of a stage; schedules name them by letters.
inline constexpr std::uint32_t kMaxChunks = 26;
/// Nodes of a cluster, including the program's.
inline constexpr std::uint32_t kMaxNodes = 4096;
/// Actors of a run: workers, shards, scheduler and monitor.
inline constexpr std::uint32_t kMaxActors = kMaxWorkers + 2 * kMaxShards + 2;
/// GPUs of one machine.
inline constexpr std::size_t kMaxGpus = 256;
/// Reasons that a node gives for refusing its part of a job.
inline constexpr std::size_t kMaxProblems = 1000;
/// Events in one message from a node to the program.
inline constexpr std::size_t kMaxEventBatch = 4096;
/// Events and messages of a node on their way to the program.
inline constexpr std::size_t kMaxTraceUnderway = 4 * kMaxEventBatch;
/// Events, and messages, that a node keeps until it may send them.
inline constexpr std::size_t kMaxTraceKept = 1u << 16;
/// Buckets of one iteration that a worker pushes to one shard: at most one per layer.
inline constexpr std::uint32_t kMaxBuckets = 4096;
/// The largest factor of a loss.
inline constexpr float kMostLossScale = 16777216;
/// Messages of other workers of its member that a worker keeps until it receives its Start.
inline constexpr std::size_t kMaxEarlyMessages = 65536;
/// Applied buckets of a partial iteration, over all shards.
inline constexpr std::uint32_t kMaxAppliedBuckets = 1u << 20;
/// Pushes that a shard has accepted and not applied.
inline constexpr std::uint32_t kMaxHeldPushes = 1u << 20;
/// Rounds with pushes of a worker that a shard remembers, for repeated pushes.
inline constexpr std::uint32_t kKeptContributions = 2;
/// Announced staleness bounds that some worker has yet to pass.
inline constexpr std::uint32_t kMaxBounds = 1u << 16;
/// Rounds whose norms a shard keeps.
inline constexpr std::uint32_t kMaxKeptRounds = 1u << 16;
/// Messages of a channel without an acknowledgement.
inline constexpr std::uint32_t kMaxKeptMessages = 1u << 20;
/// Arrivals of pushes that a grace window depends on.
inline constexpr std::uint32_t kMaxGraceArrivals = 64;
/// Timers of a replicated role.
inline constexpr std::uint32_t kMaxTimers = 1024;
/// Iterations that a worker has pulled and not pushed, for a delay policy: one per stage.
inline constexpr std::uint32_t kMaxOpenPulls = 1026;
/// Arrays of an optimizer's state for one parameter.
inline constexpr std::uint32_t kMaxSlots = 8;
/// Inputs that a standby may be behind its primary, which then waits.
inline constexpr std::uint64_t kMaxInputsBehind = 4096;
/// Requests of viewers of a node's page that wait for the program.
inline constexpr std::size_t kMaxPageRequests = 64;
/// Nested residual layers.
inline constexpr std::uint32_t kMaxLayerDepth = 8;
/// Groups of parameters with learning rates of their own.
inline constexpr std::uint32_t kMaxParameterGroups = 1024;
/// Distinct characters of a text.
inline constexpr std::size_t kMaxVocabulary = 1u << 16;
/// Classes of a data set; a larger label is more likely a mistake.
inline constexpr std::size_t kMaxClasses = 1u << 20;
/// Different texts in one column of a table.
inline constexpr std::size_t kMaxCategories = 1000;
/// Columns that a plan names as texts.
inline constexpr std::size_t kMaxTextColumns = 1u << 16;
/// Numbers of one sample in a description of data that is read from a file.
inline constexpr std::size_t kMaxSampleValues = 1u << 28;
/// Width and height of an image in a file.
inline constexpr std::int64_t kMaxImageSide = 4096;
/// Entries of one folder of images.
inline constexpr std::size_t kMaxFolderFiles = 1u << 24;
/// Bytes of a description of the preprocessing.
inline constexpr std::size_t kMaxPreprocessingBytes = 128u << 20;
inline constexpr std::uint32_t kMaxBlocks = 1u << 20;
inline constexpr std::uint32_t kMaxRank = 8;
/// Blobs of one message.
inline constexpr std::uint32_t kMaxBlobs = 1u << 16;
/// Bytes of a message's header; tensor data travels in blobs.
inline constexpr std::size_t kMaxHeaderBytes = 16u << 20;
/// Bytes of one blob, and of all blobs of one message.
inline constexpr std::uint64_t kMaxBlobBytes = std::uint64_t{4} << 30;
inline constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{64} << 30;
/// Processes that one mesh is connected to or is connecting to.
inline constexpr std::size_t kMaxPeers = 4096;
/// Pairs of actors between which one peer sends messages. Their order is kept for each.
inline constexpr std::size_t kMaxArrivals = 1u << 20;
/// Bytes of a text in a greeting: a host name, a version or a reason.
inline constexpr std::size_t kMaxGreetingText = 1024;
/// Pulls of one worker that a shard holds: the current one and a prefetch.
inline constexpr std::uint32_t kMaxPullsPerWorker = 2;
inline constexpr std::uint32_t kMaxParkedPulls = kMaxPullsPerWorker * kMaxWorkers;
/// Pairs of a waiting and a straggling worker that one shard reports.
inline constexpr std::size_t kMaxWaits = 16384;
/// Larger tensors are split by rows into blocks of at most this size.
inline constexpr std::size_t kMaxBlockBytes = 4u << 20;
/// Smaller tensors of a layer share a block.
inline constexpr std::size_t kSmallTensorBytes = 16u << 10;
/// Bins of the histogram of version lags; the last one counts all larger lags.
inline constexpr std::size_t kLagBins = 64;
/// Free memory that the host pool keeps for reuse.
inline constexpr std::size_t kPoolKeepBytes = std::size_t{4} << 30;
/// Bytes of a file of keys or certificates.
inline constexpr std::size_t kMaxCertificateBytes = 1u << 20;
inline constexpr int kMaxCertificateDays = 36500;
/// Bytes of a node's name in its certificate, the limit of X.509.
inline constexpr std::size_t kMaxNodeNameBytes = 64;
/// In the manifest of a checkpoint: kinds of contents, files, slices of a block, and ranges of
/// samples that came back.
inline constexpr std::size_t kMaxContents = 16;
/// Files of one shard.
inline constexpr std::size_t kMaxShardFiles = 8;
inline constexpr std::size_t kMaxCheckpointFiles = kMaxShardFiles * kMaxShards + 1;
inline constexpr std::size_t kMaxBlockSlices = 4096;
inline constexpr std::size_t kMaxReturnedRanges = 1u << 20;
/// Names in a folder of checkpoints, or of files in one checkpoint.
inline constexpr std::size_t kMaxFolderNames = 1u << 18;
/// Bytes of a file in one message between nodes and in all, and requests that wait at one node.
inline constexpr std::size_t kMaxFilePiece = 4u << 20;
inline constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 40;
inline constexpr std::size_t kMaxFileRequests = 64;
/// Files that one node writes at another at the same time.
inline constexpr std::ptrdiff_t kMaxRemoteWriters = 8;
/// Bytes of a manifest.
inline constexpr std::size_t kMaxManifestBytes = 256u << 20;
/// Address space of a process's shared arena; it takes memory only for its blobs.
inline constexpr std::size_t kArenaBytes = std::size_t{256} << 30;
/// Blobs of at least this size lie in the shared arena.
inline constexpr std::size_t kSharedBlobBytes = 64u << 10;
/// Blobs, and their bytes, that a process lends to one peer at a time; it copies further blobs.
inline constexpr std::uint32_t kMaxLoans = 4096;
inline constexpr std::size_t kMaxLentBytes = std::size_t{1} << 30;
/// Bytes that a process borrows from one peer at a time; it copies further blobs, so that a slow
/// reader does not pin the peer's memory.
inline constexpr std::size_t kMaxBorrowedBytes = std::size_t{256} << 20;

}  // namespace leeway::limits
