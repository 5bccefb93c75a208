#include "monitoring/event_log.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/text.hpp"

namespace leeway {
namespace {

/// "pull answered" -> "pull_answered".
std::string identifier(std::string_view words) {
  std::string out(words);
  std::replace(out.begin(), out.end(), ' ', '_');
  return out;
}

template <class T>
nlohmann::ordered_json json_of(const T& value) {
  if constexpr (requires { value.value(); })
    return value.value();  // of a strong type
  else if constexpr (std::is_enum_v<T>)
    return identifier(name_of(value));
  else if constexpr (std::is_same_v<T, Duration>)
    return value.ns;
  else
    return value;
}

}  // namespace

std::string event_name(const Event& event) {
  return identifier(name_of(event));
}

nlohmann::ordered_json event_fields(const Event& event) {
  auto json = nlohmann::ordered_json::object();
  for_each_field(event, [&](const char* name, const auto& value) { json[name] = json_of(value); });
  return json;
}

std::string event_line(Address actor, Instant at, const Event& event) {
  nlohmann::ordered_json json{
      {"ns", at.ns}, {"actor", concat(actor)}, {"event", event_name(event)}};
  json.update(event_fields(event));
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

EventLog::EventLog(const std::string& path) : file_(path, kBuffer) {
  std::error_code missing;
  if (std::filesystem::file_size(path, missing) > 0 && !missing)
    file_.add(R"({"ns":0,"actor":"host","event":"resumed"})");
}

void EventLog::write(Address actor, Instant at, const Event& event) {
  const std::string line = event_line(actor, at, event);
  std::lock_guard lock(mutex_);
  file_.add(line);
}

const LineFile& EventLog::finish() {
  std::lock_guard lock(mutex_);
  file_.flush();
  return file_;
}

}  // namespace leeway
