#include "runtime/flags/values.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/number.hpp"
#include "core/text.hpp"
#include "core/text_reader.hpp"
#include "plan/fault_queries.hpp"
#include "plan/settings.hpp"
#include "runtime/words.hpp"

namespace leeway {
namespace {

/// Splits a list at the commas outside of brackets.
std::vector<std::string> split_list(const std::string& list) {
  std::vector<std::string> items(1);
  int depth = 0;
  for (const char c : list) {
    depth += c == '(' ? 1 : 0;
    depth -= c == ')' ? 1 : 0;
    if (c == ',' && depth == 0)
      items.emplace_back();
    else
      items.back() += c;
  }
  return items;
}

/// The alternative of this index, with defaults.
template <std::size_t... Indices>
void emplace_kind(plan::LrScheduleKind& kind, std::size_t index, std::index_sequence<Indices...>) {
  (void)((index == Indices && (kind.emplace<Indices>(), true)) || ...);
}

/// The text between the brackets of `name(...)`; nullopt for another text.
std::optional<std::string> in_brackets(std::string_view text, std::string_view name) {
  if (!text.starts_with(name) || !text.substr(name.size()).starts_with('(') || !text.ends_with(')'))
    return std::nullopt;
  return std::string(text.substr(name.size() + 1, text.size() - name.size() - 2));
}

/// `quorum(3)`, `quorum(3,20ms)` or `quorum(3,mad)`.
Expected<plan::Consistency> parse_quorum(const std::string& text) {
  TextReader in(text);
  plan::Quorum quorum;
  in.expect("quorum");
  in.expect("(");
  quorum.count = in.number<std::uint32_t>("number of pushes");
  if (in.skip(",")) {
    double seconds = 0;
    if (in.skip("mad"))
      quorum.mad = true;
    else if (in.skip_time(seconds))
      quorum.grace_ms = seconds * 1e3;
    else
      in.missing("time, such as 20ms, or mad");
  }
  in.expect(")");
  in.expect_end();
  if (!in.problem().empty())
    return Error{concat("--staleness: \"", text, "\" ", in.problem(),
                        "; give --staleness \"quorum(3,20ms)\": 3 pushes, and 20 ms for more")};
  return plan::Consistency(quorum);
}

}  // namespace

Expected<plan::Consistency> parse_staleness(const std::string& text) {
  if (text == "bsp") return bsp();
  if (text == "asp") return asp();
  if (text == "auto") return automatic();
  if (const auto bound = parse_number<std::uint32_t>(text)) return ssp(*bound);
  if (const auto bounds = in_brackets(text, "adaptive")) {
    const auto range = split_list(*bounds);
    const auto low = parse_number<std::uint32_t>(range.front());
    const auto high = parse_number<std::uint32_t>(range.back());
    if (range.size() == 2 && low && high) return adaptive(*low, *high);
  }
  if (text.starts_with("adaptive"))
    return Error{concat("--staleness: \"", text,
                        "\" is not a range; give --staleness \"adaptive(1,8)\", the least and the "
                        "largest bound")};
  if (const auto count = in_brackets(text, "backup"))
    if (const auto spare = parse_number<std::uint32_t>(*count)) return backup(*spare);
  if (text.starts_with("quorum")) return parse_quorum(text);
  if (const auto bound = in_brackets(text, "auto"))
    if (const auto high = parse_number<std::uint32_t>(*bound)) return automatic(*high);
  return Error{
      concat("--staleness: \"", text,
             "\" is not a number; give --staleness 3, or bsp for a barrier, asp for no "
             "bound, \"adaptive(1,8)\" for a bound that adapts, \"backup(1)\" for a "
             "barrier that does not wait for the last worker, \"quorum(3,20ms)\" for "
             "one that waits for 3 workers and 20 ms, or auto for a bound and batches that follow "
             "measurements")};
}

Expected<plan::Balance> parse_balance(const std::string& text) {
  if (text == "equal") return plan::Balance::equal;
  if (text == "speed") return plan::Balance::by_speed;
  return Error{concat("--balance: \"", text, "\" is not known; give --balance equal or speed")};
}

Expected<plan::Merge> parse_merge(const std::string& text) {
  if (text == "mean") return plan::Merge::mean;
  if (text == "radial_directional") return plan::Merge::radial_directional;
  if (text == "by_samples") return plan::Merge::by_samples;
  return Error{concat("--merge: \"", text,
                      "\" is not known; give --merge mean, by_samples or radial_directional")};
}

Expected<plan::Aggregate> parse_aggregate(const std::string& text) {
  if (text == "none") return plan::Aggregate(plan::NoGroups{});
  if (text == "host") return plan::Aggregate(plan::HostGroups{});
  if (const auto count = parse_number<std::uint32_t>(text); count && *count >= 1)
    return plan::Aggregate(plan::GroupsOf{*count});
  return Error{concat("--aggregate: \"", text,
                      "\" is not known; give --aggregate none, host or a number of workers")};
}

Expected<plan::LrScheduleKind> parse_lr_schedule(const std::string& text) {
  const auto& names = plan::choices("lr_schedule");
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end())
    return Error{concat("--lr-schedule: unknown \"", text, '"', suggest(text, names))};
  plan::LrScheduleKind kind;
  const auto index = static_cast<std::size_t>(found - names.begin());
  emplace_kind(kind, index,
               std::make_index_sequence<std::variant_size_v<plan::LrScheduleKind::variant>>());
  return kind;
}

