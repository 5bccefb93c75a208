// Plans as JSON and TOML: text <-> tree <-> Cap'n Proto <-> Plan.
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <system_error>

#include "core/limits.hpp"
#include "core/text.hpp"
#include "plan/check_ranges.hpp"
#include "plan/old_names.hpp"
#include "plan/plan.hpp"
#include "plan/schema_text.hpp"
#include "plan/settings.hpp"
#include "plan/values.wire.hpp"

namespace leeway {
namespace {

using Parser = Expected<TextNode> (*)(std::string_view text, const std::string& source);

/// Renames old keys, with a note on stderr.
Status rename_old_keys(TextNode& table, const std::string& source) {
  for (const auto& [old_name, name] : plan::kOldKeys) {
    const auto key = std::find(table.keys.begin(), table.keys.end(), old_name);
    if (key == table.keys.end()) continue;
    const auto place = concat(source, ':', table.items[std::size_t(key - table.keys.begin())].line,
                              ": \"", old_name, "\" is ");
    if (std::find(table.keys.begin(), table.keys.end(), name) != table.keys.end())
      return Error{concat(place, "the old name of \"", name, "\", which is given as well; keep \"",
                          name, '"')};
    std::cerr << concat(place, "now called \"", name, "\"; please rename it\n");
    *key = name;
  }
  return {};
}

/// Parses a text into a Cap'n Proto struct, and converts that to a T.
template <class Struct, class T>
Expected<T> from_text(Parser parse, const std::string& text, const std::string& source,
                      Expected<T> (*read)(capnp::MallocMessageBuilder&)) {
  if (text.size() > limits::kMaxHeaderBytes)
    return Error{concat(source, ": has ", text.size(), " bytes; a plan has at most ",
                        limits::kMaxHeaderBytes)};
  auto tree = parse(text, source);
  if (!tree) return tree.error();
  if constexpr (std::is_same_v<T, Plan>)
    if (auto status = rename_old_keys(*tree, source); !status) return status.error();
  try {
    capnp::MallocMessageBuilder builder;
    auto root = builder.initRoot<Struct>();
    if (auto status = fill(capnp::DynamicStruct::Builder(root), *tree, source); !status)
      return status.error();
    auto value = read(builder);
    if (!value) return Error{concat(source, ": ", value.error().text)};
    return value;
  } catch (const wire::Malformed& malformed) {
    return Error{concat(source, ": ", malformed.text)};
  } catch (const kj::Exception& exception) {
    return Error{concat(source, ": ", exception.getDescription().cStr())};
  }
}

Expected<Plan> read_plan(capnp::MallocMessageBuilder& builder) {
  return decode_plan(wire::words_of(builder));
}

Expected<plan::World> read_world(capnp::MallocMessageBuilder& builder) {
  const auto root = builder.getRoot<plan_schema::World>().asReader();
  plan::World world;
  wire::read(world, root);
  if (const Status ranges = plan::check_ranges(root); !ranges) return ranges.error();
  return world;
}

Expected<Plan> plan_from_text(Parser parse, const std::string& text, const std::string& source) {
  return from_text<plan_schema::Plan>(parse, text, source, read_plan);
}

struct TextFile {
  Parser parse;
  std::string text;
};

/// `kind` names the expected file in errors: "plan file".
Expected<TextFile> read_file(const std::string& path, const std::string& kind) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension != ".toml" && extension != ".json")
    return Error{concat(path, ": a ", kind, " ends in .toml or .json, not in \"", extension, '"')};
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return Error{concat(path, ": is a folder; give a ", kind)};
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return Error{concat(path, ": cannot be read: ", std::strerror(errno), "; check the path")};
  std::string text(limits::kMaxHeaderBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return TextFile{extension == ".toml" ? parse_toml : parse_json, std::move(text)};
}

}  // namespace

std::string to_json(const Plan& plan) {
  const auto words = encode(plan);
  capnp::ReaderOptions options;  // for a trusted plan of any depth
  options.traversalLimitInWords = 8 * words.size() + 64;
  capnp::FlatArrayMessageReader reader(
      kj::arrayPtr(reinterpret_cast<const capnp::word*>(words.data()), words.size()), options);
  const auto tree = to_tree(capnp::DynamicStruct::Reader(reader.getRoot<plan_schema::Plan>()));
  // Invalid UTF-8 is replaced, not refused, so that an invalid plan can be printed.
  return tree.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

Expected<Plan> plan_from_json(const std::string& text, const std::string& source) {
  return plan_from_text(parse_json, text, source);
}

Expected<Plan> plan_from_toml(const std::string& text, const std::string& source) {
  return plan_from_text(parse_toml, text, source);
}

Expected<Plan> plan_from_file(const std::string& path) {
  const auto file = read_file(path, "plan file");
  if (!file) return file.error();
  return plan_from_text(file->parse, file->text, path);
}

Expected<plan::World> world_from_file(const std::string& path) {
  const auto file = read_file(path, "world file");
  if (!file) return file.error();
  return from_text<plan_schema::World>(file->parse, file->text, path, read_world);
}

std::string to_toml(const plan::World& world) {
  capnp::MallocMessageBuilder builder;
  auto root = builder.initRoot<plan_schema::World>();
  wire::write(root, world);
  std::ostringstream out;
  const auto tree = to_tree(capnp::DynamicStruct::Reader(root.asReader()));
  for (const auto& [key, value] : tree.items()) {
    if (value == false) continue;
    const auto text = value.is_number_float() ? concat(value.get<double>()) : value.dump();
    out << std::left << std::setw(28) << concat(key, " = ", text) << " # "
        << plan::setting("host.simulated." + key).help << '\n';
  }
  return out.str();
}

}  // namespace leeway
