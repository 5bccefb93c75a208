#pragma once
// Refusals: log lines about refused callers, at most one a second for each reason.
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "core/text.hpp"
#include "core/this_host.hpp"

namespace leeway::transport {

class Refusals {
 public:
  /// `what` names the refused thing: "a call".
  explicit Refusals(std::string what) : what_(std::move(what)) {}

  /// The line to log; "" for none.
  std::string note(const std::string& why) {
    constexpr std::int64_t kOftenNs = 1'000'000'000;
    constexpr std::size_t kMostReasons = 64;
    const bool is_known = reasons_.size() < kMostReasons || reasons_.contains(why);
    Reason& reason = is_known ? reasons_[why] : others_;
    ++reason.times;
    const std::int64_t now = steady_ns();
    if (reason.noted_at != 0 && now - reason.noted_at < kOftenNs) return "";
    reason.noted_at = now;
    const std::uint64_t before = std::exchange(reason.times, 0) - 1;
    return before == 0 ? concat("refused ", what_, ": ", why)
                       : concat("refused ", what_, ", and ", before, " before: ", why);
  }

 private:
  struct Reason {
    std::int64_t noted_at = 0;
    std::uint64_t times = 0;  // since noted_at
  };
  const std::string what_;
  std::map<std::string, Reason> reasons_;
  Reason others_;  // beyond kMostReasons
};

}  // namespace leeway::transport
