#include "plan/settings.hpp"

#include <capnp/message.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "core/check.hpp"
#include "core/text.hpp"
#include "plan/annotation_ids.hpp"
#include "plan/check_ranges.hpp"
#include "plan/schema_text.hpp"
#include "plan/values.wire.hpp"

namespace leeway::plan {
namespace {

using capnp::DynamicStruct;
using capnp::StructSchema;
using namespace annotations;

/// Collects all settings from the schema, and their defaults from a new plan.
class Reader {
 public:
  std::vector<Setting> settings;
  std::map<std::string, std::vector<std::string>, std::less<>> choices;

  void read(DynamicStruct::Builder in, const std::string& key) {
    const StructSchema schema = in.getSchema();
    if (std::find(open_.begin(), open_.end(), schema) != open_.end()) return;  // layers in layers
    open_.push_back(schema);
    for (const auto field : schema.getFields())
      read_field(in, field, key + (key.empty() ? "" : ".") + leeway::name_of(field));
    for (const auto arm : schema.getUnionFields()) choices[key].push_back(leeway::name_of(arm));
    open_.pop_back();
  }

 private:
  void read_field(DynamicStruct::Builder in, StructSchema::Field field, const std::string& key) {
    const std::size_t at = settings.size();
    settings.push_back({key, "", text_of(field, kFlag), text_of(field, kHelp),
                        text_of(field, kValues), range_text(field)});
    const capnp::Type type = field.getType();
    in.clear(field);  // selects the arm of a union
    if (type.isStruct()) {
      read(in.init(field).as<DynamicStruct>(), key);
    } else if (type.isList() && type.asList().getElementType().isStruct()) {
      read(in.init(field, 1).as<capnp::DynamicList>()[0].as<DynamicStruct>(), key + "[]");
    } else if (!type.isVoid()) {
      settings[at].default_value = to_tree(in.get(field).asReader()).dump();
    }
    if (type.isEnum()) read_values(type.asEnum(), key);
  }

  /// Adds a row for each value where the enum appears first.
  void read_values(capnp::EnumSchema schema, const std::string& key) {
    const bool first = enums_.insert(schema.getProto().getId()).second;
    for (const auto value : schema.getEnumerants()) {
      choices[key].push_back(leeway::name_of(value));
      if (first)
        settings.push_back({concat(key, " = \"", leeway::name_of(value), '"'), "", "",
                            text_of(value, kHelp), "", ""});
    }
  }

  std::set<std::uint64_t> enums_;
  std::vector<StructSchema> open_;
};

const Reader& schema() {
  static const Reader reader = [] {
    Reader out;
    capnp::MallocMessageBuilder message;
    out.read(message.initRoot<plan_schema::Plan>(), "");
    return out;
  }();
  return reader;
}

}  // namespace

const std::vector<Setting>& settings() {
  return schema().settings;
}

const Setting* find_setting(std::string_view key) {
  for (const auto& setting : settings())
    if (setting.key == key) return &setting;
  return nullptr;
}

const Setting& setting(std::string_view key) {
  const Setting* const found = find_setting(key);
  LW_CHECK(found, key);
  return *found;
}

std::string help_of_flag(const Setting& setting) {
  std::string text = setting.help;
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  const auto arms = schema().choices.find(setting.key);
  if (!setting.values.empty()) return text + ": " + setting.values;
  return arms == schema().choices.end() ? text : text + ": " + join(arms->second, ", ");
}

std::vector<std::string> choices(std::string_view key) {
  const auto found = schema().choices.find(key);
  LW_CHECK(found != schema().choices.end(), key);
  return found->second;
}

std::string settings_page() {
  std::string page =
      "# Settings of a plan\n\n"
      "`leeway settings > docs/settings.md` writes this page from the annotations of\n"
      "[plan.capnp](../plan/plan.capnp) and the schemas that it imports. `[]` means each item of\n"
      "a list.\n\n"
      "| setting | default | range | flag | meaning |\n|---|---|---|---|---|\n";
  const auto code = [](const std::string& text) { return text.empty() ? "" : '`' + text + '`'; };
  for (const auto& setting : settings()) {
    const std::string values = setting.values.empty() ? "" : "; the flag takes " + setting.values;
    page += "| " + code(setting.key) + " | " + code(setting.default_value) + " | " + setting.range +
            " | " + code(setting.flag) + " | " + setting.help + values + " |\n";
  }
  return page;
}

}  // namespace leeway::plan
