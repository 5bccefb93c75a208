#pragma once
// EventFile: events.bin of a run folder: every event of a run in compressed blocks (see
// EventBlock). Each block has its time range, so that readers can skip it.
//
// A thread compresses and writes the blocks. If the disk is slower than the run, a run on real
// hosts loses whole blocks and counts their events; a simulation waits.
//
// The format is Leeway's own, because Debian 12 has no library for Parquet or Arrow. A block is a
// header of 40 bytes and columns that zlib compresses. If the program is killed, all complete
// blocks stay readable.
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "core/descriptor.hpp"
#include "monitoring/event_block.hpp"

namespace leeway {

class EventFile {
 public:
  /// Whether a block is lost or waits if kMaxWaiting blocks are waiting.
  enum class IfSlow : std::uint8_t { lose, wait };

  /// Appends to the file of a run that is resumed; readers skip the events before.
  EventFile(std::string path, IfSlow if_slow);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  /// Thread-safe.
  void add(Address actor, Instant at, const Event& event);
  /// Writes all events. Afterwards, add() must not be called.
  void finish();

  // After finish():
  std::uint64_t written() const { return written_; }
  std::uint64_t bytes() const { return size_; }
  /// Events that are not in the file.
  std::uint64_t lost() const { return lost_; }
  /// Why the first of them is not; empty if none was lost.
  const std::string& cause() const { return cause_; }

 private:
  static constexpr std::size_t kBlockEvents = 8192;
  static constexpr std::size_t kMaxWaiting = 256;

  /// Hands over the current block. Requires the lock.
  void pass_block(std::unique_lock<std::mutex>& lock);
  void write_blocks();
  void write(const EventBlock& block);
  void lose(std::uint64_t events, const std::string& cause);

  const std::string path_;
  const IfSlow if_slow_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<EventBlock> block_;
  std::deque<std::unique_ptr<EventBlock>> waiting_;
  bool finished_ = false;
  std::uint64_t lost_ = 0;
  std::string cause_;

  // Of the thread:
  std::unique_ptr<Descriptor> file_;
  bool resumes_ = false;  // the next block begins a resumed run
  std::uint64_t size_ = 0;
  std::uint64_t written_ = 0;
  std::thread thread_;
};

/// Calls `handle` for each event of the file in the order of their times: the nodes of a cluster
/// send them in batches. Skips the events before a resume in the same folder, those outside of
/// `from`..`until`, and an incomplete last block, as a killed program leaves. The error names the
/// file. `handle` may throw.
Status read_events(const std::string& path, const std::function<void(const EventRecord&)>& handle,
                   Instant from = {std::numeric_limits<std::int64_t>::min()},
                   Instant until = {std::numeric_limits<std::int64_t>::max()});

/// events.bin of the run folder, or an error that names --trace.
Expected<std::string> events_path(const std::string& folder);

}  // namespace leeway
