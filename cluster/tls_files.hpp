#pragma once
// TlsFiles: what a process shows others over TLS, read once from a folder of `leeway cert`.
//
// CAF reads the files anew for each connection, and throws on the thread of all sockets when one is
// not there. So they are checked at the start and kept in memory, under paths of this process:
// whoever moves the folder away later does no harm.
#include <array>
#include <functional>
#include <memory>
#include <string>

#include "cluster/refusals.hpp"
#include "core/expected.hpp"

namespace leeway::cluster {

class TlsFiles {
 public:
  /// Reads ca.pem, node.pem and node.key; the error is that of check_tls_folder.
  static Expected<std::unique_ptr<TlsFiles>> read(const std::string& folder);
  ~TlsFiles();
  TlsFiles(const TlsFiles&) = delete;
  TlsFiles& operator=(const TlsFiles&) = delete;

  std::string authority_path() const { return path(0); }
  std::string certificate_path() const { return path(1); }
  std::string key_path() const { return path(2); }

 private:
  TlsFiles() = default;
  std::string path(std::size_t index) const;
  std::array<int, 3> files_ = {-1, -1, -1};
};

/// Tells of callers of this process whose TLS handshakes with CAF fail, while it lives. The reader
/// of the sockets waits meanwhile.
class FailedHandshakes {
 public:
  using Tell = std::function<void(const std::string& note)>;
  explicit FailedHandshakes(Tell tell);
  ~FailedHandshakes();
  FailedHandshakes(const FailedHandshakes&) = delete;
  FailedHandshakes& operator=(const FailedHandshakes&) = delete;

  /// Of all that live.
  static void tell_all(const std::string& why);

 private:
  const Tell tell_;
  Refusals refusals_{"a call"};
};

}  // namespace leeway::cluster
