#pragma once
// Stream: a TCP connection, plain or over mutual TLS.
//
// At most one thread reads and one writes at a time. Over TLS both share one state, so each call
// holds a lock; calls that block must therefore not share a stream.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "core/expected.hpp"
#include "transport/socket.hpp"

struct ssl_ctx_st;
struct ssl_st;

namespace leeway::transport {

/// The certificates of a process.
class Tls {
 public:
  /// Reads a folder of `leeway cert`; its files may change later. Null for "": no TLS.
  static Expected<std::shared_ptr<const Tls>> read(const std::string& folder);
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;
  ~Tls();
  ssl_ctx_st* context() const { return context_; }

 private:
  explicit Tls(ssl_ctx_st* context) : context_(context) {}
  ssl_ctx_st* const context_;
};

class Stream {
 public:
  enum class Side : std::uint8_t { called, caller };
  /// The result of a call that does not block.
  enum class Progress : std::uint8_t { done, wants_read, wants_write, ended };

  /// Requires a connected, non-blocking `socket`. `tls` is null without TLS.
  Stream(Socket socket, Side side, std::shared_ptr<const Tls> tls);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int number() const { return socket_.number(); }
  bool is_encrypted() const { return tls_ != nullptr; }
  /// Whether any byte has arrived, TLS handshakes included.
  bool has_received() const;

  // Without blocking:
  /// Continues the TLS handshake as far as possible.
  Progress shake_hands();
  /// Why the handshake has failed: OpenSSL's reason.
  const std::string& failure() const { return failure_; }
  /// Reads available bytes into `missing`, and shrinks it.
  Progress read_some(std::span<std::byte>& missing);
  /// Writes as many bytes as possible, and shrinks `left`.
  Progress write_some(std::span<const std::byte>& left);
  /// Waits until the socket is ready for the last operation. False: not by `until` (steady clock).
  bool wait(Progress wants, std::int64_t until_ns) const;
  /// Repeats one of the calls above until it is done or the connection has ended, and waits in
  /// between. Returns its last result, which is neither of both if the time is over.
  template <class Step>
  Progress complete(Step step, std::int64_t until_ns) const {
    Progress progress = step();
    while (progress != Progress::done && progress != Progress::ended && wait(progress, until_ns))
      progress = step();
    return progress;
  }

  /// From now on, the calls below may be used. They block.
  void block();
  /// Sends all bytes. False: the connection has ended. `more` will follow.
  bool write(const void* bytes, std::size_t count, bool more = false);
  bool read(void* bytes, std::size_t count);

  /// Ends the connection; reads and writes of other threads return.
  void cut();

 private:
  Progress progress_of(int result) const;
  const Socket socket_;
  const std::shared_ptr<const Tls> files_;
  ssl_st* const tls_;  // null without TLS, or without memory for it: then nothing is read or sent
  mutable std::mutex mutex_;  // of tls_
  bool received_ = false;     // without TLS
  bool blocks_ = false;
  std::string failure_;
};

}  // namespace leeway::transport
