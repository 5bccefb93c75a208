#include "actors/cluster/placement.hpp"

#include <algorithm>
#include <set>

#include "core/text_reader.hpp"

namespace leeway {
namespace {

constexpr const char* kHowToWrite =
    "write items such as shard0=1, worker2=3, shards=1+2, workers=2 or worker5=later, with commas "
    "between";

std::vector<std::string> items_of(const std::string& text) {
  std::vector<std::string> items;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    items.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

std::vector<NodeIndex> spread(std::uint32_t count, const std::vector<NodeIndex>& nodes) {
  std::vector<NodeIndex> of_each;
  for (std::uint32_t i = 0; i < count; ++i) of_each.push_back(nodes[i % nodes.size()]);
  return of_each;
}

/// In order: each node has equally many actors, the first nodes one more.
std::vector<NodeIndex> in_rows(std::uint32_t count, const std::vector<NodeIndex>& nodes) {
  const auto all = static_cast<std::uint32_t>(nodes.size());
  std::vector<NodeIndex> of_each;
  for (std::uint32_t node = 0; node < all; ++node)
    of_each.insert(of_each.end(), count / all + (node < count % all ? 1 : 0), nodes[node]);
  return of_each;
}

/// One item of --place: actors of one kind, and their nodes.
struct Item {
  bool workers = false;
  bool all = false;
  std::uint32_t index = 0;
  std::vector<NodeIndex> nodes;
};

Expected<Item> read_item(const std::string& text, const Placement& known) {
  const auto wrong = [&](const auto&... what) {
    return Error{concat("--place: \"", text, "\" ", what...)};
  };
  TextReader in(text);
  Item item;
  const std::string kind = in.word();
  item.workers = kind.starts_with("worker");
  item.all = kind == "shards" || kind == "workers";
  if (!item.all && kind != "shard" && kind != "worker")
    return wrong("begins with neither shard nor worker; ", kHowToWrite);
  const std::size_t count = (item.workers ? known.workers : known.shards).size();
  if (!item.all) item.index = in.number<std::uint32_t>("number");
  in.expect("=");
  const bool later = in.problem().empty() && in.skip("later");
  if (later) {
    item.nodes.push_back(kNowhere);
  } else {
    do {
      item.nodes.emplace_back(in.number<std::uint32_t>("node"));
    } while (in.problem().empty() && in.skip("+"));
  }
  in.expect_end();
  if (!in.problem().empty()) return wrong(in.problem(), "; ", kHowToWrite);
  if (item.index >= count)
    return wrong("names ", kind, ' ', item.index, ", and there are ", count, "; give 0 to ",
                 count - 1);
  if (later && (!item.workers || item.all))
    return wrong("cannot come later; only single workers can, as in worker5=later");
  if (!item.all && item.nodes.size() > 1)
    return wrong("gives one actor several nodes; give it one, or shards=1+2 to spread them");
  for (const NodeIndex node : item.nodes)
    if (node != kNowhere && node.value() >= known.nodes)
      return wrong("names node ", node, "; give 0 for the program",
                   known.nodes > 1 ? concat(", or 1 to ", known.nodes - 1, " for a node agent")
                                   : std::string(", or name more nodes with --nodes"));
  return item;
}

}  // namespace

NodeIndex Placement::node_of(Address actor) const {
  switch (actor.kind) {
    case RoleKind::scheduler:
    case RoleKind::monitor:
      return kProgramNode;
    case RoleKind::shard:
      return actor.index < shards.size() ? shards[actor.index] : kNowhere;
    case RoleKind::worker:
      return actor.index < workers.size() ? workers[actor.index] : kNowhere;
    case RoleKind::host:
    case RoleKind::node:
      break;
  }
  return kNowhere;
}

std::string Placement::actors_text(NodeIndex node) const {
  std::vector<std::string> actors;
  const auto add = [&](const std::vector<NodeIndex>& places, RoleKind kind) {
    for (std::uint32_t i = 0; i < places.size(); ++i)
      if (places[i] == node) actors.push_back(concat(Address{kind, i}));
  };
  add(shards, RoleKind::shard);
  add(workers, RoleKind::worker);
  return actors.empty() ? "no actor yet" : join(actors, ", ");
}

Expected<Placement> place_actors(std::uint32_t agents, const Plan& plan, const std::string& place) {
  std::vector<NodeIndex> everywhere;
  for (std::uint32_t agent = 1; agent <= agents; ++agent) everywhere.emplace_back(agent);
  if (everywhere.empty()) everywhere.push_back(kProgramNode);
  const auto workers_on = [&](const std::vector<NodeIndex>& nodes) {
    return plan.pipeline.stages > 1 ? in_rows(plan.workers, nodes) : spread(plan.workers, nodes);
  };
  Placement placement{agents + 1, spread(plan.shards, everywhere), workers_on(everywhere)};
  std::vector<Item> single;
  std::set<std::string> named;
  for (const auto& text : items_of(place)) {
    const auto item = read_item(text, placement);
    if (!item) return item.error();
    const std::string name = text.substr(0, text.find('='));
    if (!named.insert(name).second)
      return Error{concat("--place: ", name, " is given twice; give it once")};
    if (!item->all)
      single.push_back(*item);
    else if (item->workers)
      placement.workers = workers_on(item->nodes);
    else
      placement.shards = spread(plan.shards, item->nodes);
  }
  // An item for one actor overrides an item for all, in any order.
  for (const auto& item : single)
    (item.workers ? placement.workers : placement.shards)[item.index] = item.nodes.front();
  if (std::count(placement.workers.begin(), placement.workers.end(), kNowhere) ==
      static_cast<std::ptrdiff_t>(placement.workers.size()))
    return Error{"--place: all workers come later; place at least one on a node"};
  return placement;
}

}  // namespace leeway
