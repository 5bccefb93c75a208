// Emits helpers for tests: random values, and references to all fields of a struct.
#include "messages/generator/emit.hpp"

namespace leeway::generator {
namespace {

void include_imports(Code& code, const File& file, const char* prefix) {
  for (const std::string& one : file.imports) {
    const std::size_t slash = one.rfind('/') + 1;
    code.line("#include \"tests/", one.substr(0, slash), prefix, stem_of(one.substr(slash)),
              ".hpp\"");
  }
}

class ArbitraryEmitter {
 public:
  explicit ArbitraryEmitter(const File& file) : file_(file) {}

  std::string emit() {
    const std::string folder = file_.path.substr(0, file_.path.rfind('/'));
    begin_file(code_, file_, true);
    code_.line("// Random values within the limits, for use inside a property.");
    code_.line("#include \"", file_.stem, ".hpp\"");
    code_.line("#include \"tests/", folder, "/any_support.hpp\"");
    include_imports(code_, file_, "any_");
    code_.enter("leeway::test");
    code_.line();
    for_each_struct(file_, [&](const Struct& in) {
      if (in.recursive || in.checked) declare(in);
    });
    for_each_struct(file_, [&](const Struct& in) { structure(in); });
    return std::move(code_).finish();
  }

 private:
  void declare(const Struct& in) {
    if (in.recursive) code_.line("inline void any(", in.name, "& out);");
    if (in.checked) {
      code_.line("/// Hand-written: makes contradicting fields consistent.");
      code_.line("void make_valid(", in.name, "& message);");
    }
  }

  void structure(const Struct& in) {
    for (const Field& field : in.fields)
      if (field.type.choice) choice(*field.type.choice);
    if (in.only_choice) return;
    const bool empty = in.fields.empty();
    code_.line("inline void any(", in.name, empty ? "&) {" : "& out) {");
    for (const Field& field : in.fields)
      if (field.constant.empty()) member(field);
    for (const std::string& blob : in.blob_members) code_.line("  any(out.", blob, ");");
    if (!in.all_blobs.empty())
      code_.line("  any_list(out.", in.all_blobs, ", [](auto& item) { any(item); });");
    if (in.checked) code_.line("  make_valid(out);");
    code_.line('}');
  }

  void member(const Field& field) {
    const std::string out = "out." + field.name;
    if (!field.list) return code_.line("  ", value(field.type, field.limits, out));
    Type type = field.type;
    type.strong &= !field.whole_list;
    const std::string items = field.whole_list ? "items" : out;
    if (field.whole_list) code_.line("  std::vector<std::int64_t> items;");
    code_.line("  any_list(", items, ", [](auto& item) { ", value(type, field.limits, "item"), " }",
               field.list_limit.empty() ? "" : ", ", field.list_limit, ");");
    if (field.ascending) code_.line("  make_ascending(", out, ");");
    if (field.whole_list) code_.line("  ", out, " = ", field.type.name, "(items);");
  }

  static std::string value(const Type& type, const Limits& limits, const std::string& out) {
    if (type.kind == Kind::enumeration) return concat("any_enum(", out, ", ", type.last, ");");
    if (limits.count) return concat("any_count(", out, ");");
    if (!limits.least.empty() && !limits.most.empty())
      return concat("any_between(", out, ", ", limits.least, ", ", limits.most, ");");
    if (!limits.least.empty()) return concat("any_at_least(", out, ", ", limits.least, ");");
    if (!limits.below.empty()) return concat("any_below(", out, ", ", limits.below, ");");
    return concat("any(", out, ");");
  }

  void choice(const Union& in) {
    if (in.optional) {
      code_.line("inline void any(", in.name, "& out) {");
      code_.line("  out.reset();");
      code_.line("  if (any_index(2) == 1) any(out.emplace());\n}");
      return;
    }
    std::size_t arms = 0;
    code_.line("/// A random value of the arm with this index.");
    code_.line("inline void any(", in.name, "& out, std::size_t arm) {");
    code_.line("  switch (arm) {");
    for (const Arm& arm : in.arms) {
      if (arm.absent) continue;
      const std::string out = concat("out.emplace<", arms, ">()");
      code_.line("    case ", arms++, ':');
      code_.line("      return ",
                 arm.type.structure ? concat("any(", out, ");") : value(arm.type, {}, out));
    }
    code_.line("  }\n}");
    code_.line("inline void any(", in.name, "& out) {");
    code_.line("  any(out, any_index(", arms, "));\n}");
  }

  const File& file_;
  Code code_;
};

}  // namespace

std::string emit_arbitrary(const File& file) {
  return ArbitraryEmitter(file).emit();
}

std::string emit_fields(const File& file) {
  Code code;
  begin_file(code, file, true);
  code.line("// References to all fields of a struct, for generic tests.");
  code.line("#include <tuple>\n");
  code.line("#include \"", file.stem, ".hpp\"");
  include_imports(code, file, "fields_");
  code.enter("leeway::test");
  code.line();
  for_each_struct(file, [&](const Struct& in) {
    if (in.only_choice) return;
    std::vector<std::string> members;
    for (const Field& field : in.fields)
      if (field.constant.empty()) members.push_back("in." + field.name);
    for (const std::string& blob : in.blob_members) members.push_back("in." + blob);
    if (!in.all_blobs.empty()) members.push_back("in." + in.all_blobs);
    code.line("inline auto fields(", in.name, members.empty() ? "&) {" : "& in) {");
    code.line("  return std::tie(", join(members, ", "), ");\n}");
  });
  return std::move(code).finish();
}

}  // namespace leeway::generator
