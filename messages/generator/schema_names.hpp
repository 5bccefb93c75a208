#pragma once
// SchemaNames: annotations, comments and C++ names of the nodes of a CodeGeneratorRequest.
#include <capnp/schema.capnp.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace leeway::generator {

inline std::string string_of(capnp::Text::Reader in) {
  return {in.begin(), in.size()};
}

/// "leeway::msg" -> "msg::", "leeway" -> "".
std::string relative(std::string space);

/// Requires that the request outlives this object.
class SchemaNames {
 public:
  using Id = std::uint64_t;
  using Node = capnp::schema::Node::Reader;
  using Annotations = capnp::List<capnp::schema::Annotation>::Reader;
  using Value = capnp::schema::Value::Reader;

  explicit SchemaNames(capnp::schema::CodeGeneratorRequest::Reader request);

  Node node(Id id) const { return nodes_.at(id); }
  Node file_of(Id id) const;

  /// An annotation of annotations.capnp, by name.
  std::optional<Value> annotation(Annotations in, const char* name) const;
  std::vector<std::string> texts(Annotations in, const char* name) const;
  std::string text(Annotations in, const char* name) const;
  bool has(Annotations in, const char* name) const { return annotation(in, name).has_value(); }

  std::string comment(Id node) const;
  std::string comment(Id node, unsigned member) const;

  /// Namespace of the C++ structs: "msg::".
  std::string space_of(Id id) const;
  /// "msg::ShardReport::Wait".
  std::string name_of(Id id) const;
  /// Cap'n Proto's class: "schema::ShardReport::Wait".
  std::string schema_of(Id id) const;
  /// True if nested structs become siblings of the outer struct.
  bool flat(Id id) const { return has(file_of(id).getAnnotations(), "flat"); }

 private:
  bool is_called(Id annotation, const std::string& name) const;
  std::string path_in_file(Id id) const;

  std::map<Id, Node> nodes_;
  std::map<Id, capnp::schema::Node::SourceInfo::Reader> sources_;
};

}  // namespace leeway::generator
