#pragma once
// TlsFiles: what a process shows others over TLS, read once from a folder of `leeway cert`.
//
// CAF reads the files anew for each connection, and throws on the thread of all sockets when one is
// not there. So they are checked at the start and kept in memory, under paths of this process:
// whoever moves the folder away later does no harm.
#include <array>
#include <memory>
#include <string>

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

}  // namespace leeway::cluster
