#include "cluster/tls_files.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <mutex>
#include <set>
#include <sstream>

#include "cluster/certificates.hpp"
#include "core/text.hpp"

namespace leeway::cluster {
namespace {

constexpr std::array<const char*, 3> kNames = {"ca.pem", "node.pem", "node.key"};

/// A memory file with these bytes, or -1.
int in_memory(const std::string& name, const std::string& bytes) {
  const int file = memfd_create(name.c_str(), MFD_CLOEXEC);
  if (file < 0) return -1;
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t count = write(file, bytes.data() + done, bytes.size() - done);
    if (count <= 0) {
      close(file);
      return -1;
    }
    done += static_cast<std::size_t>(count);
  }
  return file;
}

/// All live FailedHandshakes.
struct Watching {
  std::mutex mutex;
  std::set<FailedHandshakes*> all;
};
Watching& watching() {
  static Watching* const everything = new Watching;  // connections may outlive main()
  return *everything;
}

/// Whether the handshake continues when more bytes arrive. CAF does not wait for them.
bool goes_on(const SSL* connection) {
  return SSL_want(connection) != SSL_NOTHING && BIO_should_retry(SSL_get_rbio(connection)) != 0;
}

std::string reason_of_failure() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return concat("its TLS handshake failed (", reason ? reason : "it closed the connection",
                "); does it have a certificate of this cluster?");
}

void on_handshake(const SSL* connection, int where, int result) {
  if (where != SSL_CB_ACCEPT_EXIT && where != SSL_CB_CONNECT_EXIT) return;
  // A process that only tests whether this one listens sends nothing.
  const bool is_silent = BIO_number_read(SSL_get_rbio(connection)) == 0;
  if (where == SSL_CB_ACCEPT_EXIT && result <= 0 && !goes_on(connection) && !is_silent)
    FailedHandshakes::report_all(reason_of_failure());
  ERR_clear_error();
}

/// OpenSSL has one error list for all connections of a thread, and CAF does not clear it: after a
/// failed handshake, the connection that is read next would fail too. So the list is cleared when a
/// handshake ends and when a connection is freed.
void forget_errors_of_others() {
  static const int index = SSL_get_ex_new_index(
      0, nullptr,
      [](void* made, void*, CRYPTO_EX_DATA*, int, long, void*) {
        SSL_set_info_callback(static_cast<SSL*>(made), on_handshake);
      },
      nullptr, [](void*, void*, CRYPTO_EX_DATA*, int, long, void*) { ERR_clear_error(); });
  static_cast<void>(index);
}

}  // namespace

Expected<std::unique_ptr<TlsFiles>> TlsFiles::read(const std::string& folder) {
  if (const auto usable = check_tls_folder(folder); !usable) return usable.error();
  forget_errors_of_others();
  std::unique_ptr<TlsFiles> all(new TlsFiles);
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const std::string path = concat(folder, "/", kNames[i]);
    std::ifstream in(path, std::ios::binary);
    std::stringstream bytes;
    if (!in || !(bytes << in.rdbuf())) return Error{concat(path, " cannot be read; try again")};
    all->files_[i] = in_memory(kNames[i], bytes.str());
    if (all->files_[i] < 0)
      return Error{concat(path, " cannot be kept in memory; allow this process more open files")};
  }
  return all;
}

TlsFiles::~TlsFiles() {
  for (const int file : files_)
    if (file >= 0) close(file);
}

std::string TlsFiles::path(std::size_t index) const {
  return concat("/proc/self/fd/", files_[index]);
}

FailedHandshakes::FailedHandshakes(Tell tell) : tell_(std::move(tell)) {
  std::lock_guard lock(watching().mutex);
  watching().all.insert(this);
}

FailedHandshakes::~FailedHandshakes() {
  std::lock_guard lock(watching().mutex);
  watching().all.erase(this);
}

void FailedHandshakes::report_all(const std::string& why) {
  std::lock_guard lock(watching().mutex);
  for (FailedHandshakes* const each : watching().all)
    if (const std::string note = each->refusals_.note(why); !note.empty()) each->tell_(note);
}

}  // namespace leeway::cluster
