#pragma once
// EventBlock: some thousand events as columns, one per field of each type of event.
//
// A column has the differences of its numbers as varints, so that the columns compress well: an
// event of a long run takes three to five bytes.
#include <cstdint>
#include <string>
#include <vector>

#include "core/address.hpp"
#include "core/expected.hpp"
#include "core/time.hpp"
#include "messages/events.hpp"

namespace leeway {

struct EventRecord {
  Address actor;
  Instant at;
  Event event;
  bool operator==(const EventRecord&) const = default;
};

class EventBlock {
 public:
  EventBlock();
  void add(Address actor, Instant at, const Event& event);
  std::size_t size() const { return size_; }
  Instant first() const { return first_; }
  Instant last() const { return last_; }
  /// The columns, one after another.
  std::string bytes() const;

  /// The `count` events of such bytes, in the order in which they were added. The error says that
  /// they are malformed.
  static Expected<std::vector<EventRecord>> read(std::string_view bytes, std::size_t count);

 private:
  struct Column {
    std::string bytes;
    std::int64_t last = 0;
  };

  std::size_t size_ = 0;
  Instant first_, last_;  // the earliest and the latest
  std::vector<Column> columns_;
};

}  // namespace leeway
