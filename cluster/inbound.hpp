#pragma once
// Inbound: incomplete messages of one connection, the place of their next bytes, and the order of
// delivery.
//
// Messages on a bulk connection and others overtake each other. A message waits here for earlier
// ones from the same actor to the same actor.
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "cluster/loans.hpp"
#include "core/address.hpp"
#include "messages/message.hpp"

namespace leeway::cluster {

/// Identifies a connection in frames. The receiver draws it at random and ignores frames without
/// it.
using Token = std::uint64_t;

/// The place of a byte in the blobs that travel in chunks.
struct BlobPlace {
  std::uint32_t blob = 0;
  std::uint64_t offset = 0;
};

/// A message whose letter has arrived.
struct Arrival {
  Address from, to;
  std::uint64_t order = 0;  // earlier messages of the pair
  std::vector<std::uint64_t> header;
  std::vector<Blob> blobs;           // blobs in chunks are null until their first byte
  std::vector<std::uint64_t> sizes;  // of blobs in chunks; zero for all others
  std::vector<std::pair<std::uint32_t, Loan>> loans;  // lent blobs, null until borrowed
  std::uint64_t behind = 0;                           // bytes that follow the letter
  std::uint64_t left = 0;                             // bytes still missing
  bool bulk = false;                                  // on a bulk connection
  std::uint64_t cost = 0;                             // of the letter
  std::uint64_t held = 0;                             // the same without lent bytes
  BlobPlace next;

  /// The place of the next bytes, at most `most`. Requires that this many are missing.
  std::span<std::byte> next_piece(std::uint64_t most);
  Message message();
};

class Inbound {
 public:
  explicit Inbound(Token token) : token_(token) {}
  Token token() const { return token_; }

  /// Adds a letter. False: it is known already, or too many wait.
  bool begin(std::uint64_t number, std::shared_ptr<Arrival> arrival);
  /// Null if no such message waits for bytes.
  std::shared_ptr<Arrival> find(std::uint64_t number) const;
  /// All bytes of the message have arrived.
  void end(std::uint64_t number);
  /// Removes the next message of the pair; null if it is incomplete.
  std::shared_ptr<Arrival> take(Address from, Address to);
  /// Number of messages that take() has returned.
  std::uint64_t taken() const;

 private:
  struct Waiting {
    std::shared_ptr<Arrival> arrival;
    bool whole = false;
  };
  struct Queue {
    std::uint64_t next = 0;
    std::map<std::uint64_t, Waiting> by_order;
  };

  const Token token_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<Arrival>> begun_;  // by number; wait for bytes
  std::map<std::pair<Address, Address>, Queue> queues_;
  std::uint64_t queued_bytes_ = 0;  // of letters
  std::uint64_t taken_ = 0;
};

/// All connections of all meshes of this process, by token: CAF loads frames without knowing their
/// mesh. Thread-safe.
namespace inbounds {
std::shared_ptr<Inbound> open(Token token);
std::shared_ptr<Inbound> find(Token token);
void close(Token token);
}  // namespace inbounds

}  // namespace leeway::cluster
