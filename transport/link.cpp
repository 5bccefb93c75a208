#include "transport/link.hpp"

#include <algorithm>
#include <utility>

#include "core/check.hpp"
#include "core/text.hpp"
#include "core/this_host.hpp"

namespace leeway::transport {
namespace {

/// Bytes that wait for a peer to read, above which it gets no more reports: each takes memory.
constexpr std::size_t kReportBacklog = 4u << 20;
/// Most signs of life to a silent peer.
constexpr std::uint32_t kUnansweredMax = 1000;
/// A leaving link ends after kLeaveNs without progress, and after kLeaveMostNs in any case.
constexpr std::int64_t kLeaveNs = 5'000'000'000, kLeaveMostNs = 60'000'000'000;

Message on_host(Message message) {
  const auto is_elsewhere = [](const Blob& blob) { return blob.device() != Device{}; };
  if (std::ranges::none_of(message.blobs(), is_elsewhere)) return message;
  std::vector<Blob> blobs;
  for (const Blob& each : message.blobs()) blobs.push_back(each.on_host());
  return Message({message.header().begin(), message.header().end()}, std::move(blobs));
}

}  // namespace

Link::Link(PeerId id, MeshId mesh, LinkContext context)
    : id_(id),
      mesh_(mesh),
      number_(random_word()),
      context_(context),
      heard_at_(steady_ns()),
      queue_(context.options.window_bytes) {
  if (context.options.transport == Transport::tcp) return;
  if (auto borrower = Borrower::create()) borrower_.emplace(std::move(*borrower));
}

Link::Connection Link::connection() const {
  std::lock_guard lock(mutex_);
  return connection_;
}

std::string Link::name() const {
  const auto connection = this->connection();
  return concat(connection.host, ":", connection.port);
}

PeerCounts Link::counts() const {
  std::lock_guard lock(mutex_);
  return {.messages_out = queue_.messages(),
          .messages_in = messages_in_,
          .bytes_out = queue_.bytes(),
          .bytes_in = bytes_in_,
          .waiting = queue_.waiting(),
          .shared_memory = lender_.has_value(),
          .bulk = bulk_out_.stream != nullptr};
}

// ---- sending ----

void Link::send(Address from, Address to, Message message) {
  message = on_host(std::move(message));
  std::lock_guard lock(mutex_);
  if (leaving_ || state_ == State::ended) return;
  queue_.put(from, to, std::move(message));
  pump();
}

void Link::pump() {
  if (!lane_) return;
  while (const auto next = queue_.next_small()) {
    lane_->send(FrameKind::letter,
                [&](Bytes& out) { append_letter(out, next->parcel, next->packing); });
    sent_at_ = steady_ns();
  }
  if (queue_.has_bulk()) {
    ask_for_bulk();
    bulk_changed_.notify_all();
  }
  if (!leaving_ || queue_.waiting() > 0 || std::exchange(bye_sent_, true)) return;
  lane_->send(FrameKind::bye, [&](Bytes& out) { ByteWriter(out).put(queue_.sent()); });
}

/// Reports how many messages have arrived. Also the sign of life. A later report replaces one for a
/// peer that does not read.
void Link::acknowledge() {
  if (lane_->backlog() > kReportBacklog) return;
  unacknowledged_ = 0;
  sent_at_ = steady_ns();
  lane_->send(FrameKind::ack, [&](Bytes& out) { ByteWriter(out).put(received_); });
}

/// Once for each connection, before the first large blob.
void Link::ask_for_bulk() {
  if (std::exchange(bulk_asked_, true)) return;
  if (connection_.called)
    context_.open_bulk(shared_from_this());
  else
    lane_->send(FrameKind::bulk);
}

void Link::leave() {
  mute_ = true;
  std::lock_guard lock(mutex_);
  if (leaving_) return;
  const bool has_more = state_ == State::up || (state_ == State::lost && !queue_.is_empty());
  if (!has_more) return end();
  leaving_ = true;
  progress_at_ = left_at_ = steady_ns();
  pump();
}

void Link::give_up() {
  std::lock_guard lock(mutex_);
  end();
}

void Link::end_connection() {
  ++attempts_;
  attempting_ = Attempting::nothing;
  up_by_ = 0;
  if (lane_) lane_->close();
  lane_ = nullptr;
  for (const BulkLane& lane : {bulk_out_, bulk_in_})
    if (lane.stream) lane.stream->cut();
  bulk_changed_.notify_all();
  bulk_asked_ = offered_ = bye_sent_ = false;
  queue_.lend_by(nullptr);  // until the peer is back
  if (borrower_) borrower_->reconnect();
}

void Link::end() {
  state_ = State::ended;
  end_connection();
  lender_.reset();
  if (borrower_) borrower_->close();
  queue_.clear();
}

// ---- the connection ----

Link::Attempt Link::begin_attempt(bool calls) {
  ++attempts_;
  attempting_ = calls ? Attempting::calls : Attempting::is_called;
  return {attempts_, received_, connection_.token};
}

std::optional<Link::Attempt> Link::begin_call() {
  std::lock_guard lock(mutex_);
  const bool is_down = state_ == State::fresh || state_ == State::lost;
  if (!is_down || attempting_ != Attempting::nothing) return std::nullopt;
  return begin_attempt(true);
}

Link::Objection Link::take_call(Token last, bool continues, Attempt& attempt) {
  std::lock_guard event_lock(event_mutex_);
  std::lock_guard lock(mutex_);
  if (state_ == State::ended || (leaving_ && !continues)) return Objection::ended;
  // The peer took the connection that this process called, after it had begun its own call.
  const bool is_late = state_ == State::up && connection_.called && connection_.token != last;
  const bool is_second = attempting_ == Attempting::calls && context_.own > mesh_;
  if (is_late || is_second) return Objection::yields;
  if (state_ == State::up) state_ = State::lost;
  end_connection();
  attempt = begin_attempt(false);
  return Objection::none;
}

void Link::abandon(const Attempt& attempt) {
  {
    std::lock_guard lock(mutex_);
    if (attempt.number != attempts_) return;
    const bool calls = std::exchange(attempting_, Attempting::nothing) == Attempting::calls;
    if (calls || state_ != State::lost) return;  // a caller tries again by itself
  }
  context_.on_lost(shared_from_this());
}

bool Link::install(const Attempt& attempt, Connection connection, std::unique_ptr<Stream> stream,
                   const LaneCounts& received_there) {
  std::lock_guard event_lock(event_mutex_);
  bool first = false;
  {
    std::lock_guard lock(mutex_);
    if (attempting_ == Attempting::nothing || attempt.number != attempts_ ||
        !queue_.restart(received_there))
      return false;
    attempting_ = Attempting::nothing;
    first = state_ == State::fresh;
    const Token token = up_by_ = connection.token;
    connection_ = std::move(connection);
    lane_ = std::make_shared<SmallLane>(std::move(stream), context_.poller);
    state_ = State::up;
    progress_at_ = steady_ns();
    lane_->start(
        {.on_frame =
             [weak = weak_from_this(), token](FrameKind kind, std::span<const std::byte> body) {
               const auto link = weak.lock();
               return !link || link->on_frame(token, kind, body);
             },
         .on_end =
             [weak = weak_from_this(), token](bool is_invalid) {
               const auto link = weak.lock();
               if (!link) return;
               is_invalid ? link->invalid(token) : link->lose(token);
             }});
    post_offer(false);
  }
  heard();
  if (!mute_) (first ? context_.events.on_up : context_.events.on_reconnected)(id_);
  std::lock_guard lock(mutex_);
  pump();
  return true;
}

void Link::lose(Token token) {
  {
    std::lock_guard event_lock(event_mutex_);
    std::lock_guard lock(mutex_);
    if (connection_.token != token || state_ != State::up) return;
    state_ = State::lost;
    end_connection();
  }
  context_.on_lost(shared_from_this());
}

void Link::gone(const std::string& reason) {
  std::lock_guard event_lock(event_mutex_);
  {
    std::lock_guard lock(mutex_);
    if (state_ == State::ended) return;
    end();
  }
  if (!mute_.exchange(true)) context_.events.on_gone(id_, reason);
}

void Link::invalid(Token token) {
  const char* const what = "it sent invalid bytes";
  if (!is_up_by(token)) return;
  context_.events.on_note(concat(name(), ": ", what, "; closed the connection"));
  gone(what);
}

// ---- time ----

void Link::tick(std::int64_t now, bool fresh) {
  const std::int64_t silence = context_.options.silence.ns;
  if (fresh || state_ == State::fresh) heard_at_ = now;
  {
    std::lock_guard lock(mutex_);
    unanswered_ = silent_ ? unanswered_ : 0;
    // The peer may be less patient.
    const auto least =
        std::min<std::uint64_t>(connection_.silence_ns, static_cast<std::uint64_t>(silence));
    const bool owes = unacknowledged_ > 0 || now - sent_at_ > static_cast<std::int64_t>(least / 4);
    if (lane_ && owes && unanswered_ < kUnansweredMax) {
      ++unanswered_;
      acknowledge();
    }
    if (fresh) progress_at_ = now;
    if (leaving_ && (now - progress_at_ > kLeaveNs || now - left_at_ > kLeaveMostNs)) end();
    if (lender_) lender_->reap();
  }
  if (now - heard_at_ <= silence || silent_) return;
  std::lock_guard event_lock(event_mutex_);
  if (state_ == State::ended || now - heard_at_ <= silence || silent_.exchange(true) || mute_)
    return;
  context_.events.on_silent(id_);
}

}  // namespace leeway::transport
