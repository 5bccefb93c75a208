#include "actors/cluster/placement.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "core/text_reader.hpp"
#include "plan/groups.hpp"

namespace leeway {
namespace {

constexpr const char* kHowToWrite =
    "write items such as shard0=1, standby0=2, worker2=3, shards=1+2, workers=2 or worker5=later, "
    "with commas between";

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

/// The same with groups of adjacent actors, each on one node.
std::vector<NodeIndex> in_groups(std::uint32_t count, std::uint32_t group,
                                 const std::vector<NodeIndex>& nodes) {
  std::vector<NodeIndex> of_each;
  for (const NodeIndex node : in_rows((count + group - 1) / group, nodes))
    of_each.insert(of_each.end(), group, node);
  of_each.resize(count);
  return of_each;
}

/// One item of --place: actors of one kind, and their nodes.
struct Item {
  Address actor;  // if it is for one
  bool all = false;
  std::vector<NodeIndex> nodes;
};

Expected<Item> read_item(const std::string& text, const Placement& known) {
  const auto wrong = [&](const auto&... what) {
    return Error{concat("--place: \"", text, "\" ", what...)};
  };
  TextReader in(text);
  Item item;
  const std::string word = in.word();
  item.all = word.ends_with("s");
  const std::string kind = item.all ? word.substr(0, word.size() - 1) : word;
  std::size_t count = 0;
  if (kind == "shard") {
    item.actor.kind = RoleKind::shard;
    count = known.shards.size();
  } else if (kind == "worker") {
    item.actor.kind = RoleKind::worker;
    count = known.workers.size();
  } else if (kind == "standby") {
    item.actor.kind = RoleKind::standby;
    count = known.standbys.size();
    if (count == 0) return wrong("names a standby, and the job has none; give --replicas 2 too");
  } else {
    return wrong("begins with neither shard, standby nor worker; ", kHowToWrite);
  }
  if (!item.all) item.actor.index = in.number<std::uint32_t>("number");
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
  if (item.actor.index >= count)
    return wrong("names ", item.actor, ", and there are ", count, "; give 0 to ", count - 1);
  if (later && (item.actor.kind != RoleKind::worker || item.all))
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
    case RoleKind::standby:
      return actor.index < standbys.size() ? standbys[actor.index] : kNowhere;
    case RoleKind::host:
    case RoleKind::node:
      break;
  }
  return kNowhere;
}

NodeIndex* Placement::find(Address actor) {
  auto* const places = actor.kind == RoleKind::shard     ? &shards
                       : actor.kind == RoleKind::worker  ? &workers
                       : actor.kind == RoleKind::standby ? &standbys
                                                         : nullptr;
  return places && actor.index < places->size() ? &(*places)[actor.index] : nullptr;
}

std::string Placement::actors_text(NodeIndex node) const {
  std::vector<std::string> actors;
  const auto add = [&](const std::vector<NodeIndex>& places, RoleKind kind) {
    for (std::uint32_t i = 0; i < places.size(); ++i)
      if (places[i] == node) actors.push_back(concat(Address{kind, i}));
  };
  add(shards, RoleKind::shard);
  add(standbys, RoleKind::standby);
  add(workers, RoleKind::worker);
  return actors.empty() ? "no actor yet" : join(actors, ", ");
}

Expected<Plan> with_host_groups(Plan plan, const Placement& placement) {
  if (std::holds_alternative<plan::NoGroups>(plan.aggregate)) return plan;
  const auto& nodes = placement.workers;
  if (std::holds_alternative<plan::HostGroups>(plan.aggregate)) {
    const auto other =
        std::ranges::find_if(nodes, [&](NodeIndex node) { return node != nodes.front(); });
    plan.aggregate = plan::GroupsOf{static_cast<std::uint32_t>(other - nodes.begin())};
  }
  const std::uint32_t group = workers_per_group(plan);
  const char* const remedy =
      "give --workers a multiple of the nodes, or place as many adjacent workers on each node";
  if (plan.workers % group != 0)
    return Error{concat("--aggregate host: ", plan.workers,
                        " workers cannot be divided into groups of ", group,
                        ", the workers of the first node; ", remedy)};
  for (std::uint32_t worker = 0; worker < plan.workers; ++worker)
    if (const std::uint32_t lead = worker - worker % group; nodes[worker] != nodes[lead])
      return Error{concat("--aggregate: workers ", lead, " to ", lead + group - 1,
                          " are a group, and worker ", worker, " is on another node; ", remedy)};
  return plan;
}

std::vector<std::string> hosts_of(const std::vector<std::string>& names) {
  std::vector<std::string> hosts;
  for (const auto& name : names) hosts.push_back(name.substr(0, name.rfind(':')));
  return hosts;
}

NodeIndex node_for_standby(ShardId shard, const Placement& placement,
                           const std::vector<NodeIndex>& candidates,
                           const std::vector<std::string>& hosts) {
  const NodeIndex primary = placement.shards[shard.value()];
  const auto shares_host = [&](NodeIndex node) {
    return node.value() < hosts.size() && primary.value() < hosts.size() &&
           hosts[node.value()] == hosts[primary.value()];
  };
  return std::ranges::min(candidates, {}, [&](NodeIndex node) {
    // Of equal ones, the next after the primary, so that standbys are spread as their shards are.
    return std::tuple(node == primary, shares_host(node), placement.replicas_on(node),
                      node < primary, node);
  });
}

Expected<Placement> place_actors(std::uint32_t agents, const Plan& plan, const std::string& place,
                                 const std::vector<std::string>& hosts) {
  std::vector<NodeIndex> everywhere;
  for (std::uint32_t agent = 1; agent <= agents; ++agent) everywhere.emplace_back(agent);
  if (everywhere.empty()) everywhere.push_back(kProgramNode);
  const auto workers_on = [&](const std::vector<NodeIndex>& nodes) {
    if (std::holds_alternative<plan::GroupsOf>(plan.aggregate))
      return in_groups(plan.workers, workers_per_group(plan), nodes);
    const bool in_order =
        plan.pipeline.stages > 1 || std::holds_alternative<plan::HostGroups>(plan.aggregate);
    return in_order ? in_rows(plan.workers, nodes) : spread(plan.workers, nodes);
  };
  Placement placement{agents + 1, spread(plan.shards, everywhere), workers_on(everywhere), {}};
  if (plan.replicas > 1) placement.standbys.assign(plan.shards, kNowhere);
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
    else if (item->actor.kind == RoleKind::worker)
      placement.workers = workers_on(item->nodes);
    else
      (item->actor.kind == RoleKind::shard ? placement.shards : placement.standbys) =
          spread(plan.shards, item->nodes);
  }
  // An item for one actor overrides an item for all, in any order.
  for (const auto& item : single) *placement.find(item.actor) = item.nodes.front();
  for (std::uint32_t i = 0; i < placement.standbys.size(); ++i)
    if (NodeIndex& node = placement.standbys[i]; node == kNowhere)
      node = node_for_standby(ShardId(i), placement, everywhere, hosts);
  if (std::count(placement.workers.begin(), placement.workers.end(), kNowhere) ==
      static_cast<std::ptrdiff_t>(placement.workers.size()))
    return Error{"--place: all workers come later; place at least one on a node"};
  return placement;
}

}  // namespace leeway
