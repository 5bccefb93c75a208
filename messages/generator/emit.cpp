#include "messages/generator/emit.hpp"

namespace leeway::generator {

void Code::comment(const std::string& prefix, const std::string& comment) {
  for (std::size_t begin = 0; begin < comment.size();) {
    const std::size_t end = std::min(comment.find('\n', begin), comment.size());
    std::string text = concat(prefix, comment.substr(begin, end - begin));
    text.resize(text.find_last_not_of(' ') + 1);
    line(text);
    begin = end + 1;
  }
}

void Code::enter(const std::string& space) {
  if (space == space_) return;
  if (!space_.empty()) line("\n}  // namespace ", space_);
  if (!space.empty()) line("\nnamespace ", space, " {");
  space_ = space;
}

std::string Code::finish() && {
  enter("");
  return std::move(text_);
}

std::string stem_of(const std::string& schema_path) {
  return schema_path.substr(0, schema_path.rfind('.'));
}

std::string namespace_of(const std::string& name) {
  // The outer structs of a name are PascalCase; namespaces are not.
  std::string out = "leeway";
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = name.find("::", begin);
    if (end == std::string::npos || (name[begin] >= 'A' && name[begin] <= 'Z')) break;
    out += "::" + name.substr(begin, end - begin);
    begin = end + 2;
  }
  return out;
}

std::string within(const std::string& space, const std::string& name) {
  const std::string prefix = space == "leeway" ? "" : space.substr(8) + "::";
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

std::string unqualified(const std::string& name) {
  return name.substr(name.rfind(':') + 1);  // npos + 1 is 0
}

void begin_file(Code& code, const File& file, bool header) {
  if (header) code.line("#pragma once");
  code.line("// Generated from ", file.path, "; edit that file instead.");
}

}  // namespace leeway::generator