Expected<plan::Augment> parse_augment(const std::string& text) {
  if (text == "none") return plan::Augment{};
  constexpr std::string_view kShift = "shift=";
  plan::Augment augment;
  for (const std::string& item : comma_separated(text)) {
    const auto shift =
        item.starts_with(kShift)
            ? parse_number<std::uint32_t>(std::string_view(item).substr(kShift.size()))
            : std::nullopt;
    if (item == "flip") {
      augment.flip = true;
    } else if (shift) {
      augment.shift = *shift;
    } else {
      return Error{concat("--augment: \"", item,
                          "\" is not known; give --augment flip,shift=2, one of the two, or none")};
    }
  }
  return augment;
}

std::string text_of(const plan::Consistency& policy) {
  struct Text {
    std::string operator()(const plan::Bsp&) const { return "bsp"; }
    std::string operator()(const plan::Ssp& ssp) const { return concat(ssp.staleness); }
    std::string operator()(const plan::Asp&) const { return "asp"; }
    std::string operator()(const plan::Backup& backup) const {
      return concat("backup(", backup.spare, ')');
    }
    std::string operator()(const plan::Automatic& automatic) const {
      return automatic == plan::Automatic{} ? "auto" : concat("auto(", automatic.high, ')');
    }
    std::string operator()(const plan::Quorum& quorum) const {
      if (quorum.mad) return concat("quorum(", quorum.count, ",mad)");
      if (quorum.grace_ms == 0) return concat("quorum(", quorum.count, ')');
      return concat("quorum(", quorum.count, ',', quorum.grace_ms, "ms)");
    }
    std::string operator()(const plan::Adaptive& adaptive) const {
      return concat("adaptive(", adaptive.low, ',', adaptive.high, ')');
    }
  };
  return std::visit(Text{}, policy);
}

std::string policy_name(const plan::Consistency& policy) {
  const std::string text = text_of(policy);
  return std::holds_alternative<plan::Ssp>(policy) ? concat("ssp(", text, ')') : text;
}

std::string text_of(plan::Balance balance) {
  return balance == plan::Balance::equal ? "equal" : "speed";
}

std::string text_of(const plan::Aggregate& aggregate) {
  if (const auto* groups = std::get_if<plan::GroupsOf>(&aggregate)) return concat(groups->count);
  return std::holds_alternative<plan::HostGroups>(aggregate) ? "host" : "none";
}

std::string text_of(plan::Merge merge) {
  return plan::choices("local_steps.merge")[static_cast<std::size_t>(merge)];
}

std::string text_of(const plan::LrSchedule& lr_schedule) {
  return plan::choices("lr_schedule")[lr_schedule.kind.index()];
}

std::string text_of(const plan::Augment& augment) {
  if (augment == plan::Augment{}) return "none";
  if (augment.shift == 0) return "flip";
  return concat(augment.flip ? "flip," : "", "shift=", augment.shift);
}

std::string text_of(const plan::CheckpointsKind& every) {
  struct Text {
    std::string operator()(const plan::Usual&) const { return "60s"; }
    std::string operator()(const plan::EverySeconds& time) const {
      return concat(time.seconds, 's');
    }
    std::string operator()(const plan::EveryEpochs& some) const {
      return concat(some.epochs, "ep");
    }
    std::string operator()(const plan::EveryIterations& some) const {
      return concat(some.iterations, "it");
    }
    std::string operator()(const plan::Never&) const { return "none"; }
  };
  return std::visit(Text{}, every);
}

Expected<plan::CheckpointsKind> parse_checkpoint_interval(const std::string& text) {
  using Every = plan::CheckpointsKind;
  if (text == "none") return Every(plan::Never{});
  const std::string_view all = text;
  const auto unit = all.find_first_not_of("0123456789.");
  const auto value = parse_number<double>(all.substr(0, unit));
  const std::string_view name = unit == all.npos ? "" : all.substr(unit);
  if (value && *value > 0) {
    if (name == "s") return Every(plan::EverySeconds{*value});
    if (name == "min") return Every(plan::EverySeconds{*value * 60});
    if (name == "h") return Every(plan::EverySeconds{*value * 3600});
    if (name == "ep") return Every(plan::EveryEpochs{*value});
    if (const auto count = parse_number<std::uint64_t>(all.substr(0, unit)); name == "it" && count)
      return Every(plan::EveryIterations{*count});
  }
  return Error{concat("--checkpoint-every: \"", text,
                      "\" is not an interval; give 30s, 10min, 2h, 2ep (epochs), 500it (iterations "
                      "of all workers) or none")};
}

Status apply_slow(const std::vector<std::string>& given, std::vector<plan::Straggler>& stragglers) {
  std::vector<plan::Straggler> added;
  for (const auto& list : given) {
    for (const auto& item : split_list(list)) {
      if (item == "none") {
        stragglers.clear();
        continue;
      }
      auto straggler = parse_straggler(item);
      if (!straggler) return straggler.error();
      if (straggler->all) stragglers.clear();
      plan::remove_workers(stragglers,
                           [&](std::uint32_t worker) { return plan::slows(*straggler, worker); });
      added.push_back(std::move(*straggler));
    }
  }
  stragglers.insert(stragglers.end(), added.begin(), added.end());
  return {};
}

}  // namespace leeway
