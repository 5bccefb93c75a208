#pragma once
// Frame: what processes send each other over a connection, and its bytes.
//
// A message travels as one letter (addresses, header, sizes of blobs, small blobs) and, when it has
// larger blobs, as chunks of these behind it: all on a bulk connection when there is one. On that
// of CAF a sender copies bytes out of the blobs once, a receiver copies them into theirs once: a
// chunk is loaded where it belongs.
//
// Whoever loads a frame believes nothing of it: sizes are compared with what is there and with
// core/limits.hpp before memory is taken.
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

/// Raised when frames or their meaning change: processes of different protocols do not talk.
inline constexpr std::uint32_t kProtocolVersion = 1;
/// Blobs of a message up to this many bytes together travel inside the letter.
inline constexpr std::size_t kInlineBytes = 64u << 10;

/// A mesh, drawn at random: another one even when it listens where an earlier one did.
struct MeshId {
  std::uint64_t high = 0, low = 0;
  auto operator<=>(const MeshId&) const = default;
};

enum class FrameKind : std::uint8_t {
  hello,     // who calls
  welcome,   // who is called; the caller knows by it that it is known
  confirm,   // the caller has heard the welcome: the connection is made
  refuse,    // and why
  letter,    // a message, or the beginning of one
  chunk,     // the next bytes of its blobs
  credit,    // bytes that have been put in place
  alive,     // nothing else was to be said
  bye,       // no more will be sent
  farewell,  // the answer to bye
  offer,     // of shared memory, and whether that of the receiver can be read
  bulk,      // at which port bulk connections are taken; 0: where does the receiver take them?
  unknown,   // the answer to a frame of a connection that the receiver has forgotten; its token
};

/// How processes greet. The first four fields are read by every protocol, the others by the same
/// one alone.
struct Greeting {
  std::uint32_t protocol = kProtocolVersion;
  std::string version;     // of Leeway
  std::uint64_t call = 0;  // of the caller; comes back in the answer
  std::string refusal;
  MeshId mesh;
  MeshId expected;  // the caller lost a connection to this one; zero: it calls for the first time
  Token token = 0;  // frames to the greeter carry it
  std::string host;
  std::uint16_t port = 0;  // where the greeter listens
  std::uint64_t window_bytes = 0;
  std::string arena;  // what blobs may be lent from; empty: they are not
};

/// How a blob travels.
enum class BlobWay : std::uint8_t { none, in_letter, in_chunks, lent, in_bulk };

/// How all blobs of a message travel.
struct Packing {
  std::vector<BlobWay> ways;
  std::vector<Loan> loans;      // of size zero for a blob that is not lent; or none at all
  std::uint64_t in_letter = 0;  // bytes in the letter or with it
  std::uint64_t behind = 0;     // bytes that follow it
  BlobWay behind_way = BlobWay::in_chunks;  // all of these

  bool bulk() const { return behind > 0 && behind_way == BlobWay::in_bulk; }
};
/// Small blobs go into the letter while there is room; of the others those are lent that `lender`
/// can lend. Null: there is none.
Packing pack(const Message& message, Lender* lender, bool bulk);
/// The place behind the next `bytes` of those that follow the letter.
BlobPlace advanced(const Message& message, const Packing& packing, BlobPlace place,
                   std::uint64_t bytes);
/// The bytes of a chunk, piece by piece.
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
  Token token = 0;                     // of the connection: the receiver chose it
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
  std::uint64_t bytes = 0;                 // chunk: so many; credit: so many

  LoanOffer offer;

  // What loading makes.
  std::shared_ptr<Inbound> inbound;  // null when nobody knows the token
  std::shared_ptr<Arrival> arrival;  // letter, chunk
  bool broken = false;               // it is none
};

/// What a frame costs of the window, alike for sender and receiver: about the bytes it has, and
/// those that it lends.
std::uint64_t letter_cost(std::size_t header_words, std::size_t blobs, std::uint64_t bytes);
std::uint64_t chunk_cost(std::uint64_t bytes);

/// Where the bytes of frames go to and come from: CAF's serializers.
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
/// False: what is there is no frame. A frame for a connection that nobody knows is loaded as far as
/// its token.
bool load(Frame& frame, Source& source);

}  // namespace leeway::cluster
