// write() and read() between plain structs and Cap'n Proto, names of enums, encode() and decode().
#include "messages/generator/emit.hpp"

namespace leeway::generator {
namespace {

std::string writer_of(const std::string& schema, const std::string& name, bool blobs) {
  return concat("void write(", schema, "::Builder out, const ", name, "& in",
                blobs ? ", Blobs& blobs)" : ")");
}
std::string reader_of(const std::string& schema, const std::string& name, bool blobs) {
  return concat("void read(", name, "& out, ", schema, "::Reader in",
                blobs ? ", ConstBlobs blobs)" : ")");
}

/// Visits the unions that are members of `in`, or `in` itself.
template <class Visit>
void for_each_union(const Struct& in, Visit visit) {
  for (const Field& field : in.fields)
    if (field.type.choice) visit(*field.type.choice);
}

class SourceEmitter {
 public:
  explicit SourceEmitter(const File& file) : file_(file) {}

  std::string emit() {
    begin_file(code_, file_, false);
    code_.line("#include \"", file_.stem, ".wire.hpp\"");
    for (const Enum& one : file_.enums) names(one);
    for_each_struct(file_, [&](const Struct& in) {
      for (const Enum& one : in.enums) names(one);
    });
    code_.enter("leeway::wire");
    for_each_struct(file_, [&](const Struct& in) {
      if (in.arm_only) return;
      for_each_union(in, [&](const Union& choice) { union_functions(choice, in); });
      if (!in.only_choice) functions(in);
    });
    for_each_struct(file_, [&](const Struct& in) { print(in); });
    for (const Struct* one : file_.structs)
      for_each_union(*one, [&](const Union& choice) { names(choice, *one); });
    for_each_struct(file_, [&](const Struct& in) {
      for_each_union(in, [&](const Union& choice) { define(choice); });
    });
    for (const Struct* one : file_.structs)
      if (!one->decode.empty()) root(*one);
    return std::move(code_).finish();
  }

 private:
  // ---- names ----

  void names(const Enum& in) {
    const std::string space = namespace_of(in.name), name = within(space, in.name);
    code_.enter(space);
    code_.line("\nstd::string_view name_of(", name, " value) {");
    code_.line("  switch (value) {");
    for (std::size_t i = 0; i < in.values.size(); ++i) {
      code_.line("    case ", name, "::", in.values[i], ':');
      code_.line("      return \"", in.words[i], "\";");
    }
    code_.line("  }\n  return \"?\";\n}");
  }

  void names(const Union& in, const Struct& holder) {
    if (holder.decode.empty() && !(file_.visitable && holder.only_choice)) return;
    const std::string space = namespace_of(in.name), name = within(space, in.name);
    code_.enter(space);
    code_.line("\nconstexpr std::string_view k", name, "Names[] = {");
    for (const Arm& arm : in.arms)
      if (!arm.absent) code_.line("    \"", arm.words, "\",");
    code_.line("};");
    code_.line("std::string_view name_of(const ", name, "& value) {");
    code_.line("  return k", name, "Names[value.index()];\n}");
  }

  /// The members that the header only declares.
  void define(const Union& in) {
    if (!in.is_declared()) return;
    const std::string space = namespace_of(in.name), scope = within(space, in.name);
    const std::string name = unqualified(in.name);
    code_.enter(space);
    const auto defaulted = [&](const std::string& result, const auto&... rest) {
      code_.line(result, scope, "::", rest..., " = default;");
    };
    const std::string assigns = scope + "& ";
    code_.line();
    defaulted("", name, "()");
    int index = 0;
    for (const Arm& arm : in.arms)
      if (!arm.absent)
        code_.line(scope, "::", name, '(', within(space, arm.type.name),
                   " arm) : variant(std::in_place_index<", index++, ">, std::move(arm)) {}");
    defaulted("", name, "(const ", name, "&)");
    defaulted("", name, '(', name, "&&) noexcept");
    defaulted(assigns, "operator=(const ", name, "&)");
    defaulted(assigns, "operator=(", name, "&&) noexcept");
    defaulted("", '~', name, "()");
    code_.line("bool ", scope, "::operator==(const ", name, "& other) const {");
    code_.line(
        "  return static_cast<const variant&>(*this) == static_cast<const variant&>(other);");
    code_.line("}");
  }

