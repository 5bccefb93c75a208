#pragma once
// EndReason: why an actor has ended, as its host knows it. Code decides by the kind; the text is
// for people.
#include <cstdint>
#include <string>
#include <utility>

namespace leeway {

struct EndReason {
  enum class Kind : std::uint8_t {
    failed,         // it threw an error, or ended in another way that the plan does not contain
    planned_crash,  // by a fault of the plan, which starts it again later
    planned_end,    // by a fault of the plan, for good
    unreachable,    // its node is silent or gone; the actor may still run
    cut_off,        // the scheduler hears it, but an actor that needs it does not
  };

  EndReason() = default;
  EndReason(Kind end_kind, std::string why) : kind(end_kind), text(std::move(why)) {}
  // The kind of a text without one is `failed`.
  EndReason(std::string why) : text(std::move(why)) {}
  EndReason(const char* why) : text(why) {}
  bool operator==(const EndReason&) const = default;

  Kind kind = Kind::failed;
  std::string text;
};

}  // namespace leeway
