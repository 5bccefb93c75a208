#include "sim/words.hpp"

#include <algorithm>

#include "actors/replica/replica.hpp"
#include "actors/scheduler/scheduler.hpp"
#include "actors/shard/shard.hpp"
#include "core/text.hpp"

namespace leeway::sim {

std::string in_words(Instant at) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::string fraction = concat(at.ns % kSecond);
  return concat(at.ns / kSecond, '.', std::string(9 - fraction.size(), '0'), fraction, " s");
}

std::string in_words(const Event& event) {
  std::string text(name_of(event));
  for_each_field(event, [&](std::string_view name, const auto& value) {
    std::string words(name);
    std::replace(words.begin(), words.end(), '_', ' ');
    if constexpr (std::is_enum_v<std::decay_t<decltype(value)>>)
      text += concat(", ", words, ' ', name_of(value));
    else if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Duration>)
      text += concat(", ", words, ' ', value.ns);
    else
      text += concat(", ", words, ' ', value);
  });
  return text;
}

std::optional<Iteration> iteration_of(const Body& body) {
  return std::visit(
      [](const auto& one) -> std::optional<Iteration> {
        if constexpr (requires { one.iteration; }) {
          return one.iteration;
        } else if constexpr (requires { one.first_iteration; }) {
          return one.first_iteration;
        } else {
          return std::nullopt;
        }
      },
      body);
}

std::string in_words(const Message& message) {
  const auto envelope = decode(message);
  if (!envelope) return concat("malformed, ", envelope.error().text);
  std::string text(name_of(envelope->body));
  if (const auto iteration = iteration_of(envelope->body))
    text += concat(" of iteration ", *iteration);
  return concat(text, ", session ", envelope->session);
}

std::string who_waits(const std::map<Address, const Role*>& roles) {
  std::vector<std::string> lines;
  for (const auto& [address, role] : roles) {
    if (const auto* scheduler = dynamic_cast<const Scheduler*>(role))
      lines.push_back(scheduler->describe());
    const auto* replica = dynamic_cast<const Replica*>(role);
    if (replica) lines.push_back(concat(address, ": ", replica->describe()));
    const auto* shard = dynamic_cast<const Shard*>(replica ? &replica->role() : role);
    if (!shard) continue;
    std::string line = concat(address, " min_clock ", shard->clocks().min_clock());
    for (const auto& [worker, entry] : shard->clocks().participants())
      line += concat(", worker ", worker, " at ", entry.clock, entry.live ? "" : " (out)");
    lines.push_back(std::move(line));
  }
  return join(lines, "; ");
}

}  // namespace leeway::sim
