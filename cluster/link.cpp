#include "cluster/link.hpp"

#include <cstring>
#include <exception>
#include <tuple>

namespace leeway::cluster {
namespace {

/// A chunk must still be in the cache when CAF passes its copy to the system: 1 MiB is slower
/// (mesh_bench).
constexpr std::uint64_t kChunkBytes = 256u << 10;
/// Most signs of life to a silent peer: each takes memory until the peer reads.
constexpr std::uint32_t kUnansweredMax = 1000;
/// Time for a leaving link to send its queue and receive the farewell.
constexpr std::int64_t kLeaveNs = 2'000'000'000;

constexpr const char* kInvalidFrame = "it sent an invalid frame";
/// Header, sizes, small blobs and loans.
constexpr std::uint64_t kMaxLetterBytes =
    limits::kMaxHeaderBytes + kInlineBytes + limits::kMaxBlobs * 64 + 1024;

/// A letter that was read from a bulk connection.
struct Bytes final : Source {
  explicit Bytes(std::uint64_t count) : all(count) {}
  bool take(void* to, std::size_t count) override {
    if (count > remaining()) return false;
    if (count > 0) std::memcpy(to, all.data() + at, count);
    at += count;
    return true;
  }
  std::size_t remaining() const override { return all.size() - at; }
  std::vector<std::byte> all;
  std::size_t at = 0;
};

Frame bare(FrameKind kind) {
  Frame frame;
  frame.kind = kind;
  return frame;
}

}  // namespace

Link::Link(PeerId id, MeshId mesh, Token token, LinkContext context)
    : id_(id),
      mesh_(mesh),
      context_(context),
      heard_at_(steady_ns()),
      inbound_(inbounds::find(token)),
      out_(context.options.window_bytes, kChunkBytes) {
  LW_CHECK(inbound_ != nullptr);
  if (context.options.transport == Transport::tcp) return;
  if (auto borrower = Borrower::create()) borrower_.emplace(std::move(*borrower));
}

Token Link::token() const {
  std::lock_guard lock(mutex_);
  return inbound_->token();
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
  return {.messages_out = out_.messages(),
          .messages_in = messages_in_,
          .bytes_out = out_.bytes(),
          .bytes_in = bytes_in_,
          .waiting = out_.waiting(),
          .shared_memory = lender_.has_value(),
          .bulk = bulk_out_ != nullptr};
}

// Sending, under mutex_.

void Link::send(Address from, Address to, Message message) {
  for (const Blob& blob : message.blobs()) {
    if (blob.device() == Device{}) continue;
    std::vector<Blob> blobs;
    for (const Blob& each : message.blobs()) blobs.push_back(each.on_host());
    message = Message({message.header().begin(), message.header().end()}, std::move(blobs));
    break;
  }
  std::lock_guard lock(mutex_);
  if (state_ != State::up && state_ != State::lost) return;
  out_.put(from, to, std::move(message));
  pump();
}

void Link::pump() {
  if (state_ != State::up && state_ != State::leaving) return;
  while (auto frame = out_.next()) post(std::move(*frame));
  if (state_ == State::leaving && out_.empty() && !bye_sent_) {
    bye_sent_ = true;
    Frame bye = bare(FrameKind::bye);
    bye.number = out_.begun();
    post(std::move(bye));
  }
}

void Link::post(Frame frame) {
  frame.token = connection_.token;
  if (frame.bulk) return bulk_out_->put(std::move(frame));
  if (frame.kind == FrameKind::letter && frame.packing->behind > 0) ask_for_bulk();
  sent_at_ = steady_ns();
  context_.post.send(connection_.route, std::move(frame));
}

/// Once for each connection, before the first large blob.
void Link::ask_for_bulk() {
  if (!context_.options.bulk || std::exchange(bulk_asked_, true)) return;
  Frame frame = bare(FrameKind::bulk);
  frame.number = connection_.called ? 0 : context_.bulk_port.load();
  if (connection_.called || frame.number != 0) post(std::move(frame));
}

void Link::end_bulk() {
  out_.use_bulk(false);
  if (bulk_out_) bulk_out_->cut();
  bulk_out_.reset();
  if (bulk_in_) bulk_in_->cut();
  bulk_in_.reset();
  bulk_asked_ = bulk_opening_ = false;
}

void Link::leave() {
  mute_ = true;
  std::lock_guard lock(mutex_);
  if (state_ == State::up) {
    state_ = State::leaving;
    left_at_ = steady_ns();
    pump();
  } else if (state_ != State::leaving) {
    end();
  }
}

void Link::give_up() {
  std::lock_guard lock(mutex_);
  end();
}

void Link::end() {
  state_ = State::ended;
  inbounds::close(inbound_->token());
  end_bulk();
  out_.lend_by(nullptr);
  lender_.reset();
  if (borrower_) borrower_->close();
  out_.clear();
  connection_.route = nullptr;
}

// The connection.

void Link::made(Connection connection) {
  std::lock_guard event_lock(event_mutex_);
  const Route route = connection.route;
  bool first = false;
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::fresh && state_ != State::lost) return;
    first = state_ == State::fresh;
    connection_ = std::move(connection);
    owed_ = 0;
    state_ = State::up;
    post_offer(false);
  }
  heard();
  if (!mute_) (first ? context_.events.on_up : context_.events.on_reconnected)(id_);
  {
    std::lock_guard lock(mutex_);
    pump();
  }
  context_.post.watch(route);  // reports at once if it is lost already
}

