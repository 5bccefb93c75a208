#pragma once
// MeshNode: implements Mesh: greetings, links, new calls for lost connections, and the clock.
//
// A greeting has three steps. The caller's hello contains its mesh. The welcome contains the other
// mesh and a token, which it expects in the caller's frames. The confirmation contains the caller's
// token. A token belongs to a pair of meshes, not to a call, so two processes that call each other
// at once agree.
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <shared_mutex>
#include <thread>

#include "cluster/link.hpp"
#include "cluster/tls_files.hpp"

namespace leeway::cluster {

/// The protocol that a process claims to speak.
struct Protocol {
  std::uint32_t number = kProtocolVersion;
  std::string version;
};
Protocol own_protocol();

/// Like open_mesh(), but claims to speak `protocol`.
Expected<std::unique_ptr<Mesh>> open_mesh_of(const MeshOptions& options, MeshEvents events,
                                             const Protocol& protocol);

class MeshNode final : public Mesh {
 public:
  MeshNode(const MeshOptions& options, MeshEvents events, Protocol protocol,
           std::unique_ptr<Post> post);
  ~MeshNode() override;
  Status listen();

  std::string address() const override { return options_.address; }
  std::uint16_t port() const override { return post_->port(); }
  Expected<PeerId> connect(const std::string& host, std::uint16_t port, Duration limit,
                           const std::string& advice) override;
  void send(PeerId to_peer, Address from, Address to, Message message) override;
  void leave(PeerId peer) override;
  bool is_connected(PeerId peer) const override;
  PeerCounts counts(PeerId peer) const override;
  std::string name(PeerId peer) const override;

 private:
  using LinkPointer = std::shared_ptr<Link>;
  enum class Answer : std::uint8_t {
    none,
    welcome,
    refused,  // by a Leeway process: calling again is useless
    again,    // the connection ended, or another to the same process is about to end
  };
  /// A hello that waits for an answer.
  struct Call {
    std::string host;
    std::uint16_t port = 0;
    std::string own_host;  // address at which the called process reaches this one
    MeshId expected;
    Route route;
    std::optional<Expected<PeerId>> result;
    Answer answer = Answer::none;
  };
  /// The token that was sent to a mesh which is not a peer yet.
  struct Greeted {
    Token token = 0;
    std::int64_t at = 0;
  };

  // Greeting, on the sockets' thread.
  void on_frame(const Route& from, Frame& frame);
  void on_hello(const Route& from, const Greeting& hello);
  void on_welcome(const Route& from, const Greeting& welcome);
  void on_confirm(const Route& from, Token token, const Greeting& confirm);
  void on_refuse(const Greeting& refuse);
  void on_lost(const caf::actor_control_block* route);
  bool is_greeted(MeshId mesh) const;
  std::string refusal_of(const Greeting& hello, LinkPointer& link);
  void refuse(const Route& to, const Greeting& hello, const std::string& why);
  Greeting greeting(std::uint64_t call) const;
  void greet(const Route& to, FrameKind kind, Greeting greeting, Token token = 0);
  Link::Connection connection_of(const Route& route, const Greeting& greeting) const;
  bool speaks(const Greeting& other) const;
  std::string too_far(const Greeting& other) const;
  std::string mismatch(const Greeting& other) const;

  // Calling, on threads that may block.
  Expected<PeerId> call(Call& call, Duration limit);
  void finish(std::uint64_t number, Expected<PeerId> result, Answer answer);
  void lose(const LinkPointer& link, std::optional<Token> token = {});
  void call_again(const LinkPointer& link);
  bool rest(const LinkPointer& link, Duration time);
  void in_background(std::function<void()> work);

  // Bulk connections.
  Status listen_for_bulk();
  void open_bulk(const LinkPointer& link, std::uint16_t port);
  void run_bulk(const LinkPointer& link, Token token, bool sends,
                std::unique_ptr<BulkSocket> socket);
  void end_of_bulk(const LinkPointer& link, Token token);
  bool still_connected(const LinkPointer& link, Token token, std::chrono::milliseconds time);

  LinkPointer find(PeerId peer) const;
  LinkPointer find(MeshId mesh) const;
  LinkPointer find_token(Token token) const;
  std::vector<LinkPointer> all_links() const;
  Token token_for(MeshId mesh);
  LinkPointer link_for(MeshId mesh);
  void run_clock();

  MeshOptions options_;
  MeshEvents events_;
  const Protocol protocol_;
  const MeshId id_;
  std::unique_ptr<Post> post_;
  std::optional<FailedHandshakes> failed_handshakes_;
  std::shared_ptr<const BulkTls> bulk_tls_;
  std::unique_ptr<BulkListener> bulk_listener_;
  std::atomic<std::uint16_t> bulk_port_{0};
  const std::function<void(PeerId, std::uint16_t)> open_bulk_;

  mutable std::shared_mutex mutex_;  // guards the links and greeted_
  std::vector<LinkPointer> peers_;   // by id
  std::map<MeshId, LinkPointer> by_mesh_;
  std::map<Token, LinkPointer> by_token_;
  std::map<MeshId, Greeted> greeted_;

  std::mutex call_mutex_;
  std::condition_variable call_changed_;
  std::map<std::uint64_t, Call*> calls_;
  unsigned background_ = 0;  // running threads
  bool closing_ = false;
  std::int64_t closing_since_ = 0;
  std::thread clock_;
};

}  // namespace leeway::cluster
