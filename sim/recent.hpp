#pragma once
// Recent: the last things that happened in a run, kept cheaply, told when something goes wrong.
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

  /// The last entries that concern one of `actors`, oldest first, a line each; of anybody when
  /// there are no actors.
  std::string about(std::span<const Address> actors) const;

 private:
  static constexpr std::size_t kKept = 4096;  // of the whole run, to find those of a few actors in
  static constexpr std::size_t kTold = 20;
  /// Numbers alone: a message that is kept would keep its tensors.
  struct Entry {
    enum class What : std::uint8_t { delivered, event, ended };
    What what{};
    Instant at;
    Address from, to;
    std::string_view name;  // of a message; empty when nobody opened it
    Event event;
    std::size_t bytes = 0;
  };
  Entry& next();
  static bool concerns(const Entry& entry, Address actor);
  static std::string line(const Entry& entry);

  std::vector<Entry> ring_;
  std::size_t oldest_ = 0;
};

}  // namespace leeway::sim