  /// "stage 1, shard 2", for errors.
  void print(const Struct& in) {
    if (!in.ordered) return;
    const std::string space = namespace_of(in.name);
    code_.enter(space);
    code_.line("\nstd::ostream& operator<<(std::ostream& out, const ", within(space, in.name),
               "& in) {");
    std::string text = "  return out";
    for (const Field& field : in.fields)
      text += concat(" << \"", &field == &in.fields.front() ? "" : ", ", field.label, " \" << in.",
                     field.name);
    code_.line(text, ";\n}");
  }

  // ---- structs ----

  void functions(const Struct& in) {
    const bool unused = in.fields.empty();
    code_.line();
    code_.line(unused ? concat("void write(", in.schema, "::Builder, const ", in.name, "&) {}")
                      : writer_of(in.schema, in.name, in.blobs) + " {");
    if (!unused) {
      for (const Field& field : in.fields) write(field);
      for (const std::string& blob : in.blob_members)
        code_.line("  blobs.push_back(in.", blob, ");");
      if (!in.all_blobs.empty()) code_.line("  blobs = in.", in.all_blobs, ';');
      code_.line('}');
    }
    code_.line(unused ? concat("void read(", in.name, "&, ", in.schema, "::Reader) {}")
                      : reader_of(in.schema, in.name, in.blobs) + " {");
    if (unused) return;
    if (!in.blob_members.empty())
      code_.line("  require_blobs(blobs, ", in.blob_members.size(), ");");
    for (const Field& field : in.fields) read(field, in);
    for (std::size_t i = 0; i < in.blob_members.size(); ++i)
      code_.line("  out.", in.blob_members[i], " = blobs[", i, "];");
    if (!in.all_blobs.empty())
      code_.line("  out.", in.all_blobs, ".assign(blobs.begin(), blobs.end());");
    if (in.checked) code_.line("  check(out);");
    code_.line('}');
  }

  static std::string blobs_of(const Type& type) { return type.blobs ? ", blobs" : ""; }

  /// Converts the value `in` of a type without fields to Cap'n Proto's type.
  static std::string plain(const Type& type, const std::string& in) {
    if (type.kind == Kind::enumeration) return concat("static_cast<", type.schema, ">(", in, ')');
    if (type.strong) return concat("plain(", in, ')');
    if (type.kind == Kind::text) return concat("text_of(", in, ')');
    return in;
  }

  void write(const Field& field) {
    const std::string in = "in." + field.name;
    if (!field.constant.empty())
      return code_.line("  out.set", field.accessor, '(', field.constant, ");");
    if (field.list) return write_list(field, in);
    if (field.type.kind == Kind::choice)
      return code_.line("  write(",
                        field.accessor.empty() ? "out" : "out.init" + field.accessor + "()", ", ",
                        in, blobs_of(field.type), ");");
    if (field.type.kind == Kind::structure)
      return code_.line("  write(out.init", field.accessor, "(), ", in, blobs_of(field.type), ");");
    code_.line("  out.set", field.accessor, '(', plain(field.type, in), ");");
  }

  void write_list(const Field& field, const std::string& in) {
    code_.line("  auto ", field.name, " = out.init", field.accessor, "(count_of(", in, "));");
    const bool structure = field.type.kind == Kind::structure;
    const std::string item = in + "[i]";
    code_.line("  for (unsigned i = 0; i < ", field.name, ".size(); ++i)");
    if (structure)
      code_.line("    write(", field.name, "[i], ", item, blobs_of(field.type), ");");
    else
      code_.line("    ", field.name, ".set(i, ", field.whole_list ? item : plain(field.type, item),
                 ");");
  }

