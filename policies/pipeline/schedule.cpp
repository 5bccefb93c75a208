#include "policies/pipeline/schedule.hpp"

#include "core/check.hpp"
#include "core/text.hpp"
#include "policies/pipeline/dualpipe_v.hpp"
#include "policies/pipeline/gpipe.hpp"
#include "policies/pipeline/interleaved.hpp"
#include "policies/pipeline/interleaved_zb.hpp"
#include "policies/pipeline/one_forward_one_backward.hpp"
#include "policies/pipeline/two_buffered_weights.hpp"
#include "policies/pipeline/weight_stashing.hpp"
#include "policies/pipeline/zb_h1.hpp"
#include "policies/pipeline/zb_v.hpp"

namespace leeway::pipeline {

namespace {

template <class S>
const Schedule& the() {
  static const S schedule;
  return schedule;
}

// To add a schedule, add its files beside its siblings, and a line here.
constexpr CatalogueEntry kCatalogue[] = {
    {"gpipe", "all micro-batches forward, then all backward", "GPipe, Huang et al., NeurIPS 2019",
     the<GPipe>, 1, "fill_drain"},
    {"1f1b", "one forward, one backward in turn: as fast, with fewer activations",
     "PipeDream-flush, Narayanan et al., ICML 2021; DAPPLE, Fan et al., PPoPP 2021",
     the<OneForwardOneBackward>},
    {"interleaved",
     "1f1b with several chunks of the model per stage: a smaller bubble, more messages",
     "Narayanan et al., SC 2021", the<Interleaved>, 2},
    {"zb_h1", "1f1b whose gradients of weights fill the bubble", "ZB-H1, Qi et al., ICLR 2024",
     the<ZbH1>, 1, "zero_bubble_h1"},
    {"interleaved_zb", "interleaved whose gradients of weights fill the bubble",
     "ZB-H1 with several chunks, as PyTorch's ScheduleInterleavedZeroBubble", the<InterleavedZb>,
     2},
    {"zb_v", "two chunks per stage in a V: nearly no bubble, with the activations of 1f1b",
     "ZB-V, Qi et al., arXiv 2401.10241; Controllable Memory, Qi et al., NeurIPS 2024", the<ZbV>,
     2},
    {"dualpipe_v", "a V whose forwards and backwards alternate, with whole backwards in the middle",
     "DualPipeV, Qi et al. 2025, after DualPipe, DeepSeek-V3 report 2024", the<DualPipeV>, 2},
    {"weight_stashing", "no flush: the backward of a micro-batch reads the weights of its forward",
     "PipeDream, Harlap et al. 2018; Narayanan et al., SOSP 2019", the<WeightStashing>},
    {"2bw", "no flush, two versions of the weights, gradients lag by one update",
     "PipeDream-2BW, Narayanan et al., ICML 2021", the<TwoBufferedWeights>},
};

/// Null for an unknown name.
const CatalogueEntry* find_entry(std::string_view name) {
  for (const auto& entry : kCatalogue)
    if (entry.name == name || (!name.empty() && entry.old_name == name)) return &entry;
  return nullptr;
}

Status in_range(std::string_view what, int value, int most) {
  if (value >= 1 && value <= most) return {};
  return Error{concat(what, ": ", value, " is not allowed; give --", what, " 1 to ", most)};
}

}  // namespace

std::span<const CatalogueEntry> catalogue() {
  return kCatalogue;
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const auto& entry : kCatalogue) names.emplace_back(entry.name);
  return names;
}

std::string current_name(std::string_view schedule) {
  const CatalogueEntry* const entry = find_entry(schedule);
  return std::string(entry ? entry->name : schedule);
}

std::string renaming_note(std::string_view schedule) {
  const std::string name = current_name(schedule);
  return name == schedule ? "" : concat("the schedule ", schedule, " is now called ", name);
}

int usual_chunks(std::string_view schedule) {
  const CatalogueEntry* const entry = find_entry(schedule);
  return entry ? entry->chunks : 1;
}

Expected<const Schedule*> find_schedule(std::string_view name) {
  if (const CatalogueEntry* const entry = find_entry(name)) return &entry->schedule();
  return Error{concat("there is no schedule \"", name, '"', suggest(name, schedule_names()))};
}

Status validate(const Spec& spec) {
  const auto schedule = find_schedule(spec.schedule);
  if (!schedule) return schedule.error();
  if (auto ok = in_range("stages", spec.stages, kMaxStages); !ok) return ok;
  if (auto ok = in_range("micro-batches", spec.micro_batches, kMaxMicroBatches); !ok) return ok;
  if (auto ok = in_range("chunks", spec.chunks, kMaxChunks); !ok) return ok;
  if (auto ok = in_range("updates", spec.updates, kMaxUpdates); !ok) return ok;
  const std::int64_t per_update =
      std::int64_t{spec.stages} * spec.chunks * (3 * std::int64_t{spec.micro_batches} + 1);
  if (per_update > kMaxTableOps)
    return Error{concat(
        "micro-batches: ", spec.micro_batches, " on ", spec.stages, " stages with ", spec.chunks,
        " chunks make a table of up to ", per_update, " operations; give --micro-batches ",
        (kMaxTableOps / (std::int64_t{spec.stages} * spec.chunks) - 1) / 3, " at most")};
  if (per_update * spec.updates > kMaxTableOps)
    return Error{concat("updates: ", spec.updates, " make a table of up to ",
                        per_update * spec.updates, " operations; give --updates ",
                        kMaxTableOps / per_update, " at most")};
  return (*schedule)->allows(spec);
}

Expected<Table> make_table(const Spec& spec) {
  if (const auto valid = validate(spec); !valid) return valid.error();
  const Schedule& schedule = **find_schedule(spec.schedule);
  Table table{.stages = spec.stages,
              .chunks = spec.chunks,
              .micro_batches = spec.micro_batches,
              .updates = spec.updates,
              .shape = schedule.placement(),
              .version_lag = {},
              .ops = {}};
  for (int stage = 0; stage < spec.stages; ++stage) {
    table.ops.push_back(schedule.stage(spec, stage));
    table.version_lag.push_back(schedule.version_lag(spec, stage));
  }
  return table;
}

Placement placement_of(const Spec& spec) {
  const auto schedule = find_schedule(spec.schedule);
  LW_CHECK(schedule.has_value(), spec.schedule);
  return {(*schedule)->placement(), spec.stages};
}

Status one_chunk(const Spec& spec) {
  if (spec.chunks == 1) return {};
  return Error{concat(spec.schedule, ": supports one chunk per stage, not ", spec.chunks,
                      "; give --chunks 1, or the schedule interleaved")};
}

Status two_chunks(const Spec& spec) {
  if (spec.chunks == 2) return {};
  return Error{concat(spec.schedule, ": needs two chunks per stage, not ", spec.chunks,
                      "; give --chunks 2")};
}

}  // namespace leeway::pipeline
