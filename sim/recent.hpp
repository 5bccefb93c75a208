#pragma once
// Recent: the latest messages, events and ends of a run, for the report of a violation.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/observer.hpp"

namespace leeway::sim {

class Recent {
 public:
  void delivered(Instant at, const Letter& letter);
  void event(Instant at, Address actor, const Event& event);
  void ended(Instant at, Address actor);

  /// The last entries that concern one of `actors`, oldest first, one per line. Without actors,
  /// the last entries of all.
  std::string about(std::span<const Address> actors) const;

 private:
  static constexpr std::size_t kKept = 4096;  // of the whole run
  static constexpr std::size_t kReported = 20;
  /// Holds no message, because a message would keep its tensors.
  struct Entry {
    enum class What : std::uint8_t { delivered, event, ended };
    What what{};
    Instant at;
    Address from, to;
    Event event;
    std::string_view message;            // its name; empty if no observer has decoded it
    std::optional<Iteration> iteration;  // of the message
    std::size_t bytes = 0;               // of the message
  };
  Entry& next();
  static bool concerns(const Entry& entry, Address actor);
  static std::string line(const Entry& entry);

  std::vector<Entry> ring_;
  std::size_t oldest_ = 0;
};

}  // namespace leeway::sim
