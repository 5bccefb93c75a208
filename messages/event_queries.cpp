#include "messages/event_queries.hpp"

#include "core/rng.hpp"

namespace leeway {
namespace {

/// A field of an event.
template <class T>
std::uint64_t number(const T& value) {
  if constexpr (requires { value.value(); })
    return static_cast<std::uint64_t>(value.value());
  else
    return static_cast<std::uint64_t>(value);
}

}  // namespace

std::optional<WorkerId> worker_of(const Event& event) {
  return std::visit(
      [](const auto& one) -> std::optional<WorkerId> {
        if constexpr (requires { one.worker; }) return one.worker;
        return std::nullopt;
      },
      event);
}

std::optional<Iteration> iteration_of(const Event& event) {
  return std::visit(
      [](const auto& one) -> std::optional<Iteration> {
        if constexpr (requires { one.iteration; }) return one.iteration;
        return std::nullopt;
      },
      event);
}

std::uint64_t hash_of(const Event& event) {
  std::uint64_t hash = mix64(event.index());
  for_each_field(event, [&](const char*, const auto& value) {
    using Value = std::decay_t<decltype(value)>;
    if constexpr (!std::is_same_v<Value, std::string> && !std::is_same_v<Value, Duration>)
      hash = mix64(hash ^ number(value));
  });
  return hash;
}

}  // namespace leeway
