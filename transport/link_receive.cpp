// Link: messages that arrive, shared memory, and the bulk lanes.
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "core/text.hpp"
#include "core/this_host.hpp"
#include "transport/link.hpp"

namespace leeway::transport {
namespace {

/// Bytes of a large blob that are read at a time, a sign of life each, and written at a time, a
/// sign of progress each.
constexpr std::size_t kPieceBytes = 1u << 20, kWrittenBytes = 256u << 10;

}  // namespace

void Link::heard() {
  heard_at_ = steady_ns();
  if (!silent_) return;
  std::lock_guard event_lock(event_mutex_);
  if (silent_.exchange(false) && !mute_) context_.events.on_heard(id_);
}

bool Link::on_frame(Token token, FrameKind kind, std::span<const std::byte> body) {
  heard();
  ByteReader in(body);
  switch (kind) {
    case FrameKind::letter:
      return on_letter(token, body);
    case FrameKind::ack: {
      LaneCounts received;
      return in.take(received) && on_ack(received);
    }
    case FrameKind::offer:
      return on_offer(token, in);
    case FrameKind::bulk:
      on_bulk_request();
      return true;
    case FrameKind::bye: {
      LaneCounts sent;
      if (!in.take(sent)) return false;
      {
        std::lock_guard lock(mutex_);
        bye_ = sent;
      }
      take_leave();
      return true;
    }
    case FrameKind::farewell:
      gone("left");
      return true;
  }
  return false;
}

bool Link::on_letter(Token token, std::span<const std::byte> body) {
  auto arrival = read_letter(body, false);
  if (!arrival) return false;
  // The sender keeps the message, with its lent blobs, until the acknowledgement.
  std::uint64_t kept = body.size();
  for (const auto& [index, loan] : arrival->loans) kept += loan.size;
  const bool is_valid = borrow(*arrival) && accept(token, std::move(*arrival), &LaneCounts::small);
  if (!is_valid) return false;
  std::lock_guard lock(mutex_);
  unacknowledged_ += kept;
  if (lane_ && unacknowledged_ >= connection_.window_bytes / 4) acknowledge();
  return true;
}

bool Link::on_ack(const LaneCounts& received) {
  std::lock_guard lock(mutex_);
  unanswered_ = 0;
  if (!lane_) return true;
  const std::uint64_t before = queue_.acknowledged();
  if (!queue_.acknowledge(received)) return false;
  if (queue_.acknowledged() != before) progress_at_ = steady_ns();
  pump();
  return true;
}

bool Link::borrow(Arrival& arrival) {
  for (const auto& [index, loan] : arrival.loans) {
    if (!borrower_) return false;
    auto blob = borrower_->borrow(loan);
    if (!blob) return false;
    arrival.blobs[index] = std::move(*blob);
  }
  return true;
}

bool Link::accept(Token token, Arrival arrival, std::uint64_t LaneCounts::*lane) {
  const Address from = arrival.from, to = arrival.to;
  {
    std::lock_guard lock(mutex_);
    // After the loss of the connection, the peer sends this message again.
    if (!is_up_by(token)) return true;
    if (!arrivals_.add(std::move(arrival))) return false;
    ++(received_.*lane);
    // At once, so that the sender can use the memory of large blobs again.
    if (lane == &LaneCounts::bulk) acknowledge();
  }
  deliver(from, to);
  return true;
}

/// Delivers messages in order.
void Link::deliver(Address from, Address to) {
  {
    std::lock_guard event_lock(event_mutex_);
    while (auto arrival = arrivals_.take(from, to)) {
      ++messages_in_;
      bytes_in_ += arrival->header.size() * sizeof(std::uint64_t);
      for (const Blob& blob : arrival->blobs) bytes_in_ += blob.size();
      if (!mute_) context_.events.on_message(id_, from, to, arrival->message());
    }
  }
  take_leave();
}

/// Ends the link when all messages from before the peer's bye have been delivered.
void Link::take_leave() {
  {
    std::lock_guard lock(mutex_);
    if (!bye_ || received_ != *bye_ || arrivals_.taken() < received_.small + received_.bulk) return;
  }
  // The peer ends its connections at the farewell. This lock keeps other threads from reporting
  // them as lost before the link ends.
  std::lock_guard event_lock(event_mutex_);
  {
    std::lock_guard lock(mutex_);
    if (lane_) lane_->send(FrameKind::farewell);
  }
  gone("left");
}

// ---- shared memory: each side offers its own and attaches the other's. When one confirms that it
// can read, the other lends ----

void Link::post_offer(bool readable) {
  if (!borrower_) return;
  lane_->send(FrameKind::offer, [&](Bytes& out) {
    ByteWriter writer(out);
    writer.put(std::uint64_t{readable ? 1u : 0u});
    writer.put(borrower_->offer().words());
  });
}

bool Link::on_offer(Token token, ByteReader body) {
  std::uint64_t reads = 0;
  LoanOffer::Words words;
  if (!body.take(reads) || !body.take(words)) return false;
  if (!borrower_) return true;
  const LoanOffer offer = LoanOffer::of(words);
  const bool readable = bool(borrower_->attach(offer));
  std::lock_guard lock(mutex_);
  if (!lane_ || state_ != State::up || !is_up_by(token)) return true;
  if (readable && !std::exchange(offered_, true)) post_offer(true);
  if (reads != 1) return true;
  if (!lender_) {
    auto made = Lender::create(offer);
    if (!made) return true;
    lender_.emplace(std::move(*made));
  } else if (!lender_->reconnect(offer)) {
    return true;
  }
  queue_.lend_by(&*lender_);
  return true;
}

// ---- bulk lanes ----

void Link::on_bulk_request() {
  std::lock_guard lock(mutex_);
  if (lane_ && connection_.called) ask_for_bulk();
}

bool Link::take_place(BulkLane& place, Stream& stream, Token token,
                      std::unique_lock<std::mutex>& lock) {
  bulk_changed_.wait(lock,
                     [&] { return !is_up_by(token) || !place.stream || place.token == token; });
  if (!is_up_by(token) || place.stream) return false;
  place = {&stream, token};
  return true;
}

bool Link::send_bulk(Stream& stream, Token token) {
  std::unique_lock lock(mutex_);
  if (!take_place(bulk_out_, stream, token, lock)) return false;
  while (true) {
    bulk_changed_.wait(lock, [&] { return !is_up_by(token) || queue_.has_bulk(); });
    if (!is_up_by(token)) break;
    const auto next = queue_.next_bulk();
    if (leaving_) pump();  // perhaps it was the last one
    lock.unlock();
    Bytes letter(sizeof(std::uint64_t));
    append_letter(letter, next->parcel, next->packing);
    const std::uint64_t bytes = letter.size() - sizeof bytes;
    std::memcpy(letter.data(), &bytes, sizeof bytes);
    bool sent = stream.write(letter.data(), letter.size(), true);
    const auto blobs = next->parcel.message.blobs();
    for (std::size_t i = 0; sent && i < blobs.size(); ++i)
      if (next->packing.ways[i] == BlobWay::behind) sent = write_in_pieces(stream, blobs[i]);
    lock.lock();
    if (!sent) break;
  }
  bulk_out_ = {};
  bulk_changed_.notify_all();
  return true;
}

bool Link::write_in_pieces(Stream& stream, const Blob& blob) {
  for (std::size_t at = 0; at < blob.size(); at += kWrittenBytes) {
    if (!stream.write(blob.data() + at, std::min(kWrittenBytes, blob.size() - at))) return false;
    progress_at_ = steady_ns();
  }
  return true;
}

bool Link::receive_bulk(Stream& stream, Token token) {
  {
    std::unique_lock lock(mutex_);
    if (!take_place(bulk_in_, stream, token, lock)) return false;
  }
  Reading reading = Reading::message;
  while (reading == Reading::message) {
    Arrival arrival;
    reading = read_bulk(stream, arrival);
    if (reading != Reading::message) break;
    if (!accept(token, std::move(arrival), &LaneCounts::bulk)) reading = Reading::invalid;
  }
  {
    std::lock_guard lock(mutex_);
    bulk_in_ = {};
  }
  bulk_changed_.notify_all();
  if (reading == Reading::invalid) invalid(token);
  return true;
}

Link::Reading Link::read_bulk(Stream& stream, Arrival& arrival) {
  std::uint64_t bytes = 0;
  if (!stream.read(&bytes, sizeof bytes)) return Reading::ended;
  if (bytes > kMaxLetterBytes) return Reading::invalid;
  heard();
  Bytes letter(bytes);
  if (!stream.read(letter.data(), letter.size())) return Reading::ended;
  auto read = read_letter(letter, true);
  if (!read || !read->loans.empty()) return Reading::invalid;
  arrival = std::move(*read);
  for (std::size_t i = 0; i < arrival.sizes.size(); ++i) {
    const std::size_t size = arrival.sizes[i];
    if (size == 0) continue;
    Blob& blob = arrival.blobs[i];
    try {
      blob = Blob::allocate(size);
    } catch (const std::bad_alloc&) {  // it announced more memory than this host has
      return Reading::invalid;
    }
    for (std::size_t at = 0; at < size; at += kPieceBytes) {
      if (!stream.read(blob.mutable_data() + at, std::min(kPieceBytes, size - at)))
        return Reading::ended;
      heard();
    }
  }
  return Reading::message;
}

}  // namespace leeway::transport
