#pragma once
// BulkSocket: a TCP connection for the bytes of large blobs, plain or over mutual TLS.
//
// CAF copies sent and received bytes through a buffer, on one thread for all connections. A
// BulkSocket copies between blob and system only. Each connection has one direction, because a TLS
// connection serves one thread at a time.
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "cluster/socket.hpp"
#include "core/expected.hpp"

struct ssl_ctx_st;
struct ssl_st;

namespace leeway::cluster {

/// The certificates of a process for its bulk sockets.
class BulkTls {
 public:
  /// Reads a folder of `leeway cert`. Null for "": no TLS.
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
  /// The result of a call that does not block.
  enum class Progress : std::uint8_t { done, wants_read, wants_write, ended };

  /// Requires a connected, non-blocking `socket`. `tls` is null without TLS.
  BulkSocket(Socket socket, Side side, const BulkTls* tls);
  ~BulkSocket();
  BulkSocket(const BulkSocket&) = delete;
  BulkSocket& operator=(const BulkSocket&) = delete;

  int number() const { return socket_.number(); }
  /// Continues the handshake as far as possible without blocking.
  Progress shake_hands();
  /// Reads available bytes into `missing`, and shrinks it. Does not block.
  Progress read_some(std::span<std::byte>& missing);

  /// Waits until the socket is ready for the last operation. False: not by `until` (steady clock).
  bool wait(Progress wants, std::int64_t until_ns) const;

  /// From now on calls block, at most `limit_ms`; 0: without a limit.
  void block(int limit_ms);
  /// Sends all bytes. False: the connection has ended, or the limit has passed. `more` will follow.
  bool write(const void* bytes, std::size_t count, bool more = false);
  bool read(void* bytes, std::size_t count);
  /// Ends the connection; reads and writes of other threads return.
  void cut();

 private:
  Progress progress_of(int result) const;
  const Socket socket_;
  ssl_st* const tls_;  // null without TLS
};

}  // namespace leeway::cluster
