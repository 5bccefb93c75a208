#include "plan/schema_text.hpp"

#include <capnp/schema.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <vector>

#include "core/text.hpp"

namespace leeway {
namespace {

using capnp::DynamicList;
using capnp::DynamicStruct;
using capnp::DynamicValue;
using capnp::EnumSchema;
using capnp::StructSchema;
using Field = StructSchema::Field;
using Tree = nlohmann::ordered_json;

/// microBatches -> micro_batches.
std::string snake_case(kj::StringPtr name) {
  std::string out;
  for (const char c : name) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper) out += '_';
    out += upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

bool in_union(Field field) {
  return field.getProto().getDiscriminantValue() != capnp::schema::Field::NO_DISCRIMINANT;
}

std::optional<Field> find(StructSchema schema, std::string_view name) {
  for (const Field field : schema.getFields())
    if (name_of(field) == name) return field;
  return std::nullopt;
}

std::vector<std::string> names_of_fields(StructSchema schema, bool only_arms) {
  std::vector<std::string> names;
  for (const Field field : schema.getFields())
    if (!only_arms || in_union(field)) names.push_back(name_of(field));
  return names;
}

// ---- to text ----

Tree tree_of_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Tree tree_of_struct(const DynamicStruct::Reader& in) {
  Tree table = Tree::object();
  const StructSchema schema = in.getSchema();
  std::optional<Field> arm;
  KJ_IF_MAYBE (known, in.which()) {
    arm = *known;
  }
  if (arm && schema.getNonUnionFields().size() == 0 && arm->getType().isVoid())
    return name_of(*arm);
  for (const Field field : schema.getFields()) {
    if (in_union(field) && !(arm && field == *arm)) continue;
    table[name_of(field)] = to_tree(in.get(field));
  }
  return table;
}

// ---- from text ----

/// A value of the text, with its line and its path, for errors.
struct Place {
  const TextNode& node;
  const std::string& source;
  std::string path;  // "model[2].linear.outputs"; empty for the whole text