  /// Reads the value `from` of a type without fields into `out`.
  void read_value(const std::string& indent, const Type& type, const Limits& limits,
                  const std::string& out, const std::string& from, const std::string& label) {
    const std::string name = concat('"', label, '"');
    if (type.kind == Kind::enumeration)
      code_.line(indent, "read_enum(", out, ", ", from, ", ", type.last, ", ", name, ");");
    else if (type.strong)
      code_.line(indent, "read(", out, ", ", from, ", ", name, ");");
    else if (type.kind == Kind::text)
      code_.line(indent, "read_text(", out, ", ", from, ");");
    else if (limits.count)
      code_.line(indent, "read_count(", out, ", ", from, ", ", name, ");");
    else
      code_.line(indent, out, " = ", from, ';');
    check(indent, type, limits, out, name);
  }
  void check(const std::string& indent, const Type& type, const Limits& limits,
             const std::string& out, const std::string& name) {
    const std::string value = type.strong ? concat("plain(", out, ')') : out;
    const auto require = [&](const auto&... words) {
      code_.line(indent, "require_", words..., ", ", name, ");");
    };
    if (limits.finite) require("finite(", value);
    if (!limits.least.empty() && !limits.most.empty()) {
      require("between(", value, ", ", limits.least, ", ", limits.most);
    } else {
      if (!limits.least.empty()) require("at_least(", value, ", ", limits.least);
      if (!limits.most.empty()) require("at_most(", value, ", ", limits.most);
    }
    if (!limits.above.empty()) require("above(", value, ", ", limits.above);
    if (!limits.below.empty()) require("below(", value, ", ", limits.below);
  }

  void read(const Field& field, const Struct& holder) {
    if (!field.constant.empty()) return;
    const std::string out = "out." + field.name, from = "in.get" + field.accessor + "()";
    if (field.list) return read_list(field, out, from);
    if (field.type.kind == Kind::choice) {
      const bool labelled = !field.accessor.empty() && holder.decode.empty();
      const std::string call = concat("read(", out, ", ", field.accessor.empty() ? "in" : from,
                                      blobs_of(field.type), ");");
      return code_.line("  ", labelled ? in_field(field.label, call) : call);
    }
    if (field.type.kind == Kind::structure)
      return code_.line("  ", in_field(field.label, concat("read(", out, ", ", from,
                                                           blobs_of(field.type), ");")));
    read_value("  ", field.type, field.limits, out, from, field.label);
  }
  static std::string in_field(const std::string& label, const std::string& call) {
    return concat("in_field(\"", label, "\", [&] { ", call, " });");
  }

  void read_list(const Field& field, const std::string& out, const std::string& from) {
    const std::string name = concat('"', field.label, '"');
    if (!field.list_limit.empty())
      code_.line("  require_items(", from, ", ", field.list_limit, ", ", name, ");");
    const std::string items = field.whole_list ? "items" : out;
    const std::string number = "std::int64_t";
    if (field.whole_list) code_.line("  std::vector<", number, "> items;");
    code_.line("  read_list(", items, ", ", from, ", ", name, ", [&](auto& item, auto one) {");
    if (field.type.kind == Kind::structure) {
      code_.line("    read(item, one", blobs_of(field.type), ");");
    } else {
      Type type = field.type;
      if (field.whole_list) type.strong = false;
      read_value("    ", type, field.limits, "item", "one", "");
    }
    code_.line("  });");
    if (field.ascending) code_.line("  require_ascending(", out, ", ", name, ");");
    if (field.whole_list) code_.line("  ", out, " = ", field.type.name, "(items);");
  }

  // ---- unions ----

  void union_functions(const Union& in, const Struct& holder) {
    const bool body = !holder.decode.empty();
    code_.line('\n', writer_of(in.schema, in.name, in.blobs), " {");
    if (in.optional) {
      for (const Arm& arm : in.arms)
        code_.line(arm.absent ? "  if (!in) return " : "  ", write_arm(arm, "*in"));
      code_.line('}');
    } else {
      code_.line("  switch (in.index()) {");
      std::size_t index = 0;
      for (const Arm& arm : in.arms) {
        if (arm.absent) continue;
        code_.line("    case ", index, ':');
        code_.line("      return ", write_arm(arm, concat("std::get<", index++, ">(in)")));
      }
      code_.line("  }\n}");
    }
    code_.line(reader_of(in.schema, in.name, in.blobs), " {");
    code_.line("  switch (in.which()) {");
    std::size_t index = 0;
    for (const Arm& arm : in.arms) {
      code_.line("    case ", in.schema, "::", arm.enumerator, ':');
      if (in.optional && arm.absent)
        code_.line("      return out.reset();");
      else if (arm.absent)
        code_.line("      break;");
      else
        read_arm(arm, in.optional ? "out.emplace()" : concat("out.emplace<", index++, ">()"), body);
    }
    code_.line("  }\n  throw_unknown(\"", body ? "body" : "", "\", in.which());\n}");
  }

