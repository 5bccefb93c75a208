// Fields of structs and arms of unions, and their types.
#include <kj/debug.h>

#include <algorithm>
#include <charconv>

#include "core/text.hpp"
#include "messages/generator/names.hpp"
#include "messages/generator/reader.hpp"

namespace leeway::generator {
namespace {

using SchemaType = capnp::schema::Type;
using SchemaValue = capnp::schema::Value;

/// A limit as a C++ expression; constants come from core/limits.hpp.
std::string expression(const std::string& text) {
  return text.starts_with('k') ? "limits::" + text : text;
}

std::string number_text(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

const std::map<SchemaType::Which, const char*>& numbers() {
  static const std::map<SchemaType::Which, const char*> names = {
      {SchemaType::INT8, "std::int8_t"},     {SchemaType::INT16, "std::int16_t"},
      {SchemaType::INT32, "std::int32_t"},   {SchemaType::INT64, "std::int64_t"},
      {SchemaType::UINT8, "std::uint8_t"},   {SchemaType::UINT16, "std::uint16_t"},
      {SchemaType::UINT32, "std::uint32_t"}, {SchemaType::UINT64, "std::uint64_t"},
      {SchemaType::FLOAT32, "float"},        {SchemaType::FLOAT64, "double"},
  };
  return names;
}

}  // namespace

// ---- types ----

Enum ModelReader::enum_of(Id id) const {
  Enum out{names_.name_of(id), {}, {}};
  for (const auto value : names_.node(id).getEnum().getEnumerants()) {
    out.values.push_back(snake_case(string_of(value.getName())));
    out.words.push_back(snake_case(string_of(value.getName()), ' '));
  }
  return out;
}

Type ModelReader::enum_type(Id id) {
  Type out{.kind = Kind::enumeration, .name = names_.name_of(id), .schema = names_.schema_of(id)};
  if (const auto mapped = names_.annotation(names_.node(id).getAnnotations(), "mapped"))
    out.name = string_of(mapped->getStruct().getAs<schema::Mapped>().getType());
  out.last = concat(out.name, "::", enum_of(id).values.back());
  return out;
}

Type ModelReader::struct_type(Id id, const std::string& name) {
  Type out{.kind = Kind::structure, .name = name, .schema = names_.schema_of(id)};
  if (const auto mapped = names_.annotation(names_.node(id).getAnnotations(), "mapped")) {
    const auto type = mapped->getStruct().getAs<schema::Mapped>();
    out.name = string_of(type.getType());
    out.blobs = type.getBlobs();
    return out;
  }
  out.structure = struct_of(id, name);
  out.blobs = out.structure->blobs;
  const bool apart =
      names_.flat(id) || names_.node(id).getStruct().getIsGroup() || name != names_.name_of(id);
  if (apart && names_.file_of(id).getId() == file_) extra_.push_back(out.structure);
  return out;
}

Type ModelReader::type_of(SchemaType::Reader in, Annotations annotations) {
  Type out;
  const auto number = numbers().find(in.which());
  if (number != numbers().end()) {
    out.kind = Kind::number;
    out.name = number->second;
  } else if (in.isBool()) {
    out = {.kind = Kind::boolean, .name = "bool"};
  } else if (in.isText()) {
    out = {.kind = Kind::text, .name = "std::string"};
  } else if (in.isData()) {
    out = {.kind = Kind::data};
  } else if (in.isEnum()) {
    out = enum_type(in.getEnum().getTypeId());
  } else if (in.isStruct()) {
    out = struct_type(in.getStruct().getTypeId(), names_.name_of(in.getStruct().getTypeId()));
  } else {
    KJ_REQUIRE(in.isVoid(), "interfaces, pointers and lists of lists are not supported");
  }
  if (const auto named = names_.annotation(annotations, "type")) {
    out.name = string_of(named->getStruct().getAs<schema::Type>().getName());
    out.strong = !out.name.starts_with("std::");
  }
  KJ_REQUIRE(out.kind != Kind::data || out.strong, "data needs a $type");
  return out;
}

// ---- fields ----

Field ModelReader::field(SchemaField in, const std::string& comment) {
  const auto annotations = in.getAnnotations();
  Field out;
  out.label = snake_case(string_of(in.getName()));
  out.accessor = pascal_case(string_of(in.getName()));
  out.comment = comment;
  if (in.isGroup()) {
    const auto named = names_.annotation(annotations, "type");
    KJ_REQUIRE(named != std::nullopt, "a union needs a $type", out.label);
    const Id group = in.getGroup().getTypeId();
    const std::string name = string_of(named->getStruct().getAs<schema::Type>().getName());
    out.type.choice = union_of(group, name);
    out.type.kind = Kind::choice;
    out.type.name = out.type.choice->name;
    out.type.schema = out.type.choice->schema;
    out.type.blobs = out.type.choice->blobs;
  } else {
    const auto type = in.getSlot().getType();
    out.list = type.isList();
    out.type = type_of(out.list ? type.getList().getElementType() : type, annotations);
  }
  if (const auto named = names_.annotation(annotations, "type")) {
    const auto value = named->getStruct().getAs<schema::Type>();
    out.whole_list = value.getWholeList();
    out.limits.below = expression(string_of(value.getBelow()));
  }
  if (const auto range = names_.annotation(annotations, "range")) {
    const auto value = range->getStruct().getAs<schema::Range>();
    out.limits.least = expression(string_of(value.getLeast()));
    out.limits.most = expression(string_of(value.getMost()));
    out.limits.above = expression(string_of(value.getAbove()));
    if (value.getBelow().size() > 0) out.limits.below = expression(string_of(value.getBelow()));
  }
  out.limits.count = names_.has(annotations, "count");
  out.limits.finite = names_.has(annotations, "finite");
  out.ascending = names_.has(annotations, "ascending");
  out.list_limit = expression(names_.text(annotations, "limit"));
  out.constant = names_.text(annotations, "constant");
  out.name = names_.text(annotations, "name");
  if (out.name.empty()) {
    out.name = out.label;
    if (out.type.name == "Duration" && out.name.ends_with("_ns"))
      out.name.resize(out.name.size() - 3);
  }
  out.initially = names_.text(annotations, "initially");
  if (out.initially.empty() && in.isSlot() && !out.list) out.initially = initial(in, out.type);
  return out;
}

std::string ModelReader::initial(SchemaField in, const Type& type) const {
  if (type.strong) return "";
  const auto slot = in.getSlot();
  const auto value = slot.getDefaultValue();
  switch (value.which()) {
    case SchemaValue::BOOL:
      return value.getBool() ? "true" : "false";
    case SchemaValue::INT8:
      return concat(int{value.getInt8()});
    case SchemaValue::INT16:
      return concat(value.getInt16());
    case SchemaValue::INT32:
      return concat(value.getInt32());
    case SchemaValue::INT64:
      return concat(value.getInt64());
    case SchemaValue::UINT8:
      return concat(unsigned{value.getUint8()});
    case SchemaValue::UINT16:
      return concat(value.getUint16());
    case SchemaValue::UINT32:
      return concat(value.getUint32());
    case SchemaValue::UINT64:
      return concat(value.getUint64());
    case SchemaValue::FLOAT32:
      return number_text(static_cast<double>(value.getFloat32()));
    case SchemaValue::FLOAT64:
      return number_text(value.getFloat64());
    case SchemaValue::TEXT:
      return value.getText().size() == 0 ? "" : concat('"', string_of(value.getText()), '"');
    case SchemaValue::ENUM: {
      const auto values =
          names_.node(slot.getType().getEnum().getTypeId()).getEnum().getEnumerants();
      return concat(type.name, "::", snake_case(string_of(values[value.getEnum()].getName())));
    }
    default:
      return "";
  }
}

// ---- unions ----

std::shared_ptr<Union> ModelReader::union_of(Id id, const std::string& name) {
  auto out = std::make_shared<Union>();
  out->name = name;
  out->schema = names_.schema_of(id);
  const auto members = names_.node(id).getStruct().getFields();
  std::vector<unsigned> order;
  for (unsigned i = 0; i < members.size(); ++i)
    if (members[i].getDiscriminantValue() != capnp::schema::Field::NO_DISCRIMINANT)
      order.push_back(i);
  std::sort(order.begin(), order.end(), [&](unsigned a, unsigned b) {
    return members[a].getDiscriminantValue() < members[b].getDiscriminantValue();
  });
  for (const unsigned i : order) {
    out->arms.push_back(arm(id, members[i], names_.comment(id, i)));
    out->blobs |= out->arms.back().type.blobs;
  }
  return out;
}

Arm ModelReader::arm(Id parent, SchemaField in, const std::string& comment) {
  const std::string name = string_of(in.getName());
  const std::string named = names_.text(in.getAnnotations(), "name");
  const std::string space =
      relative(names_.text(names_.file_of(parent).getAnnotations(), "namespace"));
  const std::string cxx = space + (named.empty() ? pascal_case(name) : named);
  Arm out{.label = snake_case(name),
          .words = snake_case(name, ' '),
          .accessor = pascal_case(name),
          .enumerator = upper_case(name),
          .comment = comment};
  if (in.isGroup()) {
    out.type = struct_type(in.getGroup().getTypeId(), cxx);
    return out;
  }
  const auto type = in.getSlot().getType();
  KJ_REQUIRE(!type.isList(), "an arm of a union cannot be a list", name);
  if (type.isVoid()) {
    const Node node = names_.node(parent);
    out.empty = true;
    out.absent = name == "none" || names_.has(node.getAnnotations(), "optional");
    out.type.name = cxx;
    if (!out.absent) out.type.structure = struct_of_arm(parent, cxx, comment);
  } else if (type.isStruct()) {
    const Id id = type.getStruct().getTypeId();
    out.type = struct_type(id, named.empty() ? names_.name_of(id) : cxx);
  } else {
    out.type = type_of(type, in.getAnnotations());
    out.initially = initial(in, out.type);
    if (!named.empty()) wrap(out, parent, cxx, in);
  }
  return out;
}

Struct* ModelReader::struct_of_arm(Id parent, const std::string& name, const std::string& comment) {
  const auto [place, fresh] = structs_.try_emplace(name);
  if (fresh) {
    place->second = std::make_unique<Struct>();
    place->second->name = name;
    place->second->comment = comment;
    place->second->arm_only = true;
  }
  if (names_.file_of(parent).getId() == file_) extra_.push_back(place->second.get());
  return place->second.get();
}

/// Wraps the number of an arm in a struct of this name.
void ModelReader::wrap(Arm& out, Id parent, const std::string& name, SchemaField in) {
  Struct* const holder = struct_of_arm(parent, name, out.comment);
  out.member = out.label;
  if (holder->fields.empty())
    holder->fields.push_back({.name = out.label,
                              .label = out.label,
                              .type = out.type,
                              .initially = initial(in, out.type)});
  out.type.structure = holder;
  out.type.name = name;
}

}  // namespace leeway::generator
