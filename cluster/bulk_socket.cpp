#include "cluster/bulk_socket.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>

#include "cluster/this_host.hpp"
#include "cluster/tls_files.hpp"
#include "cluster/x509.hpp"
#include "core/check.hpp"
#include "core/text.hpp"

namespace leeway::cluster {
namespace {

constexpr int kKeepAliveSeconds = 10;
/// A connection is given up when the peer reads nothing for this time.
constexpr int kUnheardMs = 60'000;

/// OpenSSL writes to sockets with write(), so a closed peer would raise SIGPIPE.
void block_sigpipe() {
  thread_local const bool done = [] {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    return pthread_sigmask(SIG_BLOCK, &pipe, nullptr) == 0;
  }();
  LW_CHECK(done);
}

}  // namespace

Expected<std::shared_ptr<const BulkTls>> BulkTls::read(const std::string& folder) {
  if (folder.empty()) return std::shared_ptr<const BulkTls>();
  const auto files = TlsFiles::read(folder);
  if (!files) return files.error();
  const ErrorsForgotten forgotten;
  SSL_CTX* const context = SSL_CTX_new(TLS_method());
  require_openssl(context != nullptr, "a context of TLS");
  std::shared_ptr<const BulkTls> tls(new BulkTls(context));
  SSL_CTX_set_mode(context, SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  const bool good =
      SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
      SSL_CTX_use_certificate_chain_file(context, (*files)->certificate_path().c_str()) == 1 &&
      SSL_CTX_use_PrivateKey_file(context, (*files)->key_path().c_str(), SSL_FILETYPE_PEM) == 1 &&
      SSL_CTX_load_verify_locations(context, (*files)->authority_path().c_str(), nullptr) == 1;
  if (!good) return Error{concat("the certificates in ", folder, " cannot be used; make new ones")};
  return tls;
}

BulkTls::~BulkTls() {
  SSL_CTX_free(context_);
}

BulkSocket::BulkSocket(Socket socket, Side side, const BulkTls* tls)
    : socket_(std::move(socket)), tls_(tls ? SSL_new(tls->context()) : nullptr) {
  const int yes = 1;
  setsockopt(number(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  // A firewall on the way may forget an idle connection.
  setsockopt(number(), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  setsockopt(number(), IPPROTO_TCP, TCP_KEEPIDLE, &kKeepAliveSeconds, sizeof kKeepAliveSeconds);
  setsockopt(number(), IPPROTO_TCP, TCP_KEEPINTVL, &kKeepAliveSeconds, sizeof kKeepAliveSeconds);
  setsockopt(number(), IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnheardMs, sizeof kUnheardMs);
  if (!tls_) return;
  SSL_set_info_callback(tls_, nullptr);  // the callback of CAF's connections
  SSL_set_fd(tls_, number());
  side == Side::called ? SSL_set_accept_state(tls_) : SSL_set_connect_state(tls_);
}

BulkSocket::~BulkSocket() {
  SSL_free(tls_);
}

BulkSocket::Progress BulkSocket::progress_of(int result) const {
  if (result > 0) return Progress::done;
  switch (SSL_get_error(tls_, result)) {
    case SSL_ERROR_WANT_READ:
      return Progress::wants_read;
    case SSL_ERROR_WANT_WRITE:
      return Progress::wants_write;
    default:
      return Progress::ended;
  }
}

BulkSocket::Progress BulkSocket::shake_hands() {
  if (!tls_) return Progress::done;
  block_sigpipe();
  const ErrorsForgotten forgotten;
  return progress_of(SSL_do_handshake(tls_));
}

BulkSocket::Progress BulkSocket::read_some(std::span<std::byte>& missing) {
  block_sigpipe();
  const ErrorsForgotten forgotten;
  while (!missing.empty()) {
    const auto count = static_cast<int>(std::min<std::size_t>(missing.size(), 1u << 30));
    int taken = 0;
    if (tls_) {
      taken = SSL_read(tls_, missing.data(), count);
      if (taken <= 0) return progress_of(taken);
    } else {
      taken = static_cast<int>(recv(number(), missing.data(), static_cast<std::size_t>(count), 0));
      if (taken < 0 && errno == EINTR) continue;
      if (taken < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Progress::wants_read;
      if (taken <= 0) return Progress::ended;
    }
    missing = missing.subspan(static_cast<std::size_t>(taken));
  }
  return Progress::done;
}

bool BulkSocket::wait(Progress wants, std::int64_t until) const {
  pollfd polled{.fd = number(),
                .events = wants == Progress::wants_write ? short{POLLOUT} : short{POLLIN},
                .revents = 0};
  int found = -1;
  do {
    const std::int64_t left = until - steady_ns();
    if (left <= 0) return false;
    found = poll(&polled, 1, static_cast<int>(left / 1'000'000) + 1);
  } while (found < 0 && errno == EINTR);
  return found > 0;
}

void BulkSocket::block(int limit_ms) {
  fcntl(number(), F_SETFL, fcntl(number(), F_GETFL) & ~O_NONBLOCK);
  const timeval limit{.tv_sec = limit_ms / 1000, .tv_usec = limit_ms % 1000 * 1000};
  setsockopt(number(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(number(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

bool BulkSocket::write(const void* bytes, std::size_t count, bool more) {
  if (tls_) {
    block_sigpipe();
    const ErrorsForgotten forgotten;
    std::size_t done = 0;
    return count == 0 || SSL_write_ex(tls_, bytes, count, &done) == 1;
  }
  for (const auto* next = static_cast<const std::byte*>(bytes); count > 0;) {
    const ssize_t done = send(number(), next, count, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    next += done;
    count -= static_cast<std::size_t>(done);
  }
  return true;
}

bool BulkSocket::read(void* bytes, std::size_t count) {
  std::span missing(static_cast<std::byte*>(bytes), count);
  return read_some(missing) == Progress::done;
}

void BulkSocket::cut() {
  shutdown(number(), SHUT_RDWR);
}

}  // namespace leeway::cluster
