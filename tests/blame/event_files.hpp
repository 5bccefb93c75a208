#pragma once
// Files of events for tests.
#include <vector>

#include "core/address.hpp"
#include "core/time.hpp"
#include "messages/events.hpp"
#include "monitoring/event_file.hpp"
#include "tests/models/datasets/files.hpp"

namespace leeway::blame {

struct TimedEvent {
  Address actor;
  Duration at;
  Event event;
};

inline void write_events(const test::TemporaryFolder& folder,
                         const std::vector<TimedEvent>& events) {
  EventFile file(folder.path("events.bin"), EventFile::IfSlow::wait);
  for (const auto& [actor, at, event] : events) file.add(actor, Instant{} + at, event);
  file.finish();
}

}  // namespace leeway::blame
