#pragma once
// Inbound: the messages of one connection that have begun to arrive, the place of each of their
// bytes, and the order in which they are delivered.
//
// Messages on a bulk connection overtake others and are overtaken by them: one waits here for those
// that the same actor sent to the same actor before it.
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

/// Names a connection to those whom it joins: drawn at random by the receiver of what carries it,
/// who believes nothing that comes without.
using Token = std::uint64_t;

/// A byte in the blobs that travel in chunks.
struct BlobPlace {
  std::uint32_t blob = 0;
  std::uint64_t offset = 0;
};

/// A message that has come as far as its letter.
struct Arrival {
  Address from, to;
  std::uint64_t order = 0;  // messages before it from the same to the same
  std::vector<std::uint64_t> header;
  std::vector<Blob> blobs;           // those in chunks are null until their first byte comes
  std::vector<std::uint64_t> sizes;  // of blobs in chunks; zero for all others
  std::vector<std::pair<std::uint32_t, Loan>> loans;  // of those that are lent; null until borrowed
  std::uint64_t behind = 0;                           // bytes that follow the letter
  std::uint64_t left = 0;                             // those that are still to come
  bool bulk = false;                                  // on a bulk connection
  std::uint64_t cost = 0;                             // of the letter
  std::uint64_t held = 0;                             // the same without what is lent
  BlobPlace next;

  /// Where the next bytes belong, `most` at most; requires that as many are left.
  std::span<std::byte> next_piece(std::uint64_t most);
  Message message();
};

class Inbound {
 public:
  explicit Inbound(Token token) : token_(token) {}
  Token token() const { return token_; }

  /// A letter came. False: it has come already, or too much waits.
  bool begin(std::uint64_t number, std::shared_ptr<Arrival> arrival);
  /// Null when no such message waits for bytes.
  std::shared_ptr<Arrival> find(std::uint64_t number) const;
  /// All its bytes have come.
  void end(std::uint64_t number);
  /// The next message from the one to the other, once; null: it has not come whole.
  std::shared_ptr<Arrival> take(Address from, Address to);
  /// How often take() gave one.
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
  std::map<std::uint64_t, std::shared_ptr<Arrival>> begun_;  // that wait for bytes
  std::map<std::pair<Address, Address>, Queue> queues_;
  std::uint64_t queued_bytes_ = 0;  // of letters
  std::uint64_t taken_ = 0;
};

/// All connections of the process, of every mesh: frames are loaded where nothing but their token
/// tells whose they are. Calls may come from any thread.
namespace inbounds {
std::shared_ptr<Inbound> open(Token token);
std::shared_ptr<Inbound> find(Token token);
void close(Token token);
}  // namespace inbounds

}  // namespace leeway::cluster
