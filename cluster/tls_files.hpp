#pragma once
// TlsFiles: the certificates and key of a process, read once from a folder of `leeway cert`.
//
// CAF reads the files again for each connection, and throws on the sockets' thread if one is
// missing. So they are checked at the start and kept in memory files: the folder may be moved
// later.
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

/// While it lives, reports callers whose TLS handshake with CAF fails. Called on the sockets'
/// thread.
class FailedHandshakes {
 public:
  using Tell = std::function<void(const std::string& note)>;
  explicit FailedHandshakes(Tell tell);
  ~FailedHandshakes();
  FailedHandshakes(const FailedHandshakes&) = delete;
  FailedHandshakes& operator=(const FailedHandshakes&) = delete;

  /// Reports to every live object.
  static void report_all(const std::string& why);

 private:
  const Tell tell_;
  Refusals refusals_{"a call"};
};

}  // namespace leeway::cluster
