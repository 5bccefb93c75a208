#pragma once
// Values of flags that are not plain numbers.
#include <string>
#include <vector>

#include "core/expected.hpp"
#include "plan/plan.hpp"
#include "policies/straggler/text.hpp"
#include "runtime/flags/fault_text.hpp"

namespace leeway {

/// "3", "bsp", "asp", "adaptive(1,8)" or "backup(1)". Errors end with allowed values.
Expected<plan::Consistency> parse_staleness(const std::string& text);
/// "equal" or "speed".
Expected<plan::Balance> parse_balance(const std::string& text);
Expected<plan::Merge> parse_merge(const std::string& text);
/// "none", "host" or a number of workers.
Expected<plan::Aggregate> parse_aggregate(const std::string& text);
/// The name of an lr schedule, with its default parameters.
Expected<plan::LrScheduleKind> parse_lr_schedule(const std::string& text);
/// A setting of the plan in the syntax of its flag: "3" or "bsp", "speed", "flip,shift=2".
std::string text_of(const plan::Consistency& policy);
/// Also "ssp(3)" instead of "3".
std::string policy_name(const plan::Consistency& policy);
std::string text_of(plan::Balance balance);
std::string text_of(plan::Merge merge);
std::string text_of(const plan::Aggregate& aggregate);
std::string text_of(const plan::LrSchedule& lr_schedule);
std::string text_of(const plan::Augment& augment);
std::string text_of(const plan::CheckpointsKind& every);
/// "30s", "10min", "2h", "2ep", "500it" or "none".
Expected<plan::CheckpointsKind> parse_checkpoint_interval(const std::string& text);
/// "flip", "shift=2", "flip,shift=2" or "none".
Expected<plan::Augment> parse_augment(const std::string& text);
/// Applies the values of --slow, each "none" or a comma-separated list such as "3:4x"; see
/// policies/straggler/text.hpp. They replace the plan's stragglers of the named workers; "none" and
/// "all:" replace all. Several stragglers of one worker add up.
Status apply_slow(const std::vector<std::string>& given, std::vector<plan::Straggler>& stragglers);

}  // namespace leeway