  Place member(const TextNode& child, const std::string& key) const {
    return {child, source, path.empty() ? key : concat(path, '.', key)};
  }
  Place item(std::size_t index) const {
    return {node.items[index], source, concat(path, '[', index, ']')};
  }
  template <class... Values>
  Error error(const Values&... values) const {
    return Error{concat(source, ':', node.line, ": ", path, path.empty() ? "" : ": ", values...)};
  }
};

struct IntegerRange {
  std::uint64_t below_zero;  // magnitude of the smallest value
  std::uint64_t above_zero;  // the largest value
};

template <class Integer>
constexpr IntegerRange range_of() {
  using Limits = std::numeric_limits<Integer>;
  const auto greatest = static_cast<std::uint64_t>(Limits::max());
  return {std::is_signed_v<Integer> ? greatest + 1 : 0, greatest};
}

IntegerRange range_of(capnp::Type type) {
  switch (type.which()) {
    case capnp::schema::Type::INT8:
      return range_of<std::int8_t>();
    case capnp::schema::Type::INT16:
      return range_of<std::int16_t>();
    case capnp::schema::Type::INT32:
      return range_of<std::int32_t>();
    case capnp::schema::Type::INT64:
      return range_of<std::int64_t>();
    case capnp::schema::Type::UINT8:
      return range_of<std::uint8_t>();
    case capnp::schema::Type::UINT16:
      return range_of<std::uint16_t>();
    case capnp::schema::Type::UINT32:
      return range_of<std::uint32_t>();
    default:
      return range_of<std::uint64_t>();
  }
}

Expected<DynamicValue::Reader> read_integer(const Place& at, capnp::Type type) {
  const auto [below_zero, above_zero] = range_of(type);
  const TextNode& node = at.node;
  const bool whole = node.kind == TextNode::Kind::integer;
  if (!whole || node.magnitude > (node.negative ? below_zero : above_zero))
    return at.error(describe(node), whole ? " is out of range" : " is not a whole number",
                    "; give a whole number from ", below_zero > 0 ? "-" : "", below_zero, " to ",
                    above_zero);
  // Unsigned negation is also right for the least value.
  if (node.negative) return DynamicValue::Reader(static_cast<std::int64_t>(0 - node.magnitude));
  return DynamicValue::Reader(node.magnitude);
}

Expected<DynamicValue::Reader> read_number(const Place& at) {
  const TextNode& node = at.node;
  if (node.kind == TextNode::Kind::integer || node.kind == TextNode::Kind::fraction)
    return DynamicValue::Reader(node.fraction);
  if (node.kind == TextNode::Kind::text) {
    if (node.text == "nan") return DynamicValue::Reader(std::numeric_limits<double>::quiet_NaN());
    if (node.text == "inf") return DynamicValue::Reader(std::numeric_limits<double>::infinity());
    if (node.text == "-inf") return DynamicValue::Reader(-std::numeric_limits<double>::infinity());
  }
  return at.error(describe(node), " is not a number; give one like 0.1");
}

Expected<DynamicValue::Reader> read_enum(const Place& at, EnumSchema schema) {
  std::vector<std::string> names;
  for (const auto value : schema.getEnumerants()) {
    names.push_back(name_of(value));
    if (at.node.kind == TextNode::Kind::text && at.node.text == names.back())
      return DynamicValue::Reader(capnp::DynamicEnum(value));
  }
  if (at.node.kind != TextNode::Kind::text)
    return at.error(describe(at.node), " is not a name; give one of \"", join(names, "\", \""),
                    '"');
  return at.error(describe(at.node), " is unknown", suggest(at.node.text, names));
}

/// A value that is neither list nor struct. Texts are borrowed from the node.
Expected<DynamicValue::Reader> read_scalar(const Place& at, capnp::Type type) {
  const TextNode& node = at.node;
  switch (type.which()) {
    case capnp::schema::Type::BOOL:
      if (node.kind == TextNode::Kind::boolean) return DynamicValue::Reader(node.boolean);
      return at.error(describe(node), " is neither true nor false; give one of them");
    case capnp::schema::Type::FLOAT32:
    case capnp::schema::Type::FLOAT64:
      return read_number(at);
    case capnp::schema::Type::TEXT:
      if (node.kind == TextNode::Kind::text)
        return DynamicValue::Reader(capnp::Text::Reader(node.text.c_str(), node.text.size()));
      return at.error(describe(node), " is not a text; put it in quotes");
    case capnp::schema::Type::ENUM:
      return read_enum(at, type.asEnum());
    case capnp::schema::Type::DATA:
    case capnp::schema::Type::INTERFACE:
    case capnp::schema::Type::ANY_POINTER:
      LW_CHECK(false, "the schema has a type without a text form");
    default:
      return read_integer(at, type);
  }
}

Status fill_struct(DynamicStruct::Builder out, const Place& at);

Status fill_list(DynamicList::Builder out, const Place& at) {
  const capnp::Type type = out.getSchema().getElementType();
  for (unsigned i = 0; i < out.size(); ++i) {
    const Place item = at.item(i);
    if (type.isStruct()) {
      if (auto status = fill_struct(out[i].as<DynamicStruct>(), item); !status) return status;
    } else {
      auto value = read_scalar(item, type);
      if (!value) return value.error();
      out.set(i, *value);
    }
  }
  return {};
}

/// An arm without fields is an empty table, or true.
Status fill_void(DynamicStruct::Builder out, Field field, const Place& at) {
  const TextNode& node = at.node;
  const bool empty_table = node.kind == TextNode::Kind::table && node.items.empty();
  if (!empty_table && !(node.kind == TextNode::Kind::boolean && node.boolean))
    return at.error(describe(node), " is not allowed: it has no fields; give {}");
  out.set(field, capnp::VOID);
  return {};
}

Status fill_field(DynamicStruct::Builder out, Field field, const Place& at) {
  const capnp::Type type = field.getType();
  if (at.node.kind == TextNode::Kind::null)
    return at.error("null is not allowed; leave the key out to keep its default");
  if (type.isVoid()) return fill_void(out, field, at);
  if (type.isStruct()) return fill_struct(out.init(field).as<DynamicStruct>(), at);
  if (type.isList()) {
    if (at.node.kind != TextNode::Kind::list)
      return at.error(describe(at.node), " is not a list; give [...]");
    const auto size = static_cast<unsigned>(at.node.items.size());
    return fill_list(out.init(field, size).as<DynamicList>(), at);
  }
  auto value = read_scalar(at, type);
  if (!value) return value.error();
  out.set(field, *value);
  return {};
}

/// `consistency = "bsp"` selects the arm and keeps the defaults of its fields.
Status fill_arm_by_name(DynamicStruct::Builder out, const Place& at) {
  const auto arms = names_of_fields(out.getSchema(), true);
  const auto field = find(out.getSchema(), at.node.text);
  const std::string name = at.node.text.substr(0, at.node.text.find('('));
  if (const auto arm = find(out.getSchema(), name);
      !field && arm && in_union(*arm) && arm->getType().isStruct())
    return at.error(describe(at.node), " has the form of a flag; give { ", name, " = { ",
                    names_of_fields(arm->getType().asStruct(), false).front(), " = ... } }");
  if (!field || !in_union(*field))
    return at.error(describe(at.node), " is unknown", suggest(at.node.text, arms));
  if (field->getType().isVoid())
    out.set(*field, capnp::VOID);
  else if (field->getType().isStruct())
    out.init(*field);
  else
    return at.error(describe(at.node), " needs a value; give { ", at.node.text, " = ... }");
  return {};
}

Status fill_struct(DynamicStruct::Builder out, const Place& at) {
  const TextNode& node = at.node;
  const StructSchema schema = out.getSchema();
  const bool has_union = schema.getUnionFields().size() > 0;
  if (node.kind == TextNode::Kind::text && has_union) return fill_arm_by_name(out, at);
  if (node.kind != TextNode::Kind::table)
    return at.error(describe(node), " is not a table; its keys are ",
                    join(names_of_fields(schema, false), ", "));
  const std::string* arm = nullptr;
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const std::string& key = node.keys[i];
    const Place child = at.member(node.items[i], key);
    const auto field = find(schema, key);
    if (!field) return child.error("unknown key", suggest(key, names_of_fields(schema, false)));
    if (in_union(*field)) {
      if (arm) return child.error('"', *arm, "\" is given as well; keep one of the two");
      arm = &key;
    }
    if (auto status = fill_field(out, *field, child); !status) return status;
  }
  return {};
}

}  // namespace

