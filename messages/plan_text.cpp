// Plans as JSON and TOML: text -> tree -> Cap'n Proto by the schema -> Plan, and back.
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "core/limits.hpp"
#include "core/text.hpp"
#include "messages/plan.hpp"
#include "messages/schema_text.hpp"
#include "plan.capnp.h"

namespace leeway {
namespace {

using Parser = Expected<TextNode> (*)(std::string_view text, const std::string& source);

Expected<Plan> plan_from_text(Parser parse, const std::string& text, const std::string& source) {
  if (text.size() > limits::kMaxHeaderBytes)
    return Error{concat(source, ": has ", text.size(), " bytes; a plan has at most ",
                        limits::kMaxHeaderBytes)};
  auto tree = parse(text, source);
  if (!tree) return tree.error();
  try {
    capnp::MallocMessageBuilder builder;
    auto root = builder.initRoot<plan_schema::Plan>();
    if (auto status = fill(capnp::DynamicStruct::Builder(root), *tree, source); !status)
      return status.error();
    const auto flat = capnp::messageToFlatArray(builder);
    const auto* words = reinterpret_cast<const std::uint64_t*>(flat.begin());
    auto plan = decode_plan(Message(std::vector<std::uint64_t>(words, words + flat.size()), {}));
    if (!plan) return Error{concat(source, ": ", plan.error().text)};
    return plan;
  } catch (const kj::Exception& exception) {
    return Error{concat(source, ": ", exception.getDescription().cStr())};
  }
}

}  // namespace

std::string to_json(const Plan& plan) {
  const Message message = encode(plan);
  const auto words = message.header();
  capnp::ReaderOptions options;
  options.traversalLimitInWords = 8 * words.size() + 64;
  capnp::FlatArrayMessageReader reader(
      kj::arrayPtr(reinterpret_cast<const capnp::word*>(words.data()), words.size()), options);
  const auto tree = to_tree(capnp::DynamicStruct::Reader(reader.getRoot<plan_schema::Plan>()));
  // Texts that are not UTF-8 are shown, not refused: this is also how a broken plan is looked at.
  return tree.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

Expected<Plan> plan_from_json(const std::string& text, const std::string& source) {
  return plan_from_text(parse_json, text, source);
}

Expected<Plan> plan_from_toml(const std::string& text, const std::string& source) {
  return plan_from_text(parse_toml, text, source);
}

Expected<Plan> plan_from_file(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension != ".toml" && extension != ".json")
    return Error{concat(path, ": a plan file ends in .toml or .json, not in \"", extension, '"')};
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return Error{concat(path, ": is a folder; give a plan file")};
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return Error{concat(path, ": cannot be read: ", std::strerror(errno), "; check the path")};
  std::string text(limits::kMaxHeaderBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return extension == ".toml" ? plan_from_toml(text, path) : plan_from_json(text, path);
}

}  // namespace leeway
