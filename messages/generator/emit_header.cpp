// The plain structs and enums of a schema file.
#include <algorithm>
#include <set>

#include "messages/generator/emit.hpp"

namespace leeway::generator {
namespace {

constexpr std::size_t kColumns = 100;

class HeaderEmitter {
 public:
  explicit HeaderEmitter(const File& file) : file_(file) {}

  std::string emit() {
    begin_file(code_, file_, true);
    if (!file_.comment.empty()) code_.line("//");
    code_.comment("// ", file_.comment);
    includes();
    for (const Enum& one : file_.enums) {
      enter(one.name);
      declare(one, "");
      declare_name_of(one.name);
    }
    for (const Struct* one : file_.structs)
      if (one->recursive) {
        enter(one->name);
        code_.line("struct ", within(space_, one->name), ';');
      }
    for (const Struct* one : file_.structs) top(*one);
    return std::move(code_).finish();
  }

 private:
  void includes() {
    for (const char* one : {"compare", "cstdint", "optional", "ostream", "span", "string",
                            "string_view", "type_traits", "variant", "vector"})
      code_.line("#include <", one, '>');
    code_.line();
    for (const std::string& one : file_.includes) code_.line("#include \"", one, '"');
    for (const std::string& one : file_.imports) code_.line("#include \"", stem_of(one), ".hpp\"");
  }

  void enter(const std::string& name) {
    space_ = namespace_of(name);
    code_.enter(space_);
    code_.line();
  }

  void declare(const Enum& in, const std::string& indent) {
    std::string values = join(in.values, ", ");
    code_.line(indent, "enum class ", unqualified(in.name), " : std::uint8_t { ", values, " };");
  }
  void declare_name_of(const std::string& type) {
    code_.line("std::string_view name_of(", within(space_, type), " value);");
  }

  std::string variant_of(const Union& in) const {
    std::string out;
    for (const Arm& arm : in.arms)
      if (!arm.absent) out += (out.empty() ? "" : ", ") + within(space_, arm.type.name);
    return (in.optional ? "std::optional<" : "std::variant<") + out + '>';
  }
  /// Breaks a long list of arms into lines.
  void declare_variant(const std::string& before, const Union& in, const std::string& after) {
    std::string text = before + variant_of(in) + after;
    while (text.size() > kColumns) {
      const std::size_t end = text.rfind(", ", kColumns);
      if (end == std::string::npos) break;
      code_.line(text.substr(0, end + 1));
      text = "    " + text.substr(end + 2);
    }
    code_.line(text);
  }
  /// Declares the union of a field.
  void alias(const Field& field, bool body) {
    enter(field.type.name);
    const std::string name = within(space_, field.type.name);
    code_.comment("/// ", field.comment);
    declare(*field.type.choice, name, {}, "");
    if (!body) return;
    code_.line("/// The name in words, for errors and logs.");
    declare_name_of("const " + name + '&');
  }
  void declare(const Union& in, const std::string& name, const std::vector<std::string>& methods,
               const std::string& indent) {
    if (!in.is_declared()) return declare_variant(concat(indent, "using ", name, " = "), in, ";");
    declare_variant(concat(indent, "struct ", name, " : "), in, " {");
    const auto member = [&](const auto&... text) { code_.line(indent, "  ", text...); };
    member(name, "();");
    for (const Arm& arm : in.arms)
      if (!arm.absent) member(name, '(', within(space_, arm.type.name), " arm);");
    member(name, "(const ", name, "&);");
    member(name, '(', name, "&&) noexcept;");
    member(name, "& operator=(const ", name, "&);");
    member(name, "& operator=(", name, "&&) noexcept;");
    member('~', name, "();");
    member("bool operator==(const ", name, "& other) const;");
    for (const std::string& method : methods) member(method);
    code_.line(indent, "};");
  }

  void top(const Struct& in) {
    if (!in.only_choice)
      for (const Field& field : in.fields)
        if (field.type.choice) alias(field, !in.decode.empty());
    enter(in.name);
    structure(in, "");
    complete_.insert(&in);
    if (in.recursive) {
      for (const Struct* one : not_comparable_) compare(*one);
      not_comparable_.clear();
    }
    functions(in);
    for (const Struct* inner : in.inner) functions(*inner);
  }

  void structure(const Struct& in, const std::string& indent) {
    const std::string name = unqualified(in.name);
    code_.comment(indent + "/// ", in.comment);
    if (in.only_choice) return declare(*in.fields.front().type.choice, name, in.methods, indent);
    code_.line(indent, "struct ", name, " {");
    for (const Enum& one : in.enums) declare(one, indent + "  ");
    for (const Struct* inner : in.inner) structure(*inner, indent + "  ");
    for (const Field& field : in.fields) member(field, "leeway::" + in.name, indent + "  ");
    for (const std::string& blob : in.blob_members) code_.line(indent, "  Blob ", blob, ';');
    if (!in.all_blobs.empty()) code_.line(indent, "  std::vector<Blob> ", in.all_blobs, ';');
    for (const std::string& method : in.methods) code_.line(indent, "  ", method);
    if (in.ordered) code_.line(indent, "  auto operator<=>(const ", name, "&) const = default;");
    const bool later = holds_incomplete(in);
    if (later) not_comparable_.push_back(&in);
    code_.line(indent, "  bool operator==(const ", name, "&) const", later ? ";" : " = default;");
    code_.line(indent, "};");
  }

