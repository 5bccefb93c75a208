#pragma once
// Activities: what the workers of a run did at each time, and what ended their waits, from the
// events of the run.
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "blame/critical_path.hpp"
#include "blame/wait_follower.hpp"
#include "monitoring/event_file.hpp"

namespace leeway::blame {

class Activities {
 public:
  /// Names a computation of a worker, or of a stage.
  struct Name {
    Iteration iteration;
    std::uint32_t pipeline = 0;  // without pipelines: the worker
    std::uint32_t micro_batch = 0, chunk = 0;
    bool is_backward = false;
    auto operator<=>(const Name&) const = default;
  };
  struct Computation {
    Name name;
    std::uint32_t worker = 0;
    Instant begin, end;
  };
  /// The end of a wait.
  struct Awaited {
    std::optional<Name> computation;
    std::optional<std::size_t> worker;  // without pipelines: has computed it, or was removed
    Duration other;  // of a stage: part of the wait for requests, samples and weights
  };
  static constexpr std::uint32_t kNothing = UINT32_MAX;
  struct Segment {
    Instant begin, end;
    CriticalPath::Activity activity = CriticalPath::Activity::unknown;
    bool has_samples = false;          // of a computation
    std::uint32_t awaited = kNothing;  // for awaited(): another worker, or the stage's input
  };

  /// `stages`: of each pipeline; 1 without pipelines.
  explicit Activities(std::size_t stages)
      : stages_(stages), waits_([this](const Wait& wait) { add(wait); }) {}
  void handle(const EventRecord& record);
  /// After the last event, and before the calls below.
  void finish();

  std::size_t workers() const { return of_.size(); }
  /// The first event of the run; none without events.
  std::optional<Instant> begin() const { return begin_; }
  /// The last computation whose samples count, or null.
  const Computation* last() const { return last_ ? &*last_ : nullptr; }
  /// The last segment of a worker that begins before `time`, or null.
  const Segment* last_before(std::size_t worker, Instant time) const;
  /// Null if the wait ended with nothing known.
  const Awaited* awaited(const Segment& segment) const {
    return segment.awaited == kNothing ? nullptr : &awaited_[segment.awaited];
  }
  /// The last computation with this name that begins by `time`, or null: a worker that was
  /// restarted may have computed an iteration twice.
  const Computation* find(const Name& name, Instant time) const;

 private:
  void add(std::size_t worker, Segment segment);
  void add(std::size_t worker, Segment segment, const Awaited& awaited);
  void add(const Computation& computation, bool has_samples);
  void add(const Wait& wait);
  void add(const event::StageComputed& operation, Instant now);
  void finished(const event::StepFinished& step, Instant now);

  const std::size_t stages_;
  WaitFollower waits_;
  std::optional<Instant> begin_;
  std::map<std::size_t, std::vector<Segment>> of_;  // by worker, in their order
  std::vector<Awaited> awaited_;
  std::vector<Computation> computed_;  // after finish() by name
  std::optional<Computation> last_;
  std::map<WorkerId, std::pair<Iteration, Instant>> started_;  // its latest iteration
};

}  // namespace leeway::blame
