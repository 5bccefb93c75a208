#pragma once
// Mesh: connections of this process to others, for messages between their actors.
//
// A peer is one process; after a restart it is another peer. Messages from one actor to another
// arrive in the order of sending, and small ones do not wait behind tensors of other actors. The
// bytes in flight to a peer are bounded: further messages wait here as references, not as copies.
//
// Leeway has its own transport, because gRPC, ZeroMQ and caf::io do not offer these together:
// - messages that are not acknowledged are sent again on the next connection;
// - the messages of a pair of actors stay in order, although several lanes carry them;
// - processes of one host lend each other blobs in shared memory;
// - the reader of messages gets no byte before both sides have proved themselves in the greeting.
#include <functional>
#include <memory>
#include <string>

#include "core/address.hpp"
#include "core/expected.hpp"
#include "core/ids.hpp"
#include "core/time.hpp"
#include "messages/message.hpp"

namespace leeway {

/// How blobs travel to a peer.
enum class Transport : std::uint8_t {
  automatic,      // through shared memory to processes of the same host, over TCP to others
  tcp,            // always over TCP
  shared_memory,  // a peer on another host is refused
};

/// Callbacks of a mesh, on its threads, one at a time for a peer. They must return soon, because
/// the mesh reads nothing else meanwhile, and must not throw. They may send and leave, but not
/// connect.
struct MeshEvents {
  std::function<void(PeerId, Address from, Address to, Message)> on_message;
  /// A peer is connected: it called, or was called.
  std::function<void(PeerId)> on_up;
  /// The peer has sent nothing for `silence`; messages to it may still arrive. on_heard follows its
  /// next sign of life.
  std::function<void(PeerId)> on_silent;
  std::function<void(PeerId)> on_heard;
  /// The connection was lost and has been made again. No message was lost.
  std::function<void(PeerId)> on_reconnected;
  /// The peer is gone for good: its process has ended, or the connection could not be made again in
  /// time. No other callback follows.
  std::function<void(PeerId, const std::string& reason)> on_gone;
  /// A line to log, for example about a refused caller.
  std::function<void(const std::string&)> on_note;
};

struct MeshOptions {
  std::string address = "127.0.0.1";  // to listen on; without TLS only loopback
  std::uint16_t port = 0;             // 0: any free port
  std::string tls;                    // folder of `leeway cert`; empty: no TLS
  Duration silence = seconds(2);      // without a sign of life, a peer is silent
  Transport transport = Transport::automatic;
  /// Most bytes of small messages in flight to one peer. More fills buffers beyond the caches,
  /// which is slower; less does not fill a network: 2 MiB are 0.8 ms of 20 Gbit/s.
  std::size_t window_bytes = 2u << 20;
};

/// Traffic of one peer since its connection.
struct PeerCounts {
  std::uint64_t messages_out = 0, messages_in = 0;
  std::uint64_t bytes_out = 0, bytes_in = 0;  // of blobs and headers, by all ways
  std::uint64_t waiting = 0;                  // messages that wait in this process
  bool shared_memory = false;
  bool bulk = false;  // large blobs use a bulk connection
};

inline constexpr const char* kCheckAddress = "check the address, and that its process runs";

class Mesh {
 public:
  virtual ~Mesh() = default;
  /// Address and actual port of this process.
  virtual std::string address() const = 0;
  virtual std::uint16_t port() const = 0;
  /// Calls a process and returns its peer, also if it is connected already. on_up is called before
  /// this returns. The error gives the address, the cause and what to do: `advice`, if no process
  /// was reached. Not from a callback.
  virtual Expected<PeerId> connect(const std::string& host, std::uint16_t port, Duration limit,
                                   const std::string& advice = kCheckAddress) = 0;
  /// From any thread; never blocks. A message for a peer that is gone is lost.
  virtual void send(PeerId to_peer, Address from, Address to, Message message) = 0;
  /// Sends waiting messages and ends the connection; no callback follows for the peer.
  virtual void leave(PeerId peer) = 0;
  /// False if the connection is lost, whether or not it will be made again, or the peer is gone.
  virtual bool is_connected(PeerId peer) const = 0;
  virtual PeerCounts counts(PeerId peer) const = 0;
  /// "10.0.0.2:4242": where the peer listens. Nothing is known of a peer that is gone.
  virtual std::string name(PeerId peer) const = 0;
};

/// Listens. Errors: a port in use, an address that needs TLS, an unreadable certificate or token;
/// each with what to change.
Expected<std::unique_ptr<Mesh>> open_mesh(const MeshOptions& options, MeshEvents events);

}  // namespace leeway
