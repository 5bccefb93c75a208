#pragma once
// Inbound: the messages of one connection that have begun to arrive, and the place of each of their
// bytes.
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "cluster/loans.hpp"
#include "messages/address.hpp"
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
  std::vector<std::uint64_t> header;
  std::vector<Blob> blobs;           // those in chunks are null until their first byte comes
  std::vector<std::uint64_t> sizes;  // of blobs in chunks; zero for all others
  std::vector<std::pair<std::uint32_t, Loan>> loans;  // of those that are lent; null until borrowed
  std::uint64_t left = 0;                             // bytes that are still to come
  std::uint64_t cost = 0;                             // of the letter
  BlobPlace next;

  /// Where the next bytes belong, `most` at most; requires that as many are left.
  std::span<std::byte> next_piece(std::uint64_t most);
  Message message();
};

class Inbound {
 public:
  explicit Inbound(Token token) : token_(token) {}
  Token token() const { return token_; }

  /// A letter came whose blobs follow. False: there are too many, or the number is taken.
  bool begin(std::uint64_t number, std::shared_ptr<Arrival> arrival);
  /// Null when no such message has begun.
  std::shared_ptr<Arrival> find(std::uint64_t number) const;
  void end(std::uint64_t number);

 private:
  const Token token_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<Arrival>> arrivals_;
};

/// All connections of the process, of every mesh: frames are loaded where nothing but their token
/// tells whose they are. Calls may come from any thread.
namespace inbounds {
std::shared_ptr<Inbound> open(Token token);
std::shared_ptr<Inbound> find(Token token);
void close(Token token);
}  // namespace inbounds

}  // namespace leeway::cluster
