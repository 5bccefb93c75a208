#pragma once
// Link: one peer of a mesh, what is sent to it and what comes from it.
//
//          made()            lose()
//   (new) -------> up ------------------> lost
//                  ^ |  <---------------   |
//          leave() | |        made()       | gone(), leave()
//                  v  gone(), lose()       v
//               leaving ---------------> ended
//
// What is told of the peer is told one after the other, under `telling_`; a state that is told
// changes under it too, so that news comes in the order in which it happened. `mutex_` guards what
// sending needs and is never held while something is told.
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

/// What all links of a mesh share. It outlives them.
struct LinkContext {
  Post& post;
  const MeshEvents& events;  // none of them empty
  const MeshOptions& options;
  /// Where this process takes bulk connections; 0: nowhere.
  const std::atomic<std::uint16_t>& bulk_port;
  /// Opens one to the peer, who takes them at `port`. Does not block.
  const std::function<void(PeerId, std::uint16_t port)>& open_bulk;
};

class Link {
 public:
  enum class State : std::uint8_t { fresh, up, lost, leaving, ended };
  /// A connection to the peer.
  struct Connection {
    Route route;
    Token token = 0;  // frames to the peer carry it
    std::uint64_t window_bytes = 0;
    std::string host;
    std::uint16_t port = 0;
    bool called = false;     // by this process
    std::uint64_t call = 0;  // the greeting that led to it
  };

  Link(PeerId id, MeshId mesh, Token token, LinkContext context);
  ~Link() { inbounds::close(token()); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  PeerId id() const { return id_; }
  MeshId mesh() const { return mesh_; }
  State state() const { return state_.load(); }
  Token token() const;  // frames from the peer carry it
  Connection connection() const;
  std::string name() const;
  PeerCounts counts() const;

  void send(Address from, Address to, Message message);
  void leave();
  /// Ends without another word.
  void give_up();

  /// A connection has been made, for the first time or again.
  void made(Connection connection);
  /// It is lost, if `token` is of it or none is given. True: it is to be made again, under the new
  /// token.
  bool lose(std::optional<Token> token = {});
  /// For good.
  void gone(const std::string& reason);
  /// A frame that carries this link's token.
  void on_frame(Frame& frame);
  /// Whether it is up, by the connection of which this is one of the two tokens.
  bool is_connected_by(Token token) const;
  /// From now on large blobs leave by `bulk`. False: `token` is of another connection, or there is
  /// one already.
  bool send_by(const std::shared_ptr<BulkOut>& bulk, Token token);
  /// A frame has left by it.
  void bulk_sent(const BulkOut& bulk);
  /// Reads frames until the connection ends. Blocks. False at once as above.
  bool read_from(const std::shared_ptr<BulkSocket>& socket, Token token);
  /// Called often. `fresh`: this process was stopped, so silence begins anew.
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
  std::atomic<std::uint64_t> bye_after_{~std::uint64_t{0}};  // messages, that the peer has sent
  std::atomic<std::uint64_t> messages_in_{0}, bytes_in_{0};

  mutable std::recursive_mutex telling_;
  std::atomic<bool> mute_{false};

  mutable std::mutex mutex_;
  Connection connection_;
  std::shared_ptr<Inbound> inbound_;
  Outbound out_;
  std::optional<Borrower> borrower_;  // set once, if at all
  std::optional<Lender> lender_;
  std::shared_ptr<BulkOut> bulk_out_;    // when there is one
  std::shared_ptr<BulkSocket> bulk_in_;  // when somebody reads
  bool bulk_opening_ = false;            // likewise
  bool bulk_asked_ = false;              // on this connection
  bool offered_ = false;                 // on this connection, that its memory can be read
  std::uint64_t owed_ = 0;               // credit that the peer has not been given
  std::uint32_t unanswered_ = 0;         // signs of life since something was heard
  bool bye_sent_ = false;
  std::int64_t left_at_ = 0;
};

}  // namespace leeway::cluster
