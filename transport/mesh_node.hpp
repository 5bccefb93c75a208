#pragma once
// MeshNode: implements Mesh: links, calls, new calls for lost connections, and the clock.
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <shared_mutex>
#include <thread>
#include <variant>

#include "transport/link.hpp"
#include "transport/reception.hpp"

namespace leeway::transport {

/// The protocol that a process claims to speak.
struct Protocol {
  std::uint32_t number = kTransportProtocol;
  std::string version;
};
Protocol own_protocol();

/// Like open_mesh(), but claims to speak `protocol`.
Expected<std::unique_ptr<Mesh>> open_mesh_of(const MeshOptions& options, MeshEvents events,
                                             const Protocol& protocol);

class MeshNode final : public Mesh {
 public:
  /// `tls` is null without TLS; then `secret` is the user's.
  MeshNode(const MeshOptions& options, MeshEvents events, Protocol protocol,
           std::shared_ptr<const Tls> tls, const Secret& secret);
  ~MeshNode() override;
  Status listen();

  std::string address() const override { return options_.address; }
  std::uint16_t port() const override { return port_; }
  Expected<PeerId> connect(const std::string& host, std::uint16_t port, Duration limit,
                           const std::string& advice) override;
  void send(PeerId to_peer, Address from, Address to, Message message) override;
  void leave(PeerId peer) override;
  bool is_connected(PeerId peer) const override;
  PeerCounts counts(PeerId peer) const override;
  std::string name(PeerId peer) const override;

 private:
  using LinkPointer = std::shared_ptr<Link>;
  /// Why a call has failed.
  struct Failure {
    enum class Kind : std::uint8_t {
      unreached,  // no process listens there
      failed,
      refused,  // by a Leeway process: it will refuse every call
      again,    // another call between the two processes was under way
    };
    std::string why;
    Kind kind = Kind::failed;
  };
  /// One call of a process.
  struct Call {
    std::string host;
    std::uint16_t port = 0;
    MeshId expected{};
    bool only_asks = false;  // whether the expected process still listens there
    std::int64_t until = 0;  // on the steady clock
    Hello hello{};
  };

  // Called, on the poller's thread (mesh_node.cpp).
  Welcome welcome(const Hello& hello);
  std::string refusal_of(const Hello& hello) const;
  void connect_caller(const Hello& hello, const LinkDetails& confirm,
                      std::unique_ptr<Stream> stream);
  LinkPointer link_for_caller(const Hello& hello, const LinkDetails& confirm);
  bool take_bulk(const Hello& hello, std::unique_ptr<Stream> stream);

  // Calling, on threads that may block (mesh_calls.cpp).
  std::variant<LinkPointer, Failure> call(Call& call);
  std::variant<LinkPointer, Failure> greet(Call& call, std::unique_ptr<Stream> stream);
  std::variant<LinkPointer, Failure> confirm(Call& call, const Welcome& welcome,
                                             const LinkPointer& link, const Link::Attempt& attempt,
                                             std::unique_ptr<Stream> stream);
  std::variant<std::unique_ptr<Stream>, Failure> open_stream(Call& call) const;
  bool exchange(Stream& stream, const Bytes& packet, PacketReader& answer,
                std::int64_t until) const;
  LinkPointer wait_until_up(const LinkPointer& link, std::int64_t until);
  void call_again(const LinkPointer& link);
  bool rest(const LinkPointer& link, Duration time);
  bool pause_while_up(const LinkPointer& link, Token token, Duration time);
  void open_bulk(const LinkPointer& link);
  static bool is_confirmed(Stream& stream);
  /// `called`: by the peer, which must confirm the lane.
  void run_bulk(const LinkPointer& link, Token token, bool sends, bool called,
                std::unique_ptr<Stream> stream);
  /// Calls `work` on a new thread, later if none can be started now.
  void in_background(std::function<void()> work);
  void start_threads();

  LinkDetails details(const std::string& host) const;
  std::string too_far(const LinkDetails& other) const;
  std::string mismatch(const std::string& their_version, std::uint32_t their_protocol) const;
  /// Null if the peer is gone.
  LinkPointer find(PeerId peer) const;
  /// Null if the mesh is no peer, or is gone.
  LinkPointer find(MeshId mesh) const;
  LinkPointer find_token(Token token) const;
  std::vector<LinkPointer> all_links() const;
  LinkPointer link_for(MeshId mesh);
  void note(const std::string& text) const { events_.on_note(text); }
  void tick();

  MeshOptions options_;
  MeshEvents events_;
  const Protocol protocol_;
  const std::shared_ptr<const Tls> tls_;
  const Secret secret_;
  const MeshId id_;
  std::uint16_t port_ = 0;
  const std::function<void(const LinkPointer&)> on_lost_, open_bulk_;
  std::int64_t ticked_at_;

  mutable std::shared_mutex mutex_;      // guards the links
  std::map<PeerId, LinkPointer> peers_;  // that have not ended
  std::uint32_t next_peer_ = 0;
  std::map<MeshId, LinkPointer> by_mesh_;

  std::mutex call_mutex_;
  std::condition_variable call_changed_;
  std::set<PeerId> called_again_;                // links that call_again() works for
  unsigned background_ = 0;                      // running threads
  std::deque<std::function<void()>> unstarted_;  // work for which no thread could be started
  bool closed_ = false;                          // no thread starts: all links have ended

  Poller poller_;
  std::shared_ptr<Reception> reception_;
};

}  // namespace leeway::transport
