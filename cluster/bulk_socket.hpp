#pragma once
// BulkSocket: a TCP connection for the bytes of large blobs, plain or over mutual TLS.
//
// CAF copies what it sends into a buffer, and what it has received out of one, on one thread for
// all connections. These bytes go from the blob to the system and from the system to the blob.
// Each connection carries one direction, so that TLS, which serves one thread at a time, lets bytes
// go both ways at once.
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "cluster/socket.hpp"
#include "core/expected.hpp"

struct ssl_ctx_st;
struct ssl_st;

namespace leeway::cluster {

/// The certificates of a process, as its bulk sockets show them.
class BulkTls {
 public:
  /// Of a folder of `leeway cert`; null for "", without TLS.
  static Expected<std::shared_ptr<const BulkTls>> read(const std::string& folder);
  BulkTls(const BulkTls&) = delete;
  BulkTls& operator=(const BulkTls&) = delete;
  ~BulkTls();
  ssl_ctx_st* context() const { return context_; }

 private:
  explicit BulkTls(ssl_ctx_st* context) : context_(context) {}
  ssl_ctx_st* const context_;
};

class BulkSocket {
 public:
  enum class Side : std::uint8_t { called, caller };
  /// What became of a call on a socket that does not block.
  enum class Progress : std::uint8_t { done, wants_read, wants_write, ended };

  /// `socket` is connected and does not block. `tls`: null without.
  BulkSocket(Socket socket, Side side, const BulkTls* tls);
  ~BulkSocket();
  BulkSocket(const BulkSocket&) = delete;
  BulkSocket& operator=(const BulkSocket&) = delete;

  int number() const { return socket_.number(); }
  /// As far as it goes without blocking.
  Progress shake_hands();
  /// Takes out of `missing` what has come, as far as it goes without blocking.
  Progress read_some(std::span<std::byte>& missing);

  /// Until the socket lets what was wanted go on; false: not by then, on the steady clock.
  bool wait(Progress wants, std::int64_t until_ns) const;

  /// From now on calls block, for `limit_ms` at most; 0: without a limit.
  void block(int limit_ms);
  /// All of it, or false: the connection has ended, or the limit has passed. `more` will follow.
  bool write(const void* bytes, std::size_t count, bool more = false);
  bool read(void* bytes, std::size_t count);
  /// Ends the connection: who reads or writes on another thread returns.
  void cut();

 private:
  Progress progress_of(int result) const;
  const Socket socket_;
  ssl_st* const tls_;  // null without
};

}  // namespace leeway::cluster
