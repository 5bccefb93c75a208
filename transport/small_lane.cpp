#include "transport/small_lane.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "transport/letter.hpp"

namespace leeway::transport {
namespace {

struct FrameHead {
  std::uint32_t bytes = 0;  // of the body
  std::uint32_t kind = 0;
};

constexpr std::size_t kReadBytes = 256u << 10;
/// Bytes that one peer may send until other peers have their turn.
constexpr std::size_t kTurnBytes = 1u << 20;
/// Frames other than letters.
constexpr std::size_t kMaxBodyBytes = 4096;
/// A larger buffer is freed when it is empty.
constexpr std::size_t kKeepBytes = 1u << 20;

std::size_t most_bytes(FrameKind kind) {
  return kind == FrameKind::letter ? kMaxLetterBytes : kMaxBodyBytes;
}

}  // namespace

SmallLane::SmallLane(std::unique_ptr<Stream> stream, Poller& poller)
    : stream_(std::move(stream)), poller_(poller), in_(kReadBytes) {}

SmallLane::~SmallLane() = default;

void SmallLane::start(Handlers handlers) {
  handlers_ = std::move(handlers);
  std::lock_guard lock(mutex_);
  if (closed_) return;
  id_ = poller_.add(stream_->number(), EPOLLIN | (waits_to_write_ ? std::uint32_t{EPOLLOUT} : 0),
                    shared_from_this());
  if (id_ == Poller::kNone) return poller_.post([self = shared_from_this()] { self->end(false); });
  // OpenSSL may hold bytes that arrived with the greeting.
  if (stream_->is_encrypted())
    poller_.post([self = shared_from_this()] { self->on_ready(EPOLLIN); });
}

// ---- sending, under mutex_ ----

std::size_t SmallLane::begin_frame(FrameKind kind) {
  const std::size_t at = out_.size();
  const FrameHead head{0, static_cast<std::uint32_t>(kind)};
  ByteWriter(out_).put(head);
  return at;
}

void SmallLane::end_frame(std::size_t at) {
  const auto bytes = static_cast<std::uint32_t>(out_.size() - at - sizeof(FrameHead));
  std::memcpy(out_.data() + at, &bytes, sizeof bytes);
  if (!waits_to_write_) flush();
}

void SmallLane::flush() {
  if (closed_) return;
  std::span<const std::byte> left = std::span(out_).subspan(written_);
  const auto progress = stream_->write_some(left);
  written_ = out_.size() - left.size();
  if (left.empty()) {
    out_.size() > kKeepBytes ? Bytes().swap(out_) : out_.clear();
    written_ = 0;
  }
  if (progress == Stream::Progress::ended) return stream_->cut();  // reading reports the end
  const bool waits = !left.empty();
  if (std::exchange(waits_to_write_, waits) == waits || id_ == Poller::kNone) return;
  poller_.change(id_, stream_->number(), EPOLLIN | (waits ? std::uint32_t{EPOLLOUT} : 0));
}

void SmallLane::close() {
  std::lock_guard lock(mutex_);
  if (std::exchange(closed_, true)) return;
  if (id_ != Poller::kNone) poller_.remove(id_, stream_->number());
  stream_->cut();
  Bytes().swap(out_);
}

// ---- reading, on the poller's thread ----

void SmallLane::on_ready(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) {
    std::lock_guard lock(mutex_);
    if (written_ > 0 && written_ > kKeepBytes) {
      out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(written_));
      written_ = 0;
    }
    flush();
  }
  if ((events & ~std::uint32_t{EPOLLOUT}) != 0) read();
}

bool SmallLane::read() {
  for (std::size_t turn = 0; turn < kTurnBytes;) {
    // Room for the next bytes: the buffer grows with the bytes that have arrived.
    if (begin_ > 0 && end_ == in_.size()) {
      std::copy(in_.begin() + static_cast<std::ptrdiff_t>(begin_),
                in_.begin() + static_cast<std::ptrdiff_t>(end_), in_.begin());
      end_ -= std::exchange(begin_, 0);
    }
    if (end_ == in_.size()) in_.resize(2 * in_.size());
    std::span<std::byte> missing = std::span(in_).subspan(end_);
    const std::size_t room = missing.size();
    const auto progress = stream_->read_some(missing);
    end_ += room - missing.size();
    turn += room - missing.size();
    {
      std::lock_guard lock(mutex_);
      if (closed_) return false;
    }
    if (!take_frames()) {
      end(true);
      return false;
    }
    if (progress == Stream::Progress::ended) {
      end(false);
      return false;
    }
    if (progress != Stream::Progress::done) return true;
  }
  // Level-triggered: the poller calls again. OpenSSL may hold decrypted bytes, which it does not
  // report.
  if (stream_->is_encrypted())
    poller_.post([self = shared_from_this()] { self->on_ready(EPOLLIN); });
  return true;
}

bool SmallLane::take_frames() {
  while (end_ - begin_ >= sizeof(FrameHead)) {
    FrameHead head;
    std::memcpy(&head, in_.data() + begin_, sizeof head);
    const auto kind = static_cast<FrameKind>(head.kind);
    if (head.kind > static_cast<std::uint32_t>(FrameKind::farewell) ||
        head.bytes > most_bytes(kind))
      return false;
    if (end_ - begin_ - sizeof head < head.bytes) break;
    const auto body = std::span<const std::byte>(in_).subspan(begin_ + sizeof head, head.bytes);
    begin_ += sizeof head + head.bytes;
    if (!handlers_.on_frame(kind, body)) return false;
    std::lock_guard lock(mutex_);
    if (closed_) return true;
  }
  if (begin_ == end_) {
    begin_ = end_ = 0;
    if (in_.size() > kKeepBytes) Bytes(kReadBytes).swap(in_);
  }
  return true;
}

void SmallLane::end(bool invalid) {
  {
    std::lock_guard lock(mutex_);
    if (closed_) return;
  }
  close();
  handlers_.on_end(invalid);
}

}  // namespace leeway::transport
