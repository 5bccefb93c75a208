#pragma once
// Link: one peer of a mesh: its connection, outgoing and incoming messages.
//
//          made()            lose()
//   (new) -------> up ------------------> lost
//                  ^ |  <---------------   |
//          leave() | |        made()       | gone(), leave()
//                  v  gone(), lose()       v
//               leaving ---------------> ended
//
// Events of the peer are reported one after the other under `event_mutex_`. The reported states
// change under it too, so events keep their order. `mutex_` guards the state for sending, and is
// never held while an event is reported.
#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "cluster/bulk.hpp"
#include "cluster/mesh.hpp"
#include "cluster/outbound.hpp"
#include "cluster/post.hpp"
#include "cluster/this_host.hpp"

namespace leeway::cluster {

class Link;

/// Shared by all links of a mesh, which it outlives.
struct LinkContext {
  Post& post;
  const MeshEvents& events;  // none is empty
  const MeshOptions& options;
  /// Port at which this process takes bulk connections; 0: none.
  const std::atomic<std::uint16_t>& bulk_port;
  /// Opens a bulk connection to the peer's `port`. Does not block.
  const std::function<void(PeerId, std::uint16_t port)>& open_bulk;
};

class Link {
 public:
  enum class State : std::uint8_t { fresh, up, lost, leaving, ended };
  /// A connection to the peer.
  struct Connection {
    Route route;
    Token token = 0;  // of frames to the peer
    std::uint64_t window_bytes = 0;
    std::string host;
    std::uint16_t port = 0;
    bool called = false;     // by this process
    std::uint64_t call = 0;  // number of its greeting
  };

  Link(PeerId id, MeshId mesh, Token token, LinkContext context);
  ~Link() { inbounds::close(token()); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  PeerId id() const { return id_; }
  MeshId mesh() const { return mesh_; }
  State state() const { return state_.load(); }
  Token token() const;  // of frames from the peer
  Connection connection() const;
  std::string name() const;
  PeerCounts counts() const;

  void send(Address from, Address to, Message message);
  void leave();
  /// Ends at once, without a bye.
  void give_up();

  /// Takes a new connection, the first or a later one.
  void made(Connection connection);
  /// The connection is lost, unless `token` belongs to another. True: the caller must make it
  /// again, with the new token.
  bool lose(std::optional<Token> token = {});
  /// The peer is gone for good.
  void gone(const std::string& reason);
  /// Handles a frame with this link's token.
  void on_frame(Frame& frame);
  /// Whether the link is up, and `token` is one of its connection's two tokens.
  bool is_connected_by(Token token) const;
  /// Sends large blobs by `bulk` from now on. False: `token` belongs to another connection, or the
  /// link has a bulk connection already.
  bool send_by(const std::shared_ptr<BulkOut>& bulk, Token token);
  /// `bulk` has sent a frame.
  void bulk_sent(const BulkOut& bulk);
  /// Reads frames until the connection ends. Blocks. False at once as in send_by().
  bool read_from(const std::shared_ptr<BulkSocket>& socket, Token token);
  /// Called periodically. `fresh`: this process was stopped, so the peer's silence starts now.
  void tick(std::int64_t now, bool fresh);

 private:
  bool is_up_by(Token token) const;
  void heard();
  void on_letter(Frame& frame);
  void on_chunk(Frame& frame);
  void on_offer(const Frame& frame);
  void on_bulk(std::uint64_t port);
  bool borrow(Arrival& arrival);
  void post_offer(bool readable);
  void broken(const Inbound& inbound, const char* what);
  void take_leave(const Inbound& inbound);
  bool load_one(BulkSocket& bulk, const std::shared_ptr<Inbound>& inbound);
  bool load_from(BulkSocket& bulk, const std::shared_ptr<Inbound>& inbound);
  void deliver(const std::shared_ptr<Inbound>& inbound, Address from, Address to);
  void owe(std::uint64_t cost);
  void ask_for_bulk();
  void end_bulk();
  void pump();
  void post(Frame frame);
  void end();

  const PeerId id_;
  const MeshId mesh_;
  const LinkContext context_;
  std::atomic<State> state_{State::fresh};
  std::atomic<std::int64_t> heard_at_, sent_at_{0};
  std::atomic<bool> silent_{false};
  std::atomic<std::uint64_t> bye_after_{~std::uint64_t{0}};  // messages that the peer has sent
  std::atomic<std::uint64_t> messages_in_{0}, bytes_in_{0};

  mutable std::recursive_mutex event_mutex_;
  std::atomic<bool> mute_{false};

  mutable std::mutex mutex_;
  Connection connection_;
  std::shared_ptr<Inbound> inbound_;
  Outbound out_;
  std::optional<Borrower> borrower_;  // set once, if at all
  std::optional<Lender> lender_;
  std::shared_ptr<BulkOut> bulk_out_;    // null: none
  std::shared_ptr<BulkSocket> bulk_in_;  // null: none
  bool bulk_opening_ = false;            // to the peer
  bool bulk_asked_ = false;              // on this connection
  bool offered_ = false;                 // on this connection: "your memory is readable"
  std::uint64_t owed_ = 0;               // credit not yet sent
  std::uint32_t unanswered_ = 0;         // signs of life since the last frame of the peer
  bool bye_sent_ = false;
  std::int64_t left_at_ = 0;
};

}  // namespace leeway::cluster
