#pragma once
// EndReason: why an actor has ended, as its host knows it. Code decides by the kind; the text is
// for people.
#include <cstdint>
#include <string>
#include <utility>

namespace leeway {

struct EndReason {
  enum class Kind : std::uint8_t {
    failed,         // it threw an error, or was ended in a way that the plan does not name
    planned_crash,  // by a fault of the plan, which starts it again later
    planned_end,    // by a fault of the plan, for good
    unreachable,    // its node is silent or gone: it may live on
  };

  EndReason() = default;
  EndReason(Kind what, std::string why) : kind(what), text(std::move(why)) {}
  // A text without a kind is that of a failure.
  EndReason(std::string why) : text(std::move(why)) {}
  EndReason(const char* why) : text(why) {}
  bool operator==(const EndReason&) const = default;

  Kind kind = Kind::failed;
  std::string text;
};

}  // namespace leeway
