#include "monitoring/event_log.hpp"

#include <nlohmann/json.hpp>

#include "core/text.hpp"

namespace leeway {

void EventLog::write(Address actor, Instant at, const Event& event) {
  nlohmann::ordered_json json{{"ns", at.ns},
                              {"actor", concat(actor)},
                              {"event", name_of(event.kind)},
                              {"worker", event.worker.value()},
                              {"iteration", event.iteration.value()},
                              {"value", event.value},
                              {"value2", event.value2},
                              {"epoch", event.epoch.value()}};
  if (of_stage(event.kind)) json["chunk"] = event.chunk;
  if (!event.name.empty()) json["text"] = event.name;
  const std::string line = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::lock_guard lock(mutex_);
  out_ << line << '\n';
}

}  // namespace leeway
