#include "sim/world.hpp"

#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "core/text.hpp"
#include "plan/plan.hpp"
#include "sim/chance.hpp"

namespace leeway::sim {

namespace {

/// A number with a unit.
struct Quantity {
  double number = 0;
  std::string_view unit;
  bool valid = false;
};

Quantity quantity_of(std::string_view text) {
  Quantity quantity;
  const auto [end, failed] =
      std::from_chars(text.data(), text.data() + text.size(), quantity.number);
  quantity.unit = text.substr(static_cast<std::size_t>(end - text.data()));
  quantity.valid = failed == std::errc() && std::isfinite(quantity.number) && quantity.number >= 0;
  return quantity;
}

/// Parses a value into the world; false if it is invalid.
using Reader = std::function<bool(std::string_view, plan::World&)>;

/// A duration, stored in units of `unit_ns`.
Reader duration(double plan::World::*field, double unit_ns) {
  return [field, unit_ns](std::string_view text, plan::World& world) {
    static const std::map<std::string_view, double> units = {
        {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    const Quantity quantity = quantity_of(text);
    const auto unit = units.find(quantity.unit);
    if (!quantity.valid || unit == units.end() || quantity.number * unit->second > 1e15)
      return false;
    world.*field = quantity.number * unit->second / unit_ns;
    return true;
  };
}

Reader share(double plan::World::*field, double most) {
  return [field, most](std::string_view text, plan::World& world) {
    const Quantity quantity = quantity_of(text);
    const double value = quantity.number * (quantity.unit == "%" ? 0.01 : 1);
    if (!quantity.valid || (quantity.unit != "%" && !quantity.unit.empty()) || value > most)
      return false;
    world.*field = value;
    return true;
  };
}

/// A plain number.
Reader rate(double plan::World::*field, bool may_be_zero) {
  return [field, may_be_zero](std::string_view text, plan::World& world) {
    const Quantity quantity = quantity_of(text);
    if (!quantity.valid || !quantity.unit.empty() || quantity.number > 1e9) return false;
    if (quantity.number == 0 && !may_be_zero) return false;
    world.*field = quantity.number;
    return true;
  };
}

Reader count(std::uint32_t plan::World::*field, double least, double most) {
  return [=](std::string_view text, plan::World& world) {
    const Quantity quantity = quantity_of(text);
    if (!quantity.valid || !quantity.unit.empty() ||
        std::floor(quantity.number) != quantity.number || quantity.number < least ||
        quantity.number > most)
      return false;
    world.*field = static_cast<std::uint32_t>(quantity.number);
    return true;
  };
}

struct Key {
  Reader read;
  const char* wanted;
};

const std::map<std::string, Key>& keys() {
  using plan::World;
  constexpr double kMicro = 1e3, kMilli = 1e6;  // nanoseconds
  const char* const time = "a time, such as 50us or 2ms";
  static const std::map<std::string, Key> all = {
      {"nodes",
       {[](std::string_view text, plan::World& world) {
          if (text == "each")
            world.nodes = World::Nodes::each;
          else if (text == "one")
            world.nodes = World::Nodes::one;
          else if (text == "pairs")
            world.nodes = World::Nodes::pairs;
          else
            return false;
          return true;
        },
        "each (one node per worker and shard), pairs (a worker and a shard per node) or one (a "
        "single node)"}},
      {"cores", {count(&World::cores, 1, 4096), "1 to 4096"}},
      {"workers_per_node", {count(&World::workers_per_node, 1, 1024), "1 to 1024"}},
      {"agents", {count(&World::agents, 0, 64), "0 to 64"}},
      {"at_least", {count(&World::at_least, 0, 64), "0 (all agents) to 64"}},
      {"faults_from",
       {[](std::string_view text, plan::World& world) {
          world.faults_from = text == "call" ? World::FaultsFrom::call : World::FaultsFrom::start;
          return text == "call" || text == "start";
        },
        "start (of the actors) or call (of the agents)"}},
      {"speed", {rate(&World::speed, false), "GFLOP/s of a core, above 0"}},
      {"memory", {rate(&World::memory, false), "GB/s of a core, above 0"}},
      {"noise", {share(&World::noise, 0.99), "a share below 1, such as 5%"}},
      {"latency", {duration(&World::latency_us, kMicro), time}},
      {"local_latency", {duration(&World::local_latency_us, kMicro), time}},
      {"jitter", {share(&World::jitter, 100), "a share of the latency, such as 20%"}},
      {"link", {rate(&World::link, true), "Gbit/s, or 0 for no limit"}},
      {"detection", {duration(&World::detection_ms, kMilli), time}},
      {"message", {duration(&World::message_us, kMicro), time}},
      {"timer", {duration(&World::timer_us, kMicro), time}},
      {"slice", {duration(&World::slice_us, kMicro), time}},
      {"contention", {share(&World::contention, 100), "a share of the time, such as 10%"}},
      {"cold", {share(&World::cold, 100), "a share of the time, such as 30%"}},
  };
  return all;
}

Status read_setting(std::string_view setting, plan::World& world) {
  const std::size_t equals = setting.find('=');
  const std::string name(setting.substr(0, equals));
  const auto key = keys().find(name);
  if (equals == std::string_view::npos || key == keys().end())
    return Error{concat("world: \"", setting, "\" is not a setting",
                        suggest(name, world_settings()),
                        "; write name=value, for example latency=200us,link=1")};
  const std::string_view value = setting.substr(equals + 1);
  if (key->second.read(value, world)) return {};
  return Error{concat("world: ", name, ": \"", value, "\" is invalid; give ", key->second.wanted)};
}

World::Nodes nodes_of(plan::World::Nodes nodes) {
  switch (nodes) {
    case plan::World::Nodes::each:
      return World::Nodes::one_each;
    case plan::World::Nodes::one:
      return World::Nodes::one;
    case plan::World::Nodes::pairs:
      return World::Nodes::pairs;
  }
  return World::Nodes::one_each;
}

}  // namespace

World::World(const plan::World& world)
    : nodes(nodes_of(world.nodes)),
      workers_per_node(world.workers_per_node),
      cores(world.cores),
      flops_per_second(world.speed * 1e9),
      bytes_per_second(world.memory * 1e9),
      noise(world.noise),
      latency(time_of(world.latency_us, 1e6)),
      local_latency(time_of(world.local_latency_us, 1e6)),
      jitter(world.jitter),
      link_bytes_per_second(world.link * 1e9 / 8),
      detection(time_of(world.detection_ms, 1e3)),
      message(time_of(world.message_us, 1e6)),
      timer(time_of(world.timer_us, 1e6)),
      slice(time_of(world.slice_us, 1e6)),
      contention(world.contention),
      cold(world.cold) {}

std::vector<std::string> world_settings() {
  std::vector<std::string> names;
  for (const auto& [name, key] : keys()) names.push_back(name);
  return names;
}

Expected<plan::World> parse_world(const std::string& text, plan::World world) {
  const auto settings = comma_separated(text);
  for (std::size_t i = 0; i < settings.size(); ++i) {
    if (i == 0 && settings[i].starts_with('@')) {
      auto read = world_from_file(settings[i].substr(1));
      if (!read) return Error{concat("world: ", read.error().text)};
      world = *read;
    } else if (const Status status = read_setting(settings[i], world); !status) {
      return status.error();
    }
  }
  return world;
}

}  // namespace leeway::sim