std::string name_of(Field field) {
  return snake_case(field.getProto().getName());
}
std::string name_of(EnumSchema::Enumerant value) {
  return snake_case(value.getProto().getName());
}

Tree to_tree(const DynamicValue::Reader& value) {
  switch (value.getType()) {
    case DynamicValue::VOID:
      return Tree::object();
    case DynamicValue::BOOL:
      return value.as<bool>();
    case DynamicValue::INT:
      return value.as<std::int64_t>();
    case DynamicValue::UINT:
      return value.as<std::uint64_t>();
    case DynamicValue::FLOAT:
      return tree_of_number(value.as<double>());
    case DynamicValue::TEXT: {
      const auto text = value.as<capnp::Text>();
      return std::string(text.begin(), text.size());
    }
    case DynamicValue::ENUM: {
      KJ_IF_MAYBE (known, value.as<capnp::DynamicEnum>().getEnumerant()) {
        return name_of(*known);
      }
      return value.as<capnp::DynamicEnum>().getRaw();
    }
    case DynamicValue::LIST: {
      Tree list = Tree::array();
      for (const auto item : value.as<DynamicList>()) list.push_back(to_tree(item));
      return list;
    }
    case DynamicValue::STRUCT:
      return tree_of_struct(value.as<DynamicStruct>());
    default:
      break;
  }
  LW_CHECK(false, "the schema has a type without a text form");
  return {};
}

Status fill(DynamicStruct::Builder out, const TextNode& node, const std::string& source) {
  return fill_struct(out, {node, source, ""});
}

}  // namespace leeway
