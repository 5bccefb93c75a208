#include "monitoring/event_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "core/files.hpp"
#include "core/text.hpp"
#include "monitoring/append.hpp"

namespace leeway {
namespace {

/// A partial block is written after this time, for readers that follow the run.
constexpr std::chrono::seconds kFlushEvery(1);
constexpr char kMagic[4] = {'L', 'W', 'E', '1'};
constexpr int kLevel = 1;  // of compression: others cost more time than their bytes save

/// Precedes each block, little-endian as on all processors that Leeway runs on.
struct BlockHeader {
  char magic[4] = {};
  std::uint32_t bytes = 0;      // compressed
  std::uint32_t raw_bytes = 0;  // of EventBlock::bytes()
  std::uint32_t events = 0;
  std::uint32_t checksum = 0;  // CRC-32 of the compressed bytes
  std::uint32_t resumes = 0;   // 1: the events before this block are of an earlier start
  std::int64_t first_ns = 0, last_ns = 0;
};
static_assert(sizeof(BlockHeader) == 40);

std::uint32_t checksum_of(std::string_view bytes) {
  return static_cast<std::uint32_t>(
      ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

struct StoredBlock {
  BlockHeader header;
  std::string_view bytes;
};

/// The complete blocks since the last resume.
Expected<std::vector<StoredBlock>> blocks_of(std::string_view content, const std::string& path) {
  std::vector<StoredBlock> blocks;
  while (content.size() >= sizeof(BlockHeader)) {
    StoredBlock block;
    std::memcpy(&block.header, content.data(), sizeof(BlockHeader));
    if (std::memcmp(block.header.magic, kMagic, sizeof kMagic) != 0)
      return Error{concat('"', path, "\" is not a file of events, or is damaged")};
    content.remove_prefix(sizeof(BlockHeader));
    if (content.size() < block.header.bytes) break;  // the writer was killed
    block.bytes = content.substr(0, block.header.bytes);
    content.remove_prefix(block.header.bytes);
    if (block.header.resumes != 0) blocks.clear();
    blocks.push_back(block);
  }
  return blocks;
}

/// The bytes of a file up to its last whole block: a killed program leaves a part of one.
std::uint64_t whole_size(int file) {
  std::uint64_t size = 0;
  BlockHeader header;
  struct stat info {};
  if (::fstat(file, &info) != 0) return 0;
  while (::pread(file, &header, sizeof header, static_cast<off_t>(size)) == sizeof header &&
         std::memcmp(header.magic, kMagic, sizeof kMagic) == 0) {
    const std::uint64_t next = size + sizeof header + header.bytes;
    if (next > static_cast<std::uint64_t>(info.st_size)) break;
    size = next;
  }
  return size;
}

Expected<std::vector<EventRecord>> unpack(const StoredBlock& block, const std::string& path) {
  const BlockHeader& header = block.header;
  // A varint of 8 bytes takes at most 10, and compression gains at most a factor of 1,032.
  constexpr std::uint64_t kMostGain = 1032;
  std::string raw;
  bool intact = checksum_of(block.bytes) == header.checksum &&
                header.raw_bytes <= kMostGain * block.bytes.size() + 64;
  if (intact) {
    raw.resize(header.raw_bytes);
    uLongf size = raw.size();
    intact = ::uncompress(reinterpret_cast<Bytef*>(raw.data()), &size,
                          reinterpret_cast<const Bytef*>(block.bytes.data()),
                          block.bytes.size()) == Z_OK &&
             size == raw.size();
  }
  auto records = intact ? EventBlock::read(raw, header.events)
                        : Expected<std::vector<EventRecord>>(Error{"damaged events"});
  if (!records) return Error{concat('"', path, "\": ", records.error().text)};
  std::ranges::stable_sort(*records, {}, &EventRecord::at);
  return records;
}

}  // namespace

// ---- writing ----

EventFile::EventFile(std::string path, IfSlow if_slow)
    : path_(std::move(path)), if_slow_(if_slow), block_(std::make_unique<EventBlock>()) {
  std::error_code missing;
  resumes_ = std::filesystem::file_size(path_, missing) > 0 && !missing;
  thread_ = std::thread([this] { write_blocks(); });
}

EventFile::~EventFile() {
  finish();
}

void EventFile::add(Address actor, Instant at, const Event& event) {
  std::unique_lock lock(mutex_);
  block_->add(actor, at, event);
  if (block_->size() >= kBlockEvents) pass_block(lock);
}

void EventFile::pass_block(std::unique_lock<std::mutex>& lock) {
  if (block_->size() == 0) return;
  auto block = std::exchange(block_, std::make_unique<EventBlock>());
  if (if_slow_ == IfSlow::wait) changed_.wait(lock, [&] { return waiting_.size() < kMaxWaiting; });
  if (waiting_.size() >= kMaxWaiting)
    return lose(block->size(), "the disk is slower than the run writes events");
  waiting_.push_back(std::move(block));
  changed_.notify_all();
}

void EventFile::finish() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    finished_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void EventFile::lose(std::uint64_t events, const std::string& cause) {
  if (cause_.empty()) cause_ = cause;
  lost_ += events;
}

void EventFile::write_blocks() {
  std::unique_lock lock(mutex_);
  for (bool last = false; !last;) {
    changed_.wait_for(lock, kFlushEvery, [&] { return finished_ || !waiting_.empty(); });
    last = finished_;
    auto blocks = std::exchange(waiting_, {});
    if (blocks.empty() || last)
      if (block_->size() > 0)
        blocks.push_back(std::exchange(block_, std::make_unique<EventBlock>()));
    lock.unlock();
    changed_.notify_all();
    for (const auto& block : blocks) write(*block);
    lock.lock();
  }
}

void EventFile::write(const EventBlock& block) {
  const std::string raw = block.bytes();
  uLongf size = ::compressBound(raw.size());
  std::string out(sizeof(BlockHeader) + size, '\0');
  const int packed = ::compress2(reinterpret_cast<Bytef*>(out.data() + sizeof(BlockHeader)), &size,
                                 reinterpret_cast<const Bytef*>(raw.data()), raw.size(), kLevel);
  LW_CHECK(packed == Z_OK, packed);
  out.resize(sizeof(BlockHeader) + size);
  BlockHeader header{.bytes = static_cast<std::uint32_t>(size),
                     .raw_bytes = static_cast<std::uint32_t>(raw.size()),
                     .events = static_cast<std::uint32_t>(block.size()),
                     .checksum = checksum_of(std::string_view(out).substr(sizeof(BlockHeader))),
                     .resumes = resumes_ ? 1u : 0u,
                     .first_ns = block.first().ns,
                     .last_ns = block.last().ns};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  std::memcpy(out.data(), &header, sizeof header);
  const auto fail = [&] {
    const std::string cause = system_reason();
    std::lock_guard lock(mutex_);
    lose(block.size(), cause);
  };
  if (!file_) {
    file_ = std::make_unique<Descriptor>(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (file_->get() < 0) {
      fail();
      return file_.reset();
    }
    size_ = whole_size(file_->get());
    (void)!::ftruncate(file_->get(), static_cast<off_t>(size_));
  }
  if (!append_whole(file_->get(), out)) return fail();
  resumes_ = false;
  size_ += out.size();
  written_ += block.size();
}

// ---- reading ----

Expected<std::string> events_path(const std::string& folder) {
  std::string path = folder + "/events.bin";
  if (std::filesystem::exists(path)) return path;
  if (!std::filesystem::is_directory(folder))
    return Error{concat("no folder \"", folder,
                        "\"; give the folder of a run, such as "
                        "runs/fashion-mlp-20261127-120000")};
  return Error{concat("no file \"", path, "\"; run the program with --trace")};
}

Status read_events(const std::string& path, const std::function<void(const EventRecord&)>& handle,
                   Instant from, Instant until) {
  const auto content = disk().read(path);
  if (!content) return content.error();
  const auto blocks = blocks_of((*content)->text(), path);
  if (!blocks) return blocks.error();
  // By block: the earliest time in the blocks after it.
  std::vector<std::int64_t> later(blocks->size(), std::numeric_limits<std::int64_t>::max());
  for (std::size_t i = blocks->size(); i-- > 1;)
    later[i - 1] = std::min(later[i], (*blocks)[i].header.first_ns);
  std::vector<EventRecord> pending;  // sorted
  for (std::size_t i = 0; i < blocks->size(); ++i) {
    const StoredBlock& block = (*blocks)[i];
    if (block.header.last_ns >= from.ns && block.header.first_ns <= until.ns) {
      auto records = unpack(block, path);
      if (!records) return records.error();
      const auto middle = static_cast<std::ptrdiff_t>(pending.size());
      pending.insert(pending.end(), std::make_move_iterator(records->begin()),
                     std::make_move_iterator(records->end()));
      std::ranges::inplace_merge(pending, pending.begin() + middle, {}, &EventRecord::at);
    }
    const auto ready = std::ranges::upper_bound(pending, later[i], {},
                                                [](const auto& record) { return record.at.ns; });
    for (auto record = pending.begin(); record != ready; ++record)
      if (record->at >= from && record->at <= until) handle(*record);
    pending.erase(pending.begin(), ready);
  }
  return {};
}

}  // namespace leeway
