#pragma once
// Emits the generated files of a schema file as text.
#include <string>

#include "core/text.hpp"
#include "messages/generator/model.hpp"

namespace leeway::generator {

/// The plain structs and enums: X.hpp. Includes nothing of Cap'n Proto.
std::string emit_header(const File& file);
/// Declarations of write() and read(): X.wire.hpp, for generated and hand-written .cpp files.
std::string emit_wire_header(const File& file);
/// Definitions of write() and read(), names of enums, encode() and decode(): X.cpp.
std::string emit_source(const File& file);
/// Random values within the limits, for property tests: any_X.hpp.
std::string emit_arbitrary(const File& file);
/// fields(): references to all members of a struct, for tests: fields_X.hpp.
std::string emit_fields(const File& file);

/// C++ code, line by line.
class Code {
 public:
  template <class... Values>
  void line(const Values&... values) {
    text_ += concat(values...) + '\n';
  }
  void line() { text_ += '\n'; }
  /// Adds a comment; each line begins with `prefix`.
  void comment(const std::string& prefix, const std::string& comment);
  /// Leaves the current namespace and enters `space`; "" enters none.
  void enter(const std::string& space);
  std::string finish() &&;

 private:
  std::string text_, space_;
};

/// Visits all structs, nested structs before the outer ones.
template <class Visit>
void for_each_struct(const File& file, Visit visit) {
  for (const Struct* one : file.structs) {
    for (const Struct* inner : one->inner) visit(*inner);
    visit(*one);
  }
}

/// "messages/common.capnp" -> "messages/common".
std::string stem_of(const std::string& schema_path);
/// "msg::Push" -> "leeway::msg"; "Envelope" -> "leeway".
std::string namespace_of(const std::string& name);
/// The shortest form of `name` in the namespace `space`.
std::string within(const std::string& space, const std::string& name);
/// "msg::Push" -> "Push".
std::string unqualified(const std::string& name);
/// Adds the first lines of a generated file.
void begin_file(Code& code, const File& file, bool header);

}  // namespace leeway::generator
