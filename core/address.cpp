#include "core/address.hpp"

#include "core/number.hpp"
#include "core/text.hpp"

namespace leeway {

std::string spelled(Address address) {
  return is_numbered(address.kind) ? concat(name_of(address.kind), address.index)
                                   : std::string(name_of(address.kind));
}

Expected<Address> parse_address(std::string_view text) {
  if (text == "scheduler") return kScheduler;
  for (const RoleKind kind :
       {RoleKind::worker, RoleKind::shard, RoleKind::standby, RoleKind::node}) {
    if (!text.starts_with(name_of(kind))) continue;
    if (const auto index = parse_number<std::uint32_t>(text.substr(name_of(kind).size())))
      return Address{kind, *index};
  }
  if (const auto index = parse_number<std::uint32_t>(text))
    return Address{RoleKind::worker, *index};
  return Error{concat('"', text, "\" is not an actor; give worker2, shard0 or scheduler")};
}

}  // namespace leeway
