#include "transport/user_secret.hpp"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/text.hpp"
#include "transport/socket.hpp"
#include "transport/x509.hpp"

namespace leeway::transport {
namespace {

namespace fs = std::filesystem;

Error error_of(const fs::path& file, const std::string& why) {
  return Error{concat(file.string(), ": ", why,
                      "; remove it, or name another file in the variable LEEWAY_TOKEN")};
}

std::string home() {
  const passwd* const user = getpwuid(geteuid());
  return user && user->pw_dir ? user->pw_dir : "";
}

Expected<Secret> read_secret(const fs::path& file) {
  const Socket opened(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!opened) return error_of(file, std::strerror(errno));
  struct stat status {};
  if (fstat(opened.number(), &status) != 0) return error_of(file, std::strerror(errno));
  if (status.st_uid != geteuid() || (status.st_mode & 077) != 0)
    return error_of(file, "others than this user can read or change it");
  Secret secret;
  if (!S_ISREG(status.st_mode) || status.st_size != off_t{sizeof secret} ||
      read(opened.number(), secret.data(), secret.size()) != ssize_t{sizeof secret})
    return error_of(file, "does not have 32 bytes");
  return secret;
}

/// Another process may make it at the same time: the first one counts.
Status make_secret(const fs::path& file) {
  Secret secret;
  require_openssl(
      RAND_bytes(reinterpret_cast<unsigned char*>(secret.data()), int{sizeof secret}) == 1,
      "random numbers");
  const std::string made = concat(file.string(), '.', getpid());
  unlink(made.c_str());
  {
    const Socket opened(
        open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!opened) return error_of(made, std::strerror(errno));
    errno = ENOSPC;  // of a short write
    if (write(opened.number(), secret.data(), secret.size()) != ssize_t{sizeof secret} ||
        fsync(opened.number()) != 0) {
      const int error = errno;
      unlink(made.c_str());
      return error_of(made, std::strerror(error));
    }
  }
  const bool linked = link(made.c_str(), file.c_str()) == 0 || errno == EEXIST;
  const int error = errno;
  unlink(made.c_str());
  if (!linked) return error_of(file, std::strerror(error));
  return {};
}

Expected<Secret> secret_at(const fs::path& file) {
  if (access(file.c_str(), F_OK) != 0) {
    std::error_code failed;
    fs::create_directories(file.parent_path().parent_path(), failed);
    mkdir(file.parent_path().c_str(), 0700);  // make_secret() reports a failure
    if (const Status made = make_secret(file); !made) return made.error();
  }
  return read_secret(file);
}

}  // namespace

Expected<Secret> user_secret() {
  if (const char* const named = std::getenv("LEEWAY_TOKEN"); named && *named)
    return secret_at(named);
  if (const std::string own = home(); !own.empty()) {
    auto secret = secret_at(fs::path(own) / ".config/leeway/token");
    if (secret) return secret;
  }
  const std::string folder = concat("/tmp/leeway-", geteuid());
  mkdir(folder.c_str(), 0700);
  struct stat status {};
  const bool is_own = lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
                      status.st_uid == geteuid() && (status.st_mode & 022) == 0;
  if (!is_own) return error_of(folder, "is not a folder that only this user can change");
  return secret_at(folder + "/token");
}

Proof prove(const Secret& secret, std::span<const std::byte> text) {
  Proof proof;
  unsigned count = sizeof proof;
  const auto* const made = HMAC(EVP_sha256(), secret.data(), int{sizeof secret},
                                reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                                reinterpret_cast<unsigned char*>(proof.data()), &count);
  require_openssl(made != nullptr && count == sizeof proof, "a proof of the user's secret");
  return proof;
}

bool is_equal(const Proof& a, const Proof& b) {
  return CRYPTO_memcmp(a.data(), b.data(), sizeof a) == 0;
}

}  // namespace leeway::transport
