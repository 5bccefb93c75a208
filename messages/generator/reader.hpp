#pragma once
// Reads a CodeGeneratorRequest of Cap'n Proto into a model.
#include <capnp/schema.capnp.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "messages/generator/annotations.capnp.h"
#include "messages/generator/model.hpp"
#include "messages/generator/schema_names.hpp"

namespace leeway::generator {

/// Requires that the request outlives the reader, and the reader the files that it returns.
class ModelReader {
 public:
  explicit ModelReader(capnp::schema::CodeGeneratorRequest::Reader request) : names_(request) {}
  /// Throws a kj::Exception that names an unsupported declaration.
  File file(capnp::schema::CodeGeneratorRequest::RequestedFile::Reader requested);

 private:
  using Id = SchemaNames::Id;
  using Node = SchemaNames::Node;
  using Annotations = SchemaNames::Annotations;
  using SchemaField = capnp::schema::Field::Reader;

  // ---- types ----
  Type type_of(capnp::schema::Type::Reader in, Annotations annotations);
  Type enum_type(Id node);
  Type struct_type(Id node, const std::string& name);
  Enum enum_of(Id node) const;

  // ---- structs ----
  /// `name` is the C++ name.
  Struct* struct_of(Id node, const std::string& name);
  /// True if the node has a hand-written C++ type, or no C++ type.
  bool without_struct(const Node& node) const;
  void fill(Struct& out, Id node, const std::string& name);
  void read_annotations(Struct& out, Annotations in);
  Field field(SchemaField in, const std::string& comment);
  std::string initial(SchemaField in, const Type& type) const;
  std::shared_ptr<Union> union_of(Id node, const std::string& name);
  Arm arm(Id parent, SchemaField in, const std::string& comment);
  Struct* struct_of_arm(Id parent, const std::string& name, const std::string& comment);
  void wrap(Arm& arm, Id parent, const std::string& name, SchemaField in);
  void place(Struct* in, std::set<const Struct*>& begun, std::set<const Struct*>& done,
             std::vector<Struct*>& out);

  SchemaNames names_;
  std::map<std::string, std::unique_ptr<Struct>> structs_;  // by name
  std::vector<Struct*> extra_;  // structs of the present file that only arms or fields refer to
  Id file_ = 0;
};

}  // namespace leeway::generator
