#pragma once
// Link: one peer of a mesh: its lanes, and the messages in both directions.
//
//          install()      lose()
//   (new) ----------> up --------> lost
//                     | ^           | |
//                     | +-----------+ |
//                     |   install()   |
//                     +---> ended <---+
//                    gone(), the end of leave()
//
// After leave(), the link takes no more messages, sends its queue, also on a new connection, and
// ends when the peer has all of it.
//
// A new connection continues where the last one ended: each side says how many messages it has
// received on each lane, and the other sends all later ones again. Roles therefore notice no loss.
//
// Each process calls the other when its link is not up, so calls can cross. Of two calls under way,
// that of the process with the larger MeshId goes on. A call that was begun before its process took
// the present connection is refused: the caller has named the connection that it had last.
//
// Events of the peer are reported one after the other under `event_mutex_`. The reported states
// change under it too, so events keep their order. `mutex_` guards the state for sending, and is
// never held while an event is reported.
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "transport/arrivals.hpp"
#include "transport/greeting.hpp"
#include "transport/mesh.hpp"
#include "transport/small_lane.hpp"

namespace leeway::transport {

class Link;

/// Shared by all links of a mesh, which it outlives.
struct LinkContext {
  MeshId own;
  Poller& poller;
  const MeshEvents& events;  // none is empty
  const MeshOptions& options;
  /// The connection of a link is lost: makes it again. From any thread; does not block.
  const std::function<void(const std::shared_ptr<Link>&)>& on_lost;
  /// Opens both bulk lanes of a link that this side has called. Does not block.
  const std::function<void(const std::shared_ptr<Link>&)>& open_bulk;
};

class Link : public std::enable_shared_from_this<Link> {
 public:
  enum class State : std::uint8_t { fresh, up, lost, ended };
  /// A connection to the peer.
  struct Connection {
    std::string host;  // where the peer listens
    std::uint16_t port = 0;
    std::uint64_t peer_link = 0;  // the peer's Link::number()
    Token token = 0;
    std::uint64_t window_bytes = 0;
    std::uint64_t silence_ns = 0;  // after which the peer takes this process for silent
    bool called = false;           // by this process
  };
  /// An attempt to connect: its number, and the state of this side.
  struct Attempt {
    std::uint64_t number = 0;
    LaneCounts received;
    Token last = 0;  // of the last connection; zero: none
  };
  /// Why a call of the peer is not taken.
  enum class Objection : std::uint8_t { none, ended, yields };

  Link(PeerId id, MeshId mesh, LinkContext context);

  PeerId id() const { return id_; }
  MeshId mesh() const { return mesh_; }
  /// Tells this link from earlier and later ones between the same processes. Random.
  std::uint64_t number() const { return number_; }
  State state() const { return state_.load(); }
  bool is_leaving() const { return leaving_; }
  Connection connection() const;
  std::string name() const;
  PeerCounts counts() const;

  void send(Address from, Address to, Message message);
  /// Ends the link when the peer has all messages, or does not take them for some seconds.
  void leave();
  /// Ends at once, without a bye.
  void give_up();

  /// Begins a call of this process. Nothing if the link is up or ends, or another attempt is under
  /// way.
  std::optional<Attempt> begin_call();
  /// Begins to take a call of the peer, whose last connection was `last`. This ends the present
  /// connection and a call of this process. `continues`: the peer has this link too.
  Objection take_call(Token last, bool continues, Attempt& attempt);
  /// The attempt has failed.
  void abandon(const Attempt& attempt);
  /// Continues on a new connection, the first or a later one. False: the attempt is no longer under
  /// way, or the peer's count of received messages is impossible.
  bool install(const Attempt& attempt, Connection connection, std::unique_ptr<Stream> stream,
               const LaneCounts& received_there);
  /// The connection is lost, unless `token` belongs to another.
  void lose(Token token);
  /// The peer is gone for good.
  void gone(const std::string& reason);
  /// Whether the link is up with this connection.
  bool is_up_by(Token token) const { return token != 0 && up_by_ == token; }
  /// Send and receive on a bulk lane until the connection ends. They block, also until such a lane
  /// of an earlier connection has ended. False: the token belongs to another connection, or this
  /// one has such a lane already.
  bool send_bulk(Stream& stream, Token token);
  bool receive_bulk(Stream& stream, Token token);
  /// Called periodically. `fresh`: this process was stopped, so the peer's silence starts now.
  void tick(std::int64_t now, bool fresh);

 private:
  enum class Reading : std::uint8_t { message, ended, invalid };

  struct BulkLane {
    Stream* stream = nullptr;  // null: no such lane
    Token token = 0;           // of its connection
  };

  // Under mutex_.
  bool take_place(BulkLane& place, Stream& stream, Token token, std::unique_lock<std::mutex>& lock);
  void pump();
  void acknowledge();
  void ask_for_bulk();
  void post_offer(bool readable);
  Attempt begin_attempt(bool calls);
  void end_connection();
  void end();

  void heard();
  bool on_frame(Token token, FrameKind kind, std::span<const std::byte> body);
  bool on_letter(Token token, std::span<const std::byte> body);
  bool on_ack(const LaneCounts& received);
  bool on_offer(Token token, ByteReader body);
  void on_bulk_request();
  void take_leave();
  /// Takes a complete message of the connection. False: it is invalid.
  bool accept(Token token, Arrival arrival, std::uint64_t LaneCounts::*lane);
  bool borrow(Arrival& arrival);
  void deliver(Address from, Address to);
  bool write_in_pieces(Stream& stream, const Blob& blob);
  Reading read_bulk(Stream& stream, Arrival& arrival);
  /// The peer broke the protocol: it loses its link.
  void invalid(Token token);

  const PeerId id_;
  const MeshId mesh_;
  const std::uint64_t number_;
  const LinkContext context_;
  std::atomic<State> state_{State::fresh};
  std::atomic<Token> up_by_{0};  // changes under mutex_; zero: not connected
  std::atomic<std::int64_t> heard_at_, sent_at_{0};
  std::atomic<bool> silent_{false};
  std::atomic<std::uint64_t> messages_in_{0}, bytes_in_{0};
  Arrivals arrivals_;

  mutable std::recursive_mutex event_mutex_;
  std::atomic<bool> mute_{false};

  mutable std::mutex mutex_;
  std::condition_variable bulk_changed_;
  Connection connection_;  // the last one
  std::uint64_t attempts_ = 0;
  enum class Attempting : std::uint8_t { nothing, calls, is_called } attempting_{};
  std::shared_ptr<SmallLane> lane_;  // null: not connected
  SendQueue queue_;
  LaneCounts received_;
  std::uint64_t unacknowledged_ = 0;  // bytes received on the small lane, lent ones included
  std::optional<LaneCounts> bye_;     // what the peer has sent before it leaves
  std::optional<Borrower> borrower_;  // set once, if at all
  std::optional<Lender> lender_;
  BulkLane bulk_out_, bulk_in_;
  bool bulk_asked_ = false;           // on this connection
  bool offered_ = false;              // on this connection: "your memory is readable"
  std::uint32_t unanswered_ = 0;      // signs of life since the last frame of the peer
  std::atomic<bool> leaving_{false};  // changes under mutex_
  bool bye_sent_ = false;             // on this connection
  std::int64_t left_at_ = 0;
  /// When the link began to leave or was connected again, or its peer last took a piece of the
  /// queue.
  std::atomic<std::int64_t> progress_at_{0};
};

}  // namespace leeway::transport
