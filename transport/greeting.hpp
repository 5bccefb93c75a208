#pragma once
// Greeting: the first bytes of each connection, before which its peer is not trusted.
//
//   caller                                  called
//     Hello: mesh, nonce            ->
//                                   <-        Welcome: mesh, nonce, proof; or a refusal
//     Confirm: proof, LinkDetails   ->
//                                   <-        Ready: LinkDetails; or a refusal
//
// For a bulk lane, the caller sends Hello with the token of its link, gets Ready, and sends
// kLaneConfirm. The called side may have been stopped: a caller that has given up meanwhile does
// not confirm. The proofs show that both processes know the user's secret; over TLS the
// certificates show who they are, and the secret is zero. Packets have at most kMaxPacketBytes.
// Every protocol reads their heads and the first two texts.
#include <cstdint>
#include <optional>
#include <string>

#include "core/ids.hpp"
#include "tensor/shared_memory.hpp"
#include "transport/bytes.hpp"
#include "transport/send_queue.hpp"
#include "transport/stream.hpp"
#include "transport/user_secret.hpp"

namespace leeway::transport {

/// Increases with every change of the bytes on connections. Processes of different protocols refuse
/// each other.
inline constexpr std::uint32_t kTransportProtocol = 4;
inline constexpr std::size_t kMaxPacketBytes = 4096;
inline constexpr std::uint64_t kLaneConfirm = 0x656e616c6b6c7562;  // "bulklane"

/// Identifies a mesh: random, so a later mesh at the same address is another.
struct MeshId {
  std::uint64_t high = 0, low = 0;
  auto operator<=>(const MeshId&) const = default;
};
using Nonce = std::array<std::uint64_t, 2>;
/// Identifies a connection of a link, for its bulk lanes. Secret.
using Token = std::uint64_t;

/// The use of a connection.
enum class Lane : std::uint32_t {
  small,
  bulk_to_called,  // the caller sends
  bulk_to_caller,
};

struct Hello {
  std::string version;  // of Leeway
  std::string host;     // at which the caller listens, for the log
  Lane lane = Lane::small;
  Token token = 0;  // of a bulk lane
  MeshId mesh;      // of the caller
  MeshId expected;  // the mesh to which the caller lost its connection; zero: first call
  Nonce nonce{};
};

struct Welcome {
  std::string version;
  std::string refusal;
  MeshId mesh;
  Nonce nonce{};
  Proof proof{};
};

/// The same in Confirm and Ready.
struct LinkDetails {
  std::string version;
  std::string refusal;
  std::uint32_t yields = 0;  // with a refusal: to another call between the two, which goes first
  std::string host;          // at which the sender listens
  std::uint32_t port = 0;
  std::uint64_t link = 0;       // the sender's Link::number()
  std::uint64_t peer_link = 0;  // Confirm: the receiver's, which it continues; zero: none
  Token token = 0;              // Confirm: of the last connection, or zero. Ready: of this one
  std::uint64_t window_bytes = 0;
  std::uint64_t silence_ns = 0;           // after which the sender takes the receiver for silent
  SharedMemoryName arena;                 // of lent blobs; empty: none
  std::uint32_t needs_shared_memory = 0;  // 1: the sender refuses a peer that cannot read `arena`
  LaneCounts received;
  Proof proof{};  // of Confirm
};

/// The bytes of a packet. Texts are cut at limits::kMaxGreetingText. `protocol`: the one that this
/// process claims to speak.
Bytes packet_of(const Hello& hello, std::uint32_t protocol);
Bytes packet_of(const Welcome& welcome, std::uint32_t protocol);
Bytes packet_of(const LinkDetails& details, std::uint32_t protocol);

/// Reads one packet from a stream, without blocking.
class PacketReader {
 public:
  /// `ended`, also for bytes that are no packet.
  Stream::Progress read_from(Stream& stream);
  /// After `done`: of the sender.
  std::uint32_t protocol() const { return protocol_; }
  /// After `done`; false: invalid. Of another protocol, only the texts `version` and `refusal`.
  bool take(Hello& hello) const;
  bool take(Welcome& welcome) const;
  bool take(LinkDetails& details) const;
  void clear() { *this = PacketReader(); }

 private:
  Bytes bytes_;  // head, then body
  std::size_t wanted_ = 0;
  std::uint32_t protocol_ = 0;
  ByteReader body() const;
};

/// Each side proves that it knows the secret, over both nonces and meshes.
Proof proof_of(const Secret& secret, Stream::Side side, const Hello& hello, const Welcome& welcome);

}  // namespace leeway::transport
