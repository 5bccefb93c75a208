#include "plan/check_ranges.hpp"

#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>

#include "core/limits.hpp"
#include "core/text.hpp"
#include "plan/annotation_ids.hpp"
#include "plan/annotations.capnp.h"
#include "plan/plan.hpp"
#include "plan/schema_text.hpp"

namespace leeway::plan {
namespace {

using capnp::DynamicList;
using capnp::DynamicStruct;
using capnp::DynamicValue;
using Field = capnp::StructSchema::Field;
using plan_schema::Range;

static_assert(plan_schema::MAX_WORKERS == limits::kMaxWorkers);
static_assert(plan_schema::MAX_SHARDS == limits::kMaxShards);
static_assert(plan_schema::MAX_STAGES == limits::kMaxStages);
static_assert(plan_schema::MAX_CHUNKS == limits::kMaxChunks);
static_assert(plan_schema::MAX_SLOWDOWN == kMaxSlowdown);

std::optional<Range::Reader> annotated_range(Field field) {
  for (const auto annotation : field.getProto().getAnnotations())
    if (annotation.getId() == annotations::kRange)
      return annotation.getValue().getStruct().getAs<Range>();
  return std::nullopt;
}

bool contains(const Range::Reader& range, double value) {
  if (range.getOrZero() && value == 0) return true;
  if (range.getFloat()) value = static_cast<float>(value);
  return value >= range.getLeast() && value > range.getAbove() && value <= range.getMost() &&
         value < range.getBelow();
}

std::string number(double value) {
  constexpr double kReadable = 1e15;  // without an exponent
  const bool whole = std::abs(value) < kReadable && value == std::trunc(value);
  if (whole) return concat(static_cast<std::int64_t>(value));
  char digits[32];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value).ptr;
  return std::string(digits, end);
}

std::string words_of(const Range::Reader& range) {
  const bool least = std::isfinite(range.getLeast()), above = std::isfinite(range.getAbove());
  const bool most = std::isfinite(range.getMost()), below = std::isfinite(range.getBelow());
  const std::string zero = range.getOrZero() ? "0, or " : "";
  if (least && most) return concat(zero, number(range.getLeast()), " to ", number(range.getMost()));
  std::string text;
  if (least) text = number(range.getLeast()) + " or more";
  if (above) text = "a number above " + number(range.getAbove());
  const std::string comma = text.empty() ? "" : ", ";
  if (most) text += comma + "at most " + number(range.getMost());
  if (below) text += comma + "below " + number(range.getBelow());
  return zero + text;
}

std::string shown(const DynamicValue::Reader& in) {
  if (in.getType() == DynamicValue::INT) return concat(in.as<std::int64_t>());
  if (in.getType() == DynamicValue::UINT) return concat(in.as<std::uint64_t>());
  return number(in.as<double>());
}

std::string remedy(Field field, const Range::Reader& range) {
  const std::string flag = annotations::text_of(field, annotations::kFlag);
  const std::string give = range.getGive().size() > 0 ? range.getGive().cStr() : words_of(range);
  if (flag.empty()) return give;
  // A range that several settings share names the flag of one of them.
  return concat(flag, give.starts_with("--") ? give.substr(give.find(' ')) : ' ' + give);
}

/// Visits the fields of a plan in order.
class RangeCheck {
 public:
  Status status;

  void check_struct(const DynamicStruct::Reader& in, const std::string& place) {
    const auto schema = in.getSchema();
    for (const Field field : schema.getNonUnionFields()) check_field(in, field, place);
    KJ_IF_MAYBE (arm, in.which()) {
      check_field(in, *arm, place);
    }
  }

 private:
  void check_field(const DynamicStruct::Reader& in, Field field, const std::string& parent) {
    const std::string place = concat(parent, parent.empty() ? "" : ".", leeway::name_of(field));
    const DynamicValue::Reader value = in.get(field);
    switch (value.getType()) {
      case DynamicValue::STRUCT:
        return check_struct(value.as<DynamicStruct>(), place);
      case DynamicValue::LIST:
        return check_list(value.as<DynamicList>(), place);
      case DynamicValue::TEXT:
        return check_text(field, place, value.as<capnp::Text>());
      case DynamicValue::INT:
      case DynamicValue::UINT:
      case DynamicValue::FLOAT:
        return check_number(field, place, value);
      default:
        return;
    }
  }

  void check_list(const DynamicList::Reader& list, const std::string& place) {
    if (!list.getSchema().getElementType().isStruct()) return;
    for (unsigned i = 0; i < list.size(); ++i)
      check_struct(list[i].as<DynamicStruct>(), concat(place, '[', i, ']'));
  }

  void check_text(Field field, const std::string& place, capnp::Text::Reader value) {
    const std::string give = annotations::text_of(field, annotations::kNotEmpty);
    if (give.empty() || value.size() > 0) return;
    refuse(place, ": is empty; give ", give);
  }

  void check_number(Field field, const std::string& place, const DynamicValue::Reader& in) {
    const bool real = in.getType() == DynamicValue::FLOAT;
    const auto range = annotated_range(field);
    if (!real && !range) return;
    const auto value = in.as<double>();
    if (std::isfinite(value) && (!range || contains(*range, value))) return;
    refuse(place, ": ", shown(in), " is not allowed; give ",
           range ? remedy(field, *range) : "a finite number");
  }

  template <class... Values>
  void refuse(const Values&... values) {
    if (status) status = Error{concat(values...)};
  }
};

}  // namespace

Status check_ranges(const DynamicStruct::Reader& in, const std::string& where) {
  RangeCheck check;
  check.check_struct(in, where);
  return check.status;
}

std::string range_text(Field field) {
  const auto range = annotated_range(field);
  return range ? words_of(*range) : "";
}

}  // namespace leeway::plan