  /// The initializer of a union, unless its first arm is a struct or 0.
  static std::string first_value(const Union& in) {
    const Arm& first = in.arms.front();
    const bool zero = first.initially.empty() || first.initially == "0";
    return first.type.structure || zero ? ""
                                        : concat(" = ", first.type.name, '{', first.initially, '}');
  }

  void member(const Field& field, const std::string& scope, const std::string& indent) {
    if (!field.constant.empty()) return;
    std::string type = within(space_, within(scope, field.type.name));
    if (field.list && !field.whole_list) type = "std::vector<" + type + '>';
    std::string text = concat(indent, type, ' ', field.name);
    if (field.type.choice && !field.type.choice->optional)
      text += first_value(*field.type.choice);
    else if (!field.initially.empty())
      text += field.type.strong ? '{' + field.initially + '}'
                                : " = " + within(space_, within(scope, field.initially));
    text += ';';
    // The comment of a union is at its alias.
    const std::string comment = field.type.choice ? "" : std::string(trimmed(field.comment));
    if (comment.find('\n') != std::string::npos || text.size() + 4 + comment.size() > kColumns)
      code_.comment(indent + "/// ", comment);
    else if (!comment.empty())
      text += "  // " + comment;
    code_.line(text);
  }

  /// A list of an incomplete struct cannot be compared where it is declared.
  bool holds_incomplete(const Struct& in) const {
    for (const Field& field : in.fields)
      if (field.list && field.type.structure && field.type.structure->recursive &&
          std::ranges::count(file_.structs, field.type.structure) > 0 &&
          !complete_.contains(field.type.structure))
        return true;  // structs of imported files are complete
    return false;
  }

  /// Defines operator== outside of the struct. Clang 14 crashes on `= default` there.
  void compare(const Struct& in) {
    std::vector<std::string> equal;
    const auto add = [&](const std::string& name) {
      equal.push_back(concat(name, " == other.", name));
    };
    for (const Field& field : in.fields)
      if (field.constant.empty()) add(field.name);
    for (const std::string& blob : in.blob_members) add(blob);
    if (!in.all_blobs.empty()) add(in.all_blobs);
    const std::string name = within(space_, in.name);
    code_.line("inline bool ", name, "::operator==(const ", name, "& other) const {");
    code_.line("  return ", join(equal, " && "), ';');
    code_.line("}");
  }

  void visit_fields(const Struct& in, const std::string& name) {
    code_.line("/// Calls f(name, value) for each member", in.only_choice ? " of the arm." : ".");
    code_.line("template <class In, class F>");
    code_.line("  requires std::is_same_v<std::remove_const_t<In>, ", name, '>');
    if (in.fields.empty()) return code_.line("void for_each_field(In&, F&&) {}");
    code_.line("void for_each_field(In& in, F&& f) {");
    for (const Field& field : in.fields) {
      if (in.only_choice)
        code_.line("  std::visit([&](auto& one) { for_each_field(one, f); }, in);");
      else if (field.constant.empty())
        code_.line("  f(\"", field.label, "\", in.", field.name, ");");
    }
    code_.line("}");
  }

  void functions(const Struct& in) {
    for (const Enum& one : in.enums) declare_name_of(one.name);
    const std::string name = within(space_, in.name);
    if (file_.visitable) {
      if (in.only_choice) declare_name_of("const " + name + '&');
      visit_fields(in, name);
    }
    if (in.ordered)
      code_.line("std::ostream& operator<<(std::ostream& out, const ", name, "& in);");
    if (in.checked) {
      code_.line("/// Hand-written: throws wire::Malformed if fields contradict each other.");
      code_.line("void check(const ", name, "& message);");
    }
    if (in.decode.empty()) return;
    code_.line();
    if (in.words) {
      code_.line("std::vector<std::uint64_t> encode(const ", name, "& in);");
      code_.line("/// Validates sizes, enums and list lengths, as of an untrusted sender.");
      code_.line("Expected<", name, "> ", in.decode, "(std::span<const std::uint64_t> words);");
      return;
    }
    code_.line("Message encode(const ", name, "& in);");
    code_.line("/// Validates as of an untrusted sender. The error names the message, the field,");
    code_.line("/// the value found and the allowed values.");
    code_.line("Expected<", name, "> ", in.decode, "(const Message& message);");
  }

  const File& file_;
  Code code_;
  std::string space_;
  std::set<const Struct*> complete_;
  std::vector<const Struct*> not_comparable_;  // their operator== follows later
};

}  // namespace

std::string emit_header(const File& file) {
  return HeaderEmitter(file).emit();
}

}  // namespace leeway::generator