bool Link::lose(std::optional<Token> token) {
  std::lock_guard event_lock(event_mutex_);
  std::lock_guard lock(mutex_);
  if (token && !is_up_by(*token)) return false;
  if (state_ == State::leaving) end();
  if (state_ != State::up) return false;
  state_ = State::lost;
  connection_.route = nullptr;
  out_.restart();
  end_bulk();
  out_.lend_by(nullptr);  // until the peer is back
  offered_ = false;
  if (borrower_) borrower_->reconnect();
  inbounds::close(inbound_->token());
  inbound_ = inbounds::open(random_word());
  return true;
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

// Receiving.

void Link::heard() {
  heard_at_ = steady_ns();
  if (!silent_) return;
  std::lock_guard event_lock(event_mutex_);
  if (silent_.exchange(false) && !mute_) context_.events.on_heard(id_);
}

void Link::on_frame(Frame& frame) {
  if (!frame.inbound || state_ == State::ended) return;  // the connection is lost
  if (frame.broken) return broken(*frame.inbound, kInvalidFrame);
  heard();
  switch (frame.kind) {
    case FrameKind::letter:
      return on_letter(frame);
    case FrameKind::chunk:
      return on_chunk(frame);
    case FrameKind::offer:
      return on_offer(frame);
    case FrameKind::bulk:
      return on_bulk(frame.number);
    case FrameKind::credit: {
      std::lock_guard lock(mutex_);
      out_.credited(frame.bytes);
      return pump();
    }
    case FrameKind::bye:
      bye_after_ = frame.number;
      return take_leave(*frame.inbound);
    case FrameKind::farewell:
      return gone("left");
    default:
      return;  // alive
  }
}

/// After all messages from before the bye; those on a bulk connection may arrive later.
void Link::take_leave(const Inbound& inbound) {
  if (inbound.taken() < bye_after_) return;
  {
    std::lock_guard lock(mutex_);
    if (connection_.route) post(bare(FrameKind::farewell));
  }
  gone("left");
}

void Link::on_letter(Frame& frame) {
  const auto& arrival = frame.arrival;
  if (!borrow(*arrival)) return broken(*frame.inbound, "it lent a blob that it does not have");
  const auto [from, to, cost] = std::tuple(arrival->from, arrival->to, arrival->cost);
  const bool whole = arrival->left == 0, bulk = arrival->bulk;
  if (!frame.inbound->begin(frame.number, arrival))
    return broken(*frame.inbound, "it began a message twice, or too many at once");
  if (whole)
    deliver(frame.inbound, from, to);
  else if (!bulk)
    owe(cost);
}

// Shared memory: each side offers its own and attaches the other's. When one confirms that it can
// read, the other lends.

void Link::post_offer(bool readable) {
  if (!borrower_) return;
  Frame frame = bare(FrameKind::offer);
  frame.number = readable ? 1 : 0;
  frame.offer = borrower_->offer();
  post(std::move(frame));
}

void Link::on_offer(const Frame& frame) {
  if (!borrower_) return;
  const bool readable = bool(borrower_->attach(frame.offer));
  std::lock_guard lock(mutex_);
  if (!connection_.route || state_ != State::up) return;
  if (readable && !std::exchange(offered_, true)) post_offer(true);
  if (frame.number != 1) return;
  if (!lender_) {
    auto made = Lender::create(frame.offer);
    if (!made) return;
    lender_.emplace(std::move(*made));
  } else if (!lender_->reconnect(frame.offer)) {
    return;
  }
  out_.lend_by(&*lender_);
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

void Link::on_chunk(Frame& frame) {
  if (frame.arrival->left == 0) {
    frame.inbound->end(frame.number);
    deliver(frame.inbound, frame.arrival->from, frame.arrival->to);
  }
  owe(chunk_cost(frame.bytes));
}

/// Delivers complete messages in order.
void Link::deliver(const std::shared_ptr<Inbound>& inbound, Address from, Address to) {
  std::lock_guard event_lock(event_mutex_);
  {
    std::lock_guard lock(mutex_);
    if (inbound != inbound_) return;  // the connection was lost
  }
  while (const auto arrival = inbound->take(from, to)) {
    ++messages_in_;
    bytes_in_ += arrival->header.size() * sizeof(std::uint64_t);
    for (const Blob& blob : arrival->blobs) bytes_in_ += blob.size();
    const bool owed = arrival->behind == 0;
    if (!mute_) context_.events.on_message(id_, from, to, arrival->message());
    if (owed) owe(arrival->cost);
  }
  take_leave(*inbound);
}

// Bulk: the called side names its port, and the caller opens the connections.

void Link::on_bulk(std::uint64_t port) {
  bool open = false;
  {
    std::lock_guard lock(mutex_);
    if (!connection_.route || state_ != State::up) return;
    if (!connection_.called) return ask_for_bulk();
    open =
        context_.options.bulk && port > 0 && port <= 0xffff && !std::exchange(bulk_opening_, true);
  }
  if (open) context_.open_bulk(id_, static_cast<std::uint16_t>(port));
}

bool Link::is_up_by(Token token) const {
  return state_ == State::up && (token == inbound_->token() || token == connection_.token);
}

bool Link::is_connected_by(Token token) const {
  std::lock_guard lock(mutex_);
  return is_up_by(token);
}

bool Link::send_by(const std::shared_ptr<BulkOut>& bulk, Token token) {
  std::lock_guard lock(mutex_);
  if (!is_up_by(token) || bulk_out_) return false;
  bulk_out_ = bulk;
  out_.use_bulk(true);
  return true;
}

void Link::bulk_sent(const BulkOut& bulk) {
  std::lock_guard lock(mutex_);
  if (bulk_out_.get() != &bulk) return;
  out_.bulk_sent();
  pump();
}

bool Link::read_from(const std::shared_ptr<BulkSocket>& socket, Token token) {
  std::shared_ptr<Inbound> inbound;
  {
    std::lock_guard lock(mutex_);
    if (!is_up_by(token) || bulk_in_) return false;
    bulk_in_ = socket;
    inbound = inbound_;
  }
  while (load_from(*socket, inbound)) heard();
  return true;
}

bool Link::load_from(BulkSocket& bulk, const std::shared_ptr<Inbound>& inbound) {
  try {
    return load_one(bulk, inbound);
  } catch (const std::bad_alloc&) {  // it announced more memory than this host has
    broken(*inbound, kInvalidFrame);
    return false;
  }
}

bool Link::load_one(BulkSocket& bulk, const std::shared_ptr<Inbound>& inbound) {
  BulkHead head;
  if (!bulk.read(&head, sizeof head)) return false;
  const auto invalid = [&] {
    broken(*inbound, kInvalidFrame);
    return false;
  };
  if (head.number == BulkHead::kLetter) {
    if (head.bytes > kMaxLetterBytes) return invalid();
    Bytes bytes(head.bytes);
    Frame frame;
    if (!bulk.read(bytes.all.data(), bytes.all.size())) return false;
    if (!load(frame, bytes) || frame.kind != FrameKind::letter || frame.inbound != inbound ||
        !frame.arrival->bulk)
      return invalid();
    on_letter(frame);
    return true;
  }
  const auto arrival = inbound->find(head.number);
  if (!arrival || !arrival->bulk || head.bytes == 0 || head.bytes > arrival->left) return invalid();
  for (std::uint64_t left = head.bytes; left > 0;) {
    const auto piece = arrival->next_piece(left);
    if (!bulk.read(piece.data(), piece.size())) return false;
    left -= piece.size();
  }
  if (arrival->left > 0) return true;
  inbound->end(head.number);
  deliver(inbound, arrival->from, arrival->to);
  return true;
}

void Link::owe(std::uint64_t cost) {
  std::lock_guard lock(mutex_);
  owed_ += cost;
  if (owed_ < connection_.window_bytes / 4 || !connection_.route) return;
  Frame frame = bare(FrameKind::credit);
  frame.bytes = std::exchange(owed_, 0);
  post(std::move(frame));
}

/// Ignored if the connection of `inbound` has been lost.
void Link::broken(const Inbound& inbound, const char* what) {
  {
    std::lock_guard lock(mutex_);
    if (inbound_.get() != &inbound || state_ == State::lost || state_ == State::ended) return;
  }
  context_.events.on_note(concat(name(), ": ", what, "; closed the connection"));
  gone(what);
}

// Time.

void Link::tick(std::int64_t now, bool fresh) {
  const std::int64_t silence = context_.options.silence.ns;
  if (fresh) heard_at_ = now;
  if (state_ == State::up || state_ == State::leaving) {
    std::lock_guard lock(mutex_);
    unanswered_ = silent_ ? unanswered_ : 0;
    if (now - sent_at_ > silence / 4 && unanswered_ < kUnansweredMax && connection_.route) {
      ++unanswered_;
      post(bare(FrameKind::alive));
    }
    if (state_ == State::leaving && now - left_at_ > kLeaveNs) end();
    if (lender_) lender_->reap();
  }
  if (now - heard_at_ <= silence || silent_) return;
  std::lock_guard event_lock(event_mutex_);
  if (state_ == State::ended || now - heard_at_ <= silence || silent_.exchange(true) || mute_)
    return;
  context_.events.on_silent(id_);
}

}  // namespace leeway::cluster
