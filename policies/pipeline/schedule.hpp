#pragma once
// Schedule: what each stage of a pipeline does next, decided up front. Integers in, a table out.
#include <cstdint>
#include <memory>
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
inline constexpr int kMaxMicroBatches = 65536;  // of one update
inline constexpr int kMaxChunks = limits::kMaxChunks;
inline constexpr int kMaxUpdates = 65536;
/// Operations of a whole table.
inline constexpr std::int64_t kMaxTableOps = 16'000'000;

/// All that a table depends on.
struct Spec {
  std::string schedule = "1f1b";  // a name of catalogue()
  int stages = 1;
  int micro_batches = 1;  // of one update
  int chunks = 1;         // parts of the model on each stage
  int updates = 1;        // after so many the pipeline is empty again
  bool operator==(const Spec&) const = default;
};

/// What an operation of one part of the model takes, in any unit of time. A full backward takes
/// both parts of it.
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

/// A family member is stateless: all is in the spec, which allows() has accepted.
class Schedule {
 public:
  virtual ~Schedule() = default;
  virtual std::string_view name() const = 0;
  /// Updates follow each other without the pipeline being emptied in between, so gradients are of
  /// older weights.
  virtual bool asynchronous() const { return false; }
  /// Whether there is such a table. The error names the setting and the nearest one that works.
  /// What holds for all schedules is for make_table() to check.
  virtual Status allows(const Spec& spec) const = 0;
  virtual std::vector<Op> stage(const Spec& spec, int stage) const = 0;

  // Closed forms, which the checker is compared with.

  /// Idle time as a share of all stages' time, where all parts cost the same and messages and
  /// updates take no time. None where no closed form holds.
  virtual std::optional<Share> bubble(const Spec& spec, const OpCosts& costs) const = 0;
  /// Micro-batches of a chunk whose activations a stage keeps at once, all chunks added up.
  virtual int peak_activations(const Spec& spec, int stage) const = 0;
  /// Micro-batches whose gradient for the inputs is done and that for the weights is not: so many
  /// keep the gradients of their outputs, too.
  virtual int peak_open_halves(const Spec&, int) const { return 0; }
  /// Versions of its weights that a stage keeps at once, when there are updates enough.
  virtual int weight_versions(const Spec&, int) const { return 1; }
  /// See Table::version_lag.
  virtual int version_lag(const Spec&, int) const { return 0; }
};

struct CatalogueEntry {
  std::string_view name;
  std::string_view description;
  std::string_view paper;
  const Schedule& (*schedule)();
  int chunks = 1;  // parts of the model on each stage, where nobody says how many
};

/// Every schedule there is.
std::span<const CatalogueEntry> catalogue();

/// Their names, for help and messages.
std::vector<std::string> schedule_names();

/// Parts of the model on each stage where nobody says how many; 1 of a schedule that is not known.
int usual_chunks(std::string_view schedule);

/// By name; the error suggests the nearest.
Expected<const Schedule*> find_schedule(std::string_view name);

/// Whether the spec makes sense. Ends in what to change: `interleaved: 6 micro-batches are no
/// multiple of 4 stages; give --micro-batches 4 or 8`.
Status validate(const Spec& spec);

/// The table of all stages, or why there is none (as validate()).
Expected<Table> make_table(const Spec& spec);

/// "1f1b: has one chunk a stage, ..." unless the spec has one: for schedules without chunks.
Status one_chunk(const Spec& spec);

}  // namespace leeway::pipeline
