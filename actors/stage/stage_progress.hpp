#pragma once
// StageProgress: the progress of a stage in its program and in the iterations of a session.
#include <cstdint>
#include <optional>
#include <vector>

#include "actors/stage/stage_program.hpp"
#include "core/ids.hpp"

namespace leeway {

class StageProgress {
 public:
  using Op = StageProgram::Op;

  /// Requires a spec that pipeline::validate() accepts.
  StageProgress(const pipeline::Spec& spec, int stage)
      : program_(spec, stage), updates_(static_cast<std::size_t>(spec.chunks)) {}

  /// Handles a Start: restarts the program with iteration `first`.
  void start(Iteration first);

  // The program.
  Op op() const { return program_.at(next_op_); }
  Iteration iteration_of(const Op& op) const { return base_ + op.iteration; }
  void advance() { ++next_op_; }
  void repeat() { --next_op_; }
  /// The iteration, and the version of the weights, of the next forward.
  Iteration next_forward() const { return iteration_of(program_.next_forward(next_op_)); }
  std::int64_t next_version() const { return program_.next_forward(next_op_).version; }

  // Versions of the weights, counted from the begin of the session.
  /// A version, and the iterations that go forward on it.
  struct Reading {
    std::int64_t version = 0;
    Iteration first, last;
  };
  /// The versions that forwards still read, of those whose updates this stage has made.
  std::vector<Reading> readings() const;
  /// The stage's clock when it had made that version.
  Clock clock_of(std::int64_t version) const { return Clock((base_ + version).value()); }

  // Iterations.
  /// The first iteration that is not announced yet.
  Iteration announced() const { return announced_; }
  void announce(Iteration iteration) { announced_ = iteration + 1; }
  /// Whether an update of this chunk completes the iteration in all chunks.
  bool update_completes(int chunk) const;
  /// Counts an update of one chunk; true if it completes the iteration in all chunks.
  bool count_update(int chunk);
  /// The first iteration without all of its updates.
  Iteration finished() const { return base_ + finished_; }

  /// Sets the first iteration that does not follow.
  void end_at(Iteration end) { end_ = end; }
  bool has_end() const { return end_.has_value(); }
  bool is_past_end(Iteration iteration) const { return end_ && iteration >= *end_; }
  /// All iterations before the end are finished.
  bool is_complete() const { return is_past_end(finished()); }

 private:
  StageProgram program_;
  Iteration base_;
  std::int64_t next_op_ = 0;
  std::vector<std::int64_t> updates_;  // per chunk
  std::int64_t finished_ = 0;          // iterations since base_
  Iteration announced_;
  std::optional<Iteration> end_;
};

}  // namespace leeway
