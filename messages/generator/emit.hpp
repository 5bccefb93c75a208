#pragma once
// The generated files of a schema file, as text.
#include <string>

#include "core/text.hpp"
#include "messages/generator/model.hpp"

namespace leeway::generator {

/// The plain structs and enums: X.hpp. Includes nothing of Cap'n Proto.
std::string emit_header(const File& file);
/// Declarations of write() and read(): X.wire.hpp, for generated and hand-written .cpp files.
std::string emit_wire_header(const File& file);
/// Their definitions, names of enums, encode() and decode(): X.cpp.
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
  /// Lines of a comment, each behind `prefix`.
  void comment(const std::string& prefix, const std::string& comment);
  /// What follows is in this namespace; "" for none.
  void enter(const std::string& space);
  std::string finish() &&;

 private:
  std::string text_, space_;
};

/// All structs, those inside others before the ones that hold them.
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
/// `name` as code in the namespace `space` writes it.
std::string within(const std::string& space, const std::string& name);
/// First lines of a generated file.
void begin_file(Code& code, const File& file, bool header);

}  // namespace leeway::generator
