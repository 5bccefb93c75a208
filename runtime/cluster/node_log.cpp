#include "runtime/cluster/node_log.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/text.hpp"
#include "core/this_host.hpp"

namespace leeway {
namespace {

/// systemd names the device and inode of the stream that it reads.
bool is_read_by_journal() {
  const char* const stream = std::getenv("JOURNAL_STREAM");
  struct stat info {};
  return stream && fstat(STDERR_FILENO, &info) == 0 &&
         stream == concat(info.st_dev, ':', info.st_ino);
}

const char* name_of(LogLevel level) {
  constexpr const char* kNames[] = {"info", "warning", "error"};
  return kNames[static_cast<std::size_t>(level)];
}

/// As in syslog(3).
int priority_of(LogLevel level) {
  constexpr int kPriorities[] = {6, 4, 3};
  return kPriorities[static_cast<std::size_t>(level)];
}

}  // namespace

Expected<LogFormat> parse_log_format(const std::optional<std::string>& text) {
  if (!text) return is_read_by_journal() ? LogFormat::journal : LogFormat::text;
  if (*text == "text") return LogFormat::text;
  if (*text == "json") return LogFormat::json;
  return Error{concat("--log: \"", *text, "\" is not known; give text or json")};
}

void NodeLog::write(LogLevel level, const std::string& text) const {
  std::string line;
  if (format_ == LogFormat::json) {
    const nlohmann::ordered_json json{
        {"time", utc_now(true)}, {"level", name_of(level)}, {"node", node_}, {"text", text}};
    line = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  } else {
    if (format_ == LogFormat::journal) line = concat('<', priority_of(level), '>');
    line += concat("node: ", level == LogLevel::info ? "" : concat(name_of(level), ": "), text);
  }
  // One write, so that lines of several processes do not mix.
  std::cerr << line + '\n' << std::flush;
}

void notify_service_manager(const std::string& state) {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  const std::size_t length = path ? std::strlen(path) : 0;
  if (length < 2 || length >= sizeof to.sun_path) return;
  std::memcpy(to.sun_path, path, length);
  if (path[0] == '@') to.sun_path[0] = '\0';  // an abstract address
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  ::sendto(socket, state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&to),
           size);
  ::close(socket);
}

}  // namespace leeway
