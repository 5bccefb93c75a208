#pragma once
// EventLog: writes every event of a run as a JSON line with named fields, for programs that read
// them during the run. Thread-safe.
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "actors/outbox.hpp"
#include "monitoring/line_file.hpp"

namespace leeway {

/// "pull_answered".
std::string event_name(const Event& event);
/// {"worker":2,"clock":3,"partial":true}
nlohmann::ordered_json event_fields(const Event& event);
/// {"ns":7,"actor":"shard 1","event":"fenced","worker":2,"clock":3,"partial":true}. Durations end
/// in _ns.
std::string event_line(Address actor, Instant at, const Event& event);

class EventLog {
 public:
  /// Appends to the file of a run that is resumed, after a line with the event `resumed`.
  explicit EventLog(const std::string& path);
  void write(Address actor, Instant at, const Event& event);
  /// Writes what waits in memory, and returns the file.
  const LineFile& finish();

 private:
  static constexpr std::size_t kBuffer = 64 << 10;

  std::mutex mutex_;
  LineFile file_;
};

}  // namespace leeway