  static std::string write_arm(const Arm& arm, const std::string& value) {
    if (arm.empty) return concat("out.set", arm.accessor, "();");
    if (arm.type.kind == Kind::structure)
      return concat("write(out.init", arm.accessor, "(), ", value, blobs_of(arm.type), ");");
    const std::string member = arm.member.empty() ? "" : '.' + arm.member;
    return concat("out.set", arm.accessor, '(', plain(arm.type, value + member), ");");
  }

  /// Messages without tensors have no blobs.
  void read_arm(const Arm& arm, const std::string& out, bool body) {
    if (body && !arm.type.blobs) code_.line("      require_blobs(blobs, 0);");
    const std::string from = "in.get" + arm.accessor + "()";
    if (arm.empty) {
      code_.line("      ", out, ";\n      return;");
    } else if (arm.type.kind == Kind::structure) {
      const std::string call = concat("read(", out, ", ", from, blobs_of(arm.type), ");");
      code_.line("      return ", body ? call : in_field(arm.label, call));
    } else {
      const std::string member = arm.member.empty() ? "" : '.' + arm.member;
      read_value("      ", arm.type, {}, out + member, from, arm.label);
      code_.line("      return;");
    }
  }

  // ---- roots ----

  void root(const Struct& in) {
    const std::string space = namespace_of(in.name), name = within(space, in.name);
    code_.enter(space);
    if (in.words) return root_of_words(in, name);
    const std::string blobs = in.blobs ? ", auto& blobs" : "", pass = in.blobs ? ", blobs" : "";
    code_.line("\nMessage encode(const ", name, "& in) {");
    code_.line("  return wire::sealed<", in.schema, ">([&](auto out", blobs, ") {");
    code_.line("    wire::write(out, in", pass, ");\n  });\n}");
    code_.line("Expected<", name, "> ", in.decode, "(const Message& message) {");
    code_.line("  return wire::opened<", in.schema, ", ", name, ">(");
    code_.line("      message, ", kinds_of(in), ", [](auto& out, auto in",
               in.blobs ? ", auto blobs" : "", ") {");
    code_.line("        wire::read(out, in", pass, ");\n      });\n}");
  }
  void root_of_words(const Struct& in, const std::string& name) {
    code_.line("\nstd::vector<std::uint64_t> encode(const ", name, "& in) {");
    code_.line("  return wire::words_of<", in.schema,
               ">([&](auto out) { wire::write(out, in); });");
    code_.line("}\nExpected<", name, "> ", in.decode, "(std::span<const std::uint64_t> words) {");
    code_.line("  return wire::read_words<", in.schema, ", ", name, ">(");
    code_.line("      words, \"", in.kind,
               "\", [](auto& out, auto in) { wire::read(out, in); });\n}");
  }
  /// The names of messages in errors: one per arm of the body, or one for all.
  static std::string kinds_of(const Struct& in) {
    for (const Field& field : in.fields) {
      if (!field.type.choice) continue;
      const std::string& name = field.type.name;
      const std::size_t last = name.rfind(':') + 1;
      return concat(name.substr(0, last), 'k', name.substr(last), "Names");
    }
    return concat('"', in.kind, '"');
  }

  const File& file_;
  Code code_;
};

}  // namespace

std::string emit_wire_header(const File& file) {
  Code code;
  begin_file(code, file, true);
  code.line(
      "// Conversions between the plain structs and Cap'n Proto. Only .cpp files include it.");
  code.line("#include \"", file.path, ".h\"");
  code.line("#include \"", file.stem, ".hpp\"");
  code.line("#include \"messages/generator/wire.hpp\"");
  for (const std::string& one : file.supports) code.line("#include \"", one, '"');
  for (const std::string& one : file.imports) code.line("#include \"", stem_of(one), ".wire.hpp\"");
  code.enter("leeway::wire");
  code.line();
  for_each_struct(file, [&](const Struct& in) {
    if (in.arm_only) return;
    if (!in.only_choice) {
      code.line(writer_of(in.schema, in.name, in.blobs), ';');
      code.line(reader_of(in.schema, in.name, in.blobs), ';');
    }
    for_each_union(in, [&](const Union& choice) {
      code.line(writer_of(choice.schema, choice.name, choice.blobs), ';');
      code.line(reader_of(choice.schema, choice.name, choice.blobs), ';');
    });
  });
  return std::move(code).finish();
}

std::string emit_source(const File& file) {
  return SourceEmitter(file).emit();
}

}  // namespace leeway::generator
