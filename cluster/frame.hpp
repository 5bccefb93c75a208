#pragma once
// Frame: the unit that processes exchange over a connection, and its bytes.
//
// A message is one letter (addresses, header, sizes of blobs, small blobs), followed by chunks of
// its large blobs; all on a bulk connection if there is one. On CAF's connection, sender and
// receiver copy the bytes once each: a chunk is loaded into its place in the blob.
//
// Loading trusts nothing: it checks sizes against the available bytes and core/limits.hpp before it
// takes memory.
#include <algorithm>
#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cluster/inbound.hpp"
#include "core/address.hpp"
#include "messages/message.hpp"

namespace leeway::cluster {

/// Increases with every change of frames. Processes of different protocols refuse each other.
inline constexpr std::uint32_t kProtocolVersion = 1;
/// Blobs of a message up to this many bytes together travel inside the letter.
inline constexpr std::size_t kInlineBytes = 64u << 10;

/// Identifies a mesh: random, so a later mesh at the same address is another.
struct MeshId {
  std::uint64_t high = 0, low = 0;
  auto operator<=>(const MeshId&) const = default;
};

enum class FrameKind : std::uint8_t {
  hello,     // of the caller
  welcome,   // the answer to hello
  confirm,   // the caller's answer to welcome: the connection is made
  refuse,    // with the reason
  letter,    // a message, or the beginning of one
  chunk,     // the next bytes of its blobs
  credit,    // received bytes
  alive,     // a sign of life
  bye,       // no more will be sent
  farewell,  // the answer to bye
  offer,     // of shared memory, and whether the receiver's is readable
  bulk,      // the port for bulk connections; 0: asks for the receiver's
  unknown,   // the answer to a frame of an unknown connection; its token
};

/// The content of a greeting. Every protocol reads the first four fields; the others may change.
struct Greeting {
  std::uint32_t protocol = kProtocolVersion;
  std::string version;     // of Leeway
  std::uint64_t call = 0;  // the caller's number, repeated in the answer
  std::string refusal;
  MeshId mesh;
  MeshId expected;  // the mesh to which the caller lost a connection; zero: first call
  Token token = 0;  // for frames to the greeter
  std::string host;
  std::uint16_t port = 0;  // where the greeter listens
  std::uint64_t window_bytes = 0;
  std::string arena;  // the memory of lent blobs; empty: none
};

/// How one blob travels.
enum class BlobWay : std::uint8_t { none, in_letter, in_chunks, lent, in_bulk };

/// How the blobs of a message travel.
struct Packing {
  std::vector<BlobWay> ways;
  std::vector<Loan> loans;                  // size zero: not lent; empty if no blob is lent
  std::uint64_t in_letter = 0;              // bytes in the letter
  std::uint64_t behind = 0;                 // bytes after the letter
  BlobWay behind_way = BlobWay::in_chunks;  // of all these bytes

  bool bulk() const { return behind > 0 && behind_way == BlobWay::in_bulk; }
};
/// Small blobs go into the letter while there is room. Others are lent if `lender` can lend them;
/// it may be null.
Packing pack(const Message& message, Lender* lender, bool bulk);
/// The place `bytes` after `place`, in the blobs that follow the letter.
BlobPlace advanced(const Message& message, const Packing& packing, BlobPlace place,
                   std::uint64_t bytes);
/// The pieces of a chunk.
template <class Piece>
bool for_each_piece(const Message& message, const Packing& packing, BlobPlace place,
                    std::uint64_t bytes, Piece&& piece) {
  while (bytes > 0) {
    const Blob& blob = message.blobs()[place.blob];
    const bool follows = packing.ways[place.blob] == packing.behind_way;
    const std::uint64_t count = follows ? std::min(bytes, blob.size() - place.offset) : 0;
    if (count > 0 && !piece(blob.data() + place.offset, count)) return false;
    bytes -= count;
    place = {place.blob + 1, 0};
  }
  return true;
}

struct Frame {
  FrameKind kind = FrameKind::unknown;
  Token token = 0;                     // of the connection, chosen by the receiver
  std::shared_ptr<Greeting> greeting;  // hello to refuse
  std::uint64_t number = 0;            // letter, chunk: of the message; unknown: the token; bulk:
                                       // the port; offer: 1 if the receiver's memory can be read;
                                       // bye: messages that were sent
  std::uint64_t order = 0;             // letter: messages before it from the same to the same
  Address from, to;                    // letter
  Message message;                     // letter, chunk: to send
  std::shared_ptr<const Packing> packing;  // letter, chunk: to send
  bool bulk = false;                       // letter, chunk: to send on a bulk connection
  BlobPlace place;                         // chunk to send: where its bytes begin
  std::uint64_t bytes = 0;                 // chunk, credit: number of bytes

  LoanOffer offer;

  // Results of loading.
  std::shared_ptr<Inbound> inbound;  // null: unknown token
  std::shared_ptr<Arrival> arrival;  // letter, chunk
  bool broken = false;               // malformed
};

/// The cost of a frame in the window, equal for sender and receiver: about its own and lent bytes.
std::uint64_t letter_cost(std::size_t header_words, std::size_t blobs, std::uint64_t bytes);
std::uint64_t chunk_cost(std::uint64_t bytes);

/// Destination and source of a frame's bytes: CAF's serializers.
class Sink {
 public:
  virtual bool put(const void* bytes, std::size_t count) = 0;

 protected:
  ~Sink() = default;
};
class Source {
 public:
  virtual bool take(void* bytes, std::size_t count) = 0;
  virtual std::size_t remaining() const = 0;

 protected:
  ~Source() = default;
};

bool save(const Frame& frame, Sink& sink);
/// False: malformed. A frame of an unknown connection is loaded only up to its token.
bool load(Frame& frame, Source& source);

}  // namespace leeway::cluster
