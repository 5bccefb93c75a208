#include "sim/links.hpp"

#include "core/check.hpp"

namespace leeway::sim {

const Links::Link* Links::find(ActorIndex from, ActorIndex to) const {
  const auto found = links_.find(key(from, to));
  return found == links_.end() ? nullptr : &found->second;
}

std::vector<Letter> Links::release(ActorIndex from, ActorIndex to) {
  Link& link = at(from, to);
  LW_CHECK(link.holds > 0, from, to);
  if (--link.holds > 0) return {};
  return std::exchange(link.kept, {});
}

std::optional<Letter> Links::release_one(ActorIndex from, ActorIndex to) {
  auto& kept = at(from, to).kept;
  if (kept.empty()) return std::nullopt;
  std::optional<Letter> oldest(std::move(kept.front()));
  kept.erase(kept.begin());
  return oldest;
}

void Links::sever(ActorIndex from, ActorIndex to) {
  Link& link = at(from, to);
  ++link.severed;
  ++link.connection;
  link.kept.clear();
}

void Links::mend(ActorIndex from, ActorIndex to) {
  Link& link = at(from, to);
  LW_CHECK(link.severed > 0, from, to);
  --link.severed;
}

bool Links::held(ActorIndex from, ActorIndex to) const {
  const Link* link = find(from, to);
  return link && link->holds > 0;
}

bool Links::severed(ActorIndex from, ActorIndex to) const {
  const Link* link = find(from, to);
  return link && link->severed > 0;
}

Duration Links::extra(ActorIndex from, ActorIndex to) const {
  const Link* link = find(from, to);
  return link ? link->extra : Duration{};
}

void Links::keep(ActorIndex from, ActorIndex to, Letter letter) {
  at(from, to).kept.push_back(std::move(letter));
}

std::uint32_t Links::connection(ActorIndex from, ActorIndex to) const {
  const Link* link = find(from, to);
  return link ? link->connection : 0;
}

}  // namespace leeway::sim
