#include "messages/generator/schema_names.hpp"

#include "core/text.hpp"
#include "messages/generator/names.hpp"

namespace leeway::generator {
namespace {

constexpr std::string_view kAnnotations = "messages/generator/annotations.capnp:";

/// Without trailing newlines.
std::string comment_of(capnp::Text::Reader in) {
  std::string out = string_of(in);
  while (out.ends_with('\n')) out.pop_back();
  return out;
}

/// "ShardReport.wait" -> "ShardReport::Wait".
std::string scoped(const std::string& path) {
  std::string out;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    out += (begin > 0 ? "::" : "") + pascal_case(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

}  // namespace

std::string relative(std::string space) {
  space += "::";
  return space.starts_with("leeway::") ? space.substr(8) : space;
}

SchemaNames::SchemaNames(capnp::schema::CodeGeneratorRequest::Reader request) {
  for (const auto node : request.getNodes()) nodes_.emplace(node.getId(), node);
  for (const auto source : request.getSourceInfo()) sources_.emplace(source.getId(), source);
}

bool SchemaNames::is_called(Id annotation, const std::string& name) const {
  const auto node = nodes_.find(annotation);
  return node != nodes_.end() && string_of(node->second.getDisplayName()) == name;
}

std::optional<SchemaNames::Value> SchemaNames::annotation(Annotations in, const char* name) const {
  for (const auto one : in) {
    if (is_called(one.getId(), concat(kAnnotations, name))) return one.getValue();
  }
  return std::nullopt;
}

std::vector<std::string> SchemaNames::texts(Annotations in, const char* name) const {
  std::vector<std::string> out;
  for (const auto one : in) {
    if (is_called(one.getId(), concat(kAnnotations, name)))
      out.push_back(string_of(one.getValue().getText()));
  }
  return out;
}

std::string SchemaNames::text(Annotations in, const char* name) const {
  const auto value = annotation(in, name);
  return value ? string_of(value->getText()) : "";
}

std::string SchemaNames::comment(Id node) const {
  const auto source = sources_.find(node);
  return source == sources_.end() ? "" : comment_of(source->second.getDocComment());
}

std::string SchemaNames::comment(Id node, unsigned member) const {
  const auto source = sources_.find(node);
  if (source == sources_.end() || member >= source->second.getMembers().size()) return "";
  return comment_of(source->second.getMembers()[member].getDocComment());
}

SchemaNames::Node SchemaNames::file_of(Id id) const {
  Node node = nodes_.at(id);
  while (!node.isFile()) node = nodes_.at(node.getScopeId());
  return node;
}

std::string SchemaNames::path_in_file(Id id) const {
  const std::string name = string_of(nodes_.at(id).getDisplayName());
  return name.substr(name.find(':') + 1);
}

std::string SchemaNames::space_of(Id id) const {
  for (Node scope = nodes_.at(id);; scope = nodes_.at(scope.getScopeId())) {
    const std::string space = text(scope.getAnnotations(), "namespace");
    if (!space.empty() || scope.isFile()) return relative(space);
  }
}

std::string SchemaNames::name_of(Id id) const {
  const Node node = nodes_.at(id);
  const std::string named = text(node.getAnnotations(), "name");
  std::string path = path_in_file(id);
  const bool group = node.isStruct() && node.getStruct().getIsGroup();
  if (group || (node.isStruct() && flat(id))) path.erase(0, path.rfind('.') + 1);
  if (!named.empty()) path.replace(path.rfind('.') + 1, std::string::npos, named);
  // An enum stays inside its struct, also in a flat file.
  if (node.isEnum() && flat(id) && path.find('.') != std::string::npos)
    return name_of(node.getScopeId()) + "::" + path.substr(path.rfind('.') + 1);
  return space_of(id) + scoped(path);
}

std::string SchemaNames::schema_of(Id id) const {
  std::string out;
  for (const auto one : file_of(id).getAnnotations()) {
    if (is_called(one.getId(), "capnp/c++.capnp:namespace"))
      out = relative(string_of(one.getValue().getText()));
  }
  return out + scoped(path_in_file(id));
}

}  // namespace leeway::generator
