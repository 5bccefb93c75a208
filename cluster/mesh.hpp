#pragma once
// Mesh: the connections of this process to others, over which actors of one send to those of the
// other.
//
// A peer is one process, for as long as that lives; one that is started again is another peer. A
// connection carries messages in the order in which they were sent from one actor to another;
// small ones of other actors do not wait behind the tensors of a large one. What is under way to a
// peer is bounded: when it does not read, messages wait here as references, not as copies.
#include <functional>
#include <memory>
#include <string>

#include "core/address.hpp"
#include "core/expected.hpp"
#include "core/ids.hpp"
#include "core/time.hpp"
#include "messages/message.hpp"

namespace leeway {

/// Of this process alone; never used again for another.
using PeerId = Id<struct PeerTag>;

/// How blobs reach a peer.
enum class Transport : std::uint8_t {
  automatic,      // through shared memory to processes of the same host, over TCP to others
  tcp,            // always over TCP
  shared_memory,  // a peer on another host is refused
};

/// What a mesh tells, from threads of its own: one call at a time for a peer. Calls return soon,
/// since nothing else is read meanwhile, and do not throw; they may send and leave, not connect.
struct MeshEvents {
  std::function<void(PeerId, Address from, Address to, Message)> on_message;
  /// A peer is there: it called, or was called.
  std::function<void(PeerId)> on_up;
  /// Nothing has been heard of the peer for the time that a mesh waits; what is sent to it may
  /// still arrive. on_heard follows when it gives a sign of life.
  std::function<void(PeerId)> on_silent;
  std::function<void(PeerId)> on_heard;
  /// The connection was lost, with what was under way, and has been made again.
  std::function<void(PeerId)> on_reconnected;
  /// The peer is gone for good, and why: its process has ended, or the connection to it could not
  /// be made again within the time that a mesh waits. Nothing is heard of it any more.
  std::function<void(PeerId, const std::string& reason)> on_gone;
  /// Something to log: a stranger who was refused, for example.
  std::function<void(const std::string&)> on_note;
};

struct MeshOptions {
  std::string address = "127.0.0.1";  // to listen on; without TLS a loopback address alone
  std::uint16_t port = 0;             // 0: any that is free
  std::string tls;                    // folder of `leeway cert`; empty: no TLS
  Duration silence = seconds(2);      // without a sign of life: the peer is silent
  Transport transport = Transport::automatic;
  /// Under way to one peer, at most. More fills CAF's buffers beyond the caches, which is slower;
  /// less does not fill a network: 2 MiB are 0.8 ms of 20 Gbit/s.
  std::size_t window_bytes = 2u << 20;
  unsigned threads = 0;  // 0: as few as serve
  bool bulk = true;      // large blobs on connections of their own, where these can be made
};

/// Of one peer, since it is there.
struct PeerCounts {
  std::uint64_t messages_out = 0, messages_in = 0;
  std::uint64_t bytes_out = 0, bytes_in = 0;  // of blobs and headers, however they travelled
  std::uint64_t waiting = 0;                  // messages that wait here for the peer to read
  bool shared_memory = false;
  bool bulk = false;  // large blobs leave on a connection of their own
};

inline constexpr const char* kCheckAddress = "check the address, and that its process runs";

class Mesh {
 public:
  virtual ~Mesh() = default;
  /// Where others can call this process: the port is the one it has.
  virtual std::string address() const = 0;
  virtual std::uint16_t port() const = 0;
  /// Calls a process. Returns the peer it is, also when there is a connection already; the error
  /// names the address, what happened and what to do, which is `advice` when nobody is reached
  /// there. on_up is called before it returns. Not from an event.
  virtual Expected<PeerId> connect(const std::string& host, std::uint16_t port, Duration limit,
                                   const std::string& advice = kCheckAddress) = 0;
  /// From any thread; never blocks. What is for a peer that is gone is lost.
  virtual void send(PeerId to_peer, Address from, Address to, Message message) = 0;
  /// Sends what waits, ends the connection, and tells nothing more of the peer.
  virtual void leave(PeerId peer) = 0;
  /// The connection stands. False: it was lost, and is being made again or will be given up; or the
  /// peer is gone.
  virtual bool is_connected(PeerId peer) const = 0;
  virtual PeerCounts counts(PeerId peer) const = 0;
  /// "10.0.0.2:4242": where the peer listens.
  virtual std::string name(PeerId peer) const = 0;
};

/// Listens, over the middleman of CAF. The error says what to change: a port that is taken, an
/// address that needs TLS, a certificate that cannot be read.
Expected<std::unique_ptr<Mesh>> open_mesh(const MeshOptions& options, MeshEvents events);

}  // namespace leeway
