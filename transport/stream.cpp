#include "transport/stream.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "core/check.hpp"
#include "core/text.hpp"
#include "transport/certificates.hpp"
#include "transport/x509.hpp"

namespace leeway::transport {
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

/// OpenSSL counts in int.
int openssl_count(std::size_t bytes) {
  return static_cast<int>(std::min<std::size_t>(bytes, 1u << 30));
}

bool would_block() {
  return errno == EAGAIN || errno == EWOULDBLOCK;
}

/// Null if there is no memory for it.
SSL* session_on(SSL_CTX* context, int socket) {
  SSL* const session = SSL_new(context);
  if (!session || SSL_set_fd(session, socket) == 1) return session;
  SSL_free(session);
  return nullptr;
}

}  // namespace

Expected<std::shared_ptr<const Tls>> Tls::read(const std::string& folder) {
  if (folder.empty()) return std::shared_ptr<const Tls>();
  if (const auto usable = check_tls_folder(folder); !usable) return usable.error();
  const ErrorsForgotten forgotten;
  SSL_CTX* const context = SSL_CTX_new(TLS_method());
  require_openssl(context != nullptr, "a context of TLS");
  std::shared_ptr<const Tls> tls(new Tls(context));
  SSL_CTX_set_mode(context, SSL_MODE_AUTO_RETRY | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  const std::string authority = folder + "/ca.pem", certificate = folder + "/node.pem",
                    key = folder + "/node.key";
  const bool good = SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
                    SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) == 1 &&
                    SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) == 1 &&
                    SSL_CTX_load_verify_locations(context, authority.c_str(), nullptr) == 1;
  if (!good) return Error{concat("the certificates in ", folder, " cannot be used; make new ones")};
  return tls;
}

Tls::~Tls() {
  SSL_CTX_free(context_);
}

Stream::Stream(Socket socket, Side side, std::shared_ptr<const Tls> tls)
    : socket_(std::move(socket)),
      files_(std::move(tls)),
      tls_(files_ ? session_on(files_->context(), socket_.number()) : nullptr) {
  const int yes = 1;
  setsockopt(number(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  // A firewall on the way may forget an idle connection.
  setsockopt(number(), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  setsockopt(number(), IPPROTO_TCP, TCP_KEEPIDLE, &kKeepAliveSeconds, sizeof kKeepAliveSeconds);
  setsockopt(number(), IPPROTO_TCP, TCP_KEEPINTVL, &kKeepAliveSeconds, sizeof kKeepAliveSeconds);
  setsockopt(number(), IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnheardMs, sizeof kUnheardMs);
  if (!tls_) {
    if (files_) failure_ = "no memory for TLS";
    return;
  }
  side == Side::called ? SSL_set_accept_state(tls_) : SSL_set_connect_state(tls_);
}

Stream::~Stream() {
  SSL_free(tls_);
}

Stream::Progress Stream::progress_of(int result) const {
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

bool Stream::has_received() const {
  if (!files_) return received_;
  if (!tls_) return false;
  std::lock_guard lock(mutex_);
  return BIO_number_read(SSL_get_rbio(tls_)) > 0;
}

Stream::Progress Stream::shake_hands() {
  if (!files_) return Progress::done;
  if (!tls_) return Progress::ended;
  block_sigpipe();
  std::lock_guard lock(mutex_);
  const ErrorsForgotten forgotten;
  const Progress progress = progress_of(SSL_do_handshake(tls_));
  if (progress == Progress::ended) {
    const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
    failure_ = reason ? reason : "it closed the connection";
  }
  return progress;
}

Stream::Progress Stream::read_some(std::span<std::byte>& missing) {
  while (!missing.empty()) {
    ssize_t taken = 0;
    if (files_) {
      if (!tls_) return Progress::ended;
      block_sigpipe();
      std::lock_guard lock(mutex_);
      const ErrorsForgotten forgotten;
      taken = SSL_read(tls_, missing.data(), openssl_count(missing.size()));
      if (taken <= 0) return progress_of(static_cast<int>(taken));
    } else {
      taken = recv(number(), missing.data(), missing.size(), 0);
      if (taken < 0 && errno == EINTR) continue;
      if (taken < 0 && would_block()) return Progress::wants_read;
      if (taken <= 0) return Progress::ended;
      received_ = true;
      if (!blocks_ && static_cast<std::size_t>(taken) < missing.size()) {
        missing = missing.subspan(static_cast<std::size_t>(taken));
        return Progress::wants_read;  // no more has arrived
      }
    }
    missing = missing.subspan(static_cast<std::size_t>(taken));
  }
  return Progress::done;
}

Stream::Progress Stream::write_some(std::span<const std::byte>& left) {
  while (!left.empty()) {
    ssize_t done = 0;
    if (files_) {
      if (!tls_) return Progress::ended;
      block_sigpipe();
      std::lock_guard lock(mutex_);
      const ErrorsForgotten forgotten;
      done = SSL_write(tls_, left.data(), openssl_count(left.size()));
      if (done <= 0) return progress_of(static_cast<int>(done));
    } else {
      done = send(number(), left.data(), left.size(), MSG_NOSIGNAL);
      if (done < 0 && errno == EINTR) continue;
      if (done < 0 && would_block()) return Progress::wants_write;
      if (done <= 0) return Progress::ended;
    }
    left = left.subspan(static_cast<std::size_t>(done));
  }
  return Progress::done;
}

bool Stream::wait(Progress wants, std::int64_t until) const {
  return wait_for(number(), wants == Progress::wants_write ? short{POLLOUT} : short{POLLIN},
                  until) > 0;
}

void Stream::block() {
  blocks_ = true;
  fcntl(number(), F_SETFL, fcntl(number(), F_GETFL) & ~O_NONBLOCK);
}

bool Stream::write(const void* bytes, std::size_t count, bool more) {
  std::span left(static_cast<const std::byte*>(bytes), count);
  if (tls_) return write_some(left) == Progress::done;
  while (!left.empty()) {
    const ssize_t done =
        send(number(), left.data(), left.size(), MSG_NOSIGNAL | (more ? MSG_MORE : 0));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    left = left.subspan(static_cast<std::size_t>(done));
  }
  return true;
}

bool Stream::read(void* bytes, std::size_t count) {
  std::span missing(static_cast<std::byte*>(bytes), count);
  return read_some(missing) == Progress::done;
}

void Stream::cut() {
  shutdown(number(), SHUT_RDWR);
}

}  // namespace leeway::transport
