#pragma once
// EventLog: writes every event of a run as a JSON line with named fields. Thread-safe.
#include <fstream>
#include <mutex>
#include <string>

#include "actors/outbox.hpp"

namespace leeway {

class EventLog {
 public:
  explicit EventLog(const std::string& path) : out_(path, std::ios::app) {}
  void write(Address actor, Instant at, const Event& event);

 private:
  std::mutex mutex_;
  std::ofstream out_;
};

}  // namespace leeway
