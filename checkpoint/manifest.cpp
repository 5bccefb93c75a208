#include "checkpoint/manifest.hpp"

#include <capnp/message.h>
#include <kj/exception.h>

#include <algorithm>

#include "checkpoint/digest.hpp"
#include "checkpoint/values.wire.hpp"
#include "core/check.hpp"
#include "core/limits.hpp"
#include "core/text.hpp"
#include "plan/schema_text.hpp"

namespace leeway::checkpoint {
namespace {

const TextNode* value_of(const TextNode& tree, const std::string& key) {
  const auto found = std::find(tree.keys.begin(), tree.keys.end(), key);
  return found == tree.keys.end() ? nullptr : &tree.items[std::size_t(found - tree.keys.begin())];
}

std::string written_by(const TextNode& tree) {
  const TextNode* const leeway = value_of(tree, "leeway");
  return leeway ? leeway->text : "";
}

/// A manifest of another format may have other keys.
Status check_format(const TextNode& tree, const std::string& source) {
  const TextNode* const format = value_of(tree, "format");
  if (!format || format->kind != TextNode::Kind::integer || format->negative)
    return Error{concat(source, ": has no \"format\"; give the manifest of a checkpoint")};
  if (format->magnitude == kFormat) return {};
  return Error{concat(source, ": is of format ", format->magnitude, ", written by Leeway ",
                      written_by(tree), "; this program reads format ", kFormat,
                      ": resume with that version")};
}

/// A later version may store more.
Status check_contents(const TextNode& tree, const std::string& source) {
  const TextNode* const contents = value_of(tree, "contents");
  if (!contents) return {};
  for (const TextNode& content : contents->items)
    if (content.text != kWeights && content.text != kOptimizer)
      return Error{concat(source, ": holds \"", content.text,
                          "\", which this program does not know; resume with Leeway ",
                          written_by(tree))};
  return {};
}

constexpr std::string_view kBeforeDigest = ",\n \"digest\": \"";
constexpr std::string_view kAfterDigest = "\"\n}\n";
constexpr std::string_view kEnd = "\n}";  // of the text without its digest
constexpr std::size_t kDigits = 32;

/// Compares the text with the digest at its end.
Status check_digest(const std::string& text, const std::string& source) {
  constexpr std::size_t kAdded = kBeforeDigest.size() + kDigits + kAfterDigest.size();
  const std::size_t at = text.size() - std::min(text.size(), kAdded);
  const std::string_view added = std::string_view(text).substr(at);
  if (!added.starts_with(kBeforeDigest) || !added.ends_with(kAfterDigest))
    return Error{concat(source, ": does not end with its digest; the file is damaged")};
  const std::string_view stated = added.substr(kBeforeDigest.size(), kDigits);
  const std::string json = concat(text.substr(0, at), kEnd);
  const std::string digest = digest_of(std::as_bytes(std::span(json)));
  if (digest == stated) return {};
  return Error{
      concat(source, ": has digest ", digest, ", but states ", stated, "; the file is damaged")};
}

}  // namespace

std::string add_digest(std::string json) {
  LW_CHECK(json.ends_with(kEnd), json);
  const std::string digest = digest_of(std::as_bytes(std::span(json)));
  json.resize(json.size() - kEnd.size());
  return concat(json, kBeforeDigest, digest, kAfterDigest);
}

std::string program_version() {
  return LEEWAY_VERSION;
}

std::uint64_t samples_trained(const Manifest& manifest) {
  const Supply& supply = manifest.scheduler.supply;
  std::int64_t samples = supply.fresh;
  for (const auto& range : supply.returned) samples -= range.end - range.begin;
  return static_cast<std::uint64_t>(samples);
}

std::uint64_t total_bytes(const Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const auto& file : manifest.files) bytes += file.bytes;
  return bytes;
}

std::string to_json(const Manifest& manifest) {
  capnp::MallocMessageBuilder builder;
  auto root = builder.initRoot<schema::Manifest>();
  wire::write(root, manifest);
  return add_digest(to_tree(capnp::DynamicStruct::Reader(root.asReader())).dump(1));
}

Expected<Manifest> manifest_from_json(const std::string& text, const std::string& source) {
  if (text.size() > limits::kMaxManifestBytes)
    return Error{concat(source, ": has ", text.size(), " bytes; a manifest has at most ",
                        limits::kMaxManifestBytes)};
  auto tree = parse_json(text, source);
  if (!tree) return Error{concat(tree.error().text, "; the file is damaged")};
  if (Status known = check_format(*tree, source); !known) return known.error();
  if (Status intact = check_digest(text, source); !intact) return intact.error();
  if (Status known = check_contents(*tree, source); !known) return known.error();
  tree->keys.pop_back();  // the digest
  tree->items.pop_back();
  try {
    capnp::MallocMessageBuilder builder;
    auto root = builder.initRoot<schema::Manifest>();
    if (Status filled = fill(capnp::DynamicStruct::Builder(root), *tree, source); !filled)
      return filled.error();
    Manifest manifest;
    wire::read(manifest, root.asReader());
    return manifest;
  } catch (const wire::Malformed& malformed) {
    return Error{concat(source, ": ", malformed.text)};
  } catch (const kj::Exception& exception) {
    return Error{concat(source, ": ", exception.getDescription().cStr())};
  }
}

}  // namespace leeway::checkpoint
