#include "monitoring/event_block.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "monitoring/varint.hpp"

namespace leeway {
namespace {

using Variant = Event::variant;
constexpr std::size_t kEvents = std::variant_size_v<Variant>;
/// Columns of all events: times, kinds of actors, numbers of actors, types.
constexpr std::size_t kTimes = 0, kRoles = 1, kActors = 2, kTypes = 3, kShared = 4;
/// Most fields of an event.
constexpr std::size_t kFields = 12;
constexpr std::size_t kColumns = kShared + kEvents * kFields;

constexpr std::size_t column_of(std::size_t type, std::size_t field) {
  return kShared + type * kFields + field;
}

/// Small for small numbers of both signs.
constexpr std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
constexpr std::int64_t from_zigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}
/// Without the undefined overflow of signed numbers.
constexpr std::int64_t wrapped_sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
constexpr std::int64_t wrapped_difference(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

template <class T>
std::int64_t number_of(const T& value) {
  if constexpr (requires { value.value(); })
    return static_cast<std::int64_t>(value.value());
  else if constexpr (std::is_same_v<T, Duration>)
    return value.ns;
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<std::int64_t>(value);
  else
    return static_cast<std::int64_t>(value);
}

template <class T>
void set_number(T& value, std::int64_t number) {
  if constexpr (requires { value.value(); })
    value = T(static_cast<decltype(value.value())>(number));
  else if constexpr (std::is_same_v<T, Duration>)
    value.ns = number;
  else if constexpr (std::is_same_v<T, double>)
    value = std::bit_cast<double>(number);
  else
    value = static_cast<T>(number);
}

/// A default event of the type with this index.
template <std::size_t... kIndex>
Event event_of(std::size_t type, std::index_sequence<kIndex...>) {
  Event event;
  (void)((kIndex == type && (event = std::variant_alternative_t<kIndex, Variant>(), true)) || ...);
  return event;
}

class Malformed {};

/// Reads one column. Throws Malformed at its end.
class ColumnReader {
 public:
  explicit ColumnReader(std::string_view bytes = {}) : rest_(bytes) {}
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) throw Malformed();
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    throw Malformed();
  }
  std::int64_t next() { return last_ = wrapped_sum(last_, from_zigzag(varint())); }
  std::string_view text(std::size_t size) {
    if (size > rest_.size()) throw Malformed();
    const std::string_view text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return text;
  }

 private:
  std::string_view rest_;
  std::int64_t last_ = 0;
};

class Columns {
 public:
  explicit Columns(std::string_view bytes) {
    ColumnReader all(bytes);
    for (ColumnReader& column : columns_) column = ColumnReader(all.text(all.varint()));
  }
  EventRecord next() {
    EventRecord record;
    record.at.ns = columns_[kTimes].next();
    record.actor.kind = static_cast<RoleKind>(columns_[kRoles].next());
    record.actor.index = static_cast<std::uint32_t>(columns_[kActors].next());
    const auto type = static_cast<std::size_t>(columns_[kTypes].next());
    if (type >= kEvents || name_of(record.actor.kind) == "?") throw Malformed();
    record.event = event_of(type, std::make_index_sequence<kEvents>());
    std::size_t field = 0;
    for_each_field(record.event, [&](const char*, auto& value) {
      ColumnReader& column = columns_[column_of(type, field++)];
      using Value = std::decay_t<decltype(value)>;
      if constexpr (std::is_same_v<Value, std::string>) {
        value = column.text(column.varint());
      } else {
        set_number(value, column.next());
        if constexpr (std::is_enum_v<Value>)
          if (name_of(value) == "?") throw Malformed();
      }
    });
    return record;
  }

 private:
  std::array<ColumnReader, kColumns> columns_;
};

}  // namespace

EventBlock::EventBlock() : columns_(kColumns) {}

void EventBlock::add(Address actor, Instant at, const Event& event) {
  const auto put = [&](std::size_t index, std::int64_t number) {
    Column& column = columns_[index];
    put_varint(column.bytes, zigzag(wrapped_difference(number, column.last)));
    column.last = number;
  };
  put(kTimes, at.ns);
  put(kRoles, static_cast<std::int64_t>(actor.kind));
  put(kActors, actor.index);
  put(kTypes, static_cast<std::int64_t>(event.index()));
  std::size_t field = 0;
  for_each_field(event, [&](const char*, const auto& value) {
    const std::size_t index = column_of(event.index(), field++);
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
      put_varint(columns_[index].bytes, value.size());
      columns_[index].bytes += value;
    } else {
      put(index, number_of(value));
    }
  });
  LW_CHECK(field <= kFields, field);
  first_ = size_ == 0 ? at : std::min(first_, at);
  last_ = size_ == 0 ? at : std::max(last_, at);
  ++size_;
}

std::string EventBlock::bytes() const {
  std::string out;
  for (const Column& column : columns_) {
    put_varint(out, column.bytes.size());
    out += column.bytes;
  }
  return out;
}

Expected<std::vector<EventRecord>> EventBlock::read(std::string_view bytes, std::size_t count) {
  try {
    Columns columns(bytes);
    std::vector<EventRecord> records;
    records.reserve(std::min(count, bytes.size() / kShared));  // one byte in each shared column
    for (std::size_t i = 0; i < count; ++i) records.push_back(columns.next());
    return records;
  } catch (const Malformed&) {
    return Error{"malformed events"};
  }
}

}  // namespace leeway
