#pragma once
// Schedule: the order of each stage's operations, decided before the run. Integers in, a table out.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/expected.hpp"
#include "core/limits.hpp"
#include "policies/pipeline/table.hpp"

namespace leeway::pipeline {

inline constexpr int kMaxStages = limits::kMaxStages;
inline constexpr int kMaxMicroBatches = 65536;  // per update
inline constexpr int kMaxChunks = limits::kMaxChunks;
inline constexpr int kMaxUpdates = 65536;
/// Operations of a whole table.
inline constexpr std::int64_t kMaxTableOps = 16'000'000;

/// All that a table depends on.
struct Spec {
  std::string schedule = "1f1b";  // a name of catalogue()
  int stages = 1;
  int micro_batches = 1;  // per update
  int chunks = 1;         // of the model, per stage
  int updates = 1;        // after them the pipeline is empty
  bool operator==(const Spec&) const = default;
};

/// The time of each operation of one model chunk, in any unit. A full backward takes the sum of the
/// two backwards.
struct OpCosts {
  std::int64_t forward = 1;
  std::int64_t backward_input = 1;
  std::int64_t backward_weights = 1;
  std::int64_t update = 0;
  bool operator==(const OpCosts&) const = default;
  std::int64_t of_micro_batch() const { return forward + backward_input + backward_weights; }
};

/// part / whole.
struct Share {
  std::int64_t part = 0;
  std::int64_t whole = 1;
};

/// Stateless: everything is in the spec. All functions but allows() require a spec that it accepts.
class Schedule {
 public:
  virtual ~Schedule() = default;
  virtual std::string_view name() const = 0;
  /// Whether updates follow each other without a flush of the pipeline. Then gradients are computed
  /// on older weights.
  virtual bool asynchronous() const { return false; }
  virtual Placement::Shape placement() const { return Placement::Shape::round_robin; }
  /// Whether the schedule supports the spec. The error names the setting and the nearest valid one.
  /// validate() has the checks that all schedules share.
  virtual Status allows(const Spec& spec) const = 0;
  /// Each chunk runs its backwards for weights in ascending order of micro-batches. That of any
  /// micro-batch comes after those of the same micro-batch in the stage's later chunks, because an
  /// update may have fewer micro-batches than the table.
  virtual std::vector<Op> stage(const Spec& spec, int stage) const = 0;

  // Closed forms. Tests compare them with check() and play().

  /// Idle time as a share of all stages' time, if all model chunks cost the same, and messages and
  /// updates take no time. Empty if no closed form is known.
  virtual std::optional<Share> bubble(const Spec& spec, const OpCosts& costs) const = 0;
  /// Most activations of a micro-batch in a chunk that a stage keeps at once, over all chunks.
  virtual int peak_activations(const Spec& spec, int stage) const = 0;
  /// Most micro-batches that wait for their backward for weights, and keep the gradients of their
  /// outputs.
  virtual int peak_pending_backwards(const Spec&, int) const { return 0; }
  /// Most versions of its weights that a stage keeps at once, if there are enough updates.
  virtual int weight_versions(const Spec&, int) const { return 1; }
  /// See Table::version_lag.
  virtual int version_lag(const Spec&, int) const { return 0; }
};

struct CatalogueEntry {
  std::string_view name;
  std::string_view description;
  std::string_view paper;
  const Schedule& (*schedule)();
  int chunks = 1;                  // per stage, by default
  std::string_view old_name = {};  // still accepted
};

/// All schedules.
std::span<const CatalogueEntry> catalogue();

/// Their names, for help and messages.
std::vector<std::string> schedule_names();

/// The present name of a schedule that was renamed; other names as they are.
std::string current_name(std::string_view schedule);
/// "the schedule fill_drain is now called gpipe"; empty for a present name.
std::string renaming_note(std::string_view schedule);

/// Default number of chunks per stage; 1 for an unknown schedule.
int usual_chunks(std::string_view schedule);

/// By present or old name; the error suggests the nearest present one.
Expected<const Schedule*> find_schedule(std::string_view name);

/// Checks the spec. The error ends with a remedy: `interleaved: 9 micro-batches on
/// 4 stages do not make 2 equal groups; give --micro-batches 8 or 10`.
Status validate(const Spec& spec);

/// The table of all stages. Fails as validate() does.
Expected<Table> make_table(const Spec& spec);

/// Requires a schedule of the catalogue.
Placement placement_of(const Spec& spec);

/// For schedules with one chunk per stage: the error "1f1b: supports one chunk per stage, ...".
Status one_chunk(const Spec& spec);
/// For schedules with two: the error "zb_v: needs two chunks per stage, not 1; give --chunks 2".
Status two_chunks(const Spec& spec);

}  // namespace leeway::pipeline
