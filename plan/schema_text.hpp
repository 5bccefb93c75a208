#pragma once
// Converts any Cap'n Proto struct to and from a tree of text values, by its schema. Only plan/*.cpp
// includes it.
//
// Names are snake_case. A group is a table. An arm of a struct's unnamed union is a key like the
// other fields; at most one arm is given. A struct that is only a union may be the bare name of an
// arm, whose fields then keep their defaults.
#include <capnp/dynamic.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/expected.hpp"
#include "plan/text_tree.hpp"

namespace leeway {

/// `micro_batches` of microBatches.
std::string name_of(capnp::StructSchema::Field field);
std::string name_of(capnp::EnumSchema::Enumerant value);

/// The tree of a value: every field of a struct, in the order of the schema, without nulls. Numbers
/// that JSON lacks become the texts "inf", "-inf" and "nan".
nlohmann::ordered_json to_tree(const capnp::DynamicValue::Reader& value);

/// Sets the fields that `node` contains. An error names `source`, the line, the key, the value
/// found and the remedy, and leaves `out` partly filled.
Status fill(capnp::DynamicStruct::Builder out, const TextNode& node, const std::string& source);

}  // namespace leeway
