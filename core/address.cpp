#include "core/address.hpp"

#include <charconv>

#include "core/text.hpp"

namespace leeway {

namespace {

/// The whole of `text` as the number of an actor.
std::optional<std::uint32_t> index_of(std::string_view text) {
  std::uint32_t index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return index;
}

}  // namespace

std::string spelled(Address address) {
  return is_numbered(address.kind) ? concat(name_of(address.kind), address.index)
                                   : std::string(name_of(address.kind));
}

Expected<Address> parse_address(std::string_view text) {
  if (text == "scheduler") return kScheduler;
  for (const RoleKind kind :
       {RoleKind::worker, RoleKind::shard, RoleKind::standby, RoleKind::node}) {
    if (!text.starts_with(name_of(kind))) continue;
    if (const auto index = index_of(text.substr(name_of(kind).size())))
      return Address{kind, *index};
  }
  if (const auto index = index_of(text)) return Address{RoleKind::worker, *index};
  return Error{concat('"', text, "\" is not an actor; give worker2, shard0 or scheduler")};
}

}  // namespace leeway
