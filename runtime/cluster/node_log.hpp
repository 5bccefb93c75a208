#pragma once
// NodeLog: the log of a node agent on standard error, for people, for systemd's journal, or as JSON
// for collectors.
#include <optional>
#include <string>

#include "core/expected.hpp"
#include "core/log_level.hpp"

namespace leeway {

enum class LogFormat : std::uint8_t {
  text,     // node: listening on 127.0.0.1:4242
  journal,  // the same behind the priority of syslog, <6>
  json,     // {"time":"2026-11-25T14:03:59.120Z","level":"info","node":"127.0.0.1:4242","text":...}
};

/// "text" or "json"; without a value, `journal` if systemd reads standard error.
Expected<LogFormat> parse_log_format(const std::optional<std::string>& text);

class NodeLog {
 public:
  explicit NodeLog(LogFormat format) : format_(format) {}
  /// The node's address, which JSON lines carry.
  void set_node(const std::string& name) { node_ = name; }
  void write(LogLevel level, const std::string& text) const;

 private:
  const LogFormat format_;
  std::string node_;
};

/// Reports to the service manager that started this process, in the format of sd_notify(3):
/// "READY=1". Without a service manager, nothing happens.
void notify_service_manager(const std::string& state);

}  // namespace leeway
