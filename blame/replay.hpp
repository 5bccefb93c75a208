#pragma once
// Replay: the time of a training step if its operations had other durations.
//
// Two rules give the order. Each rank has a stream of computations and a stream of each kind of
// communication, whose operations follow each other. An operation starts when the operations of the
// other streams of its rank that had ended before it started in the measured step have ended.
//
// A transfer between two stages, or a collective, begins when all its ranks have started it, and
// ends for all after its own time. So the time that a rank waits for its peers is not part of a
// duration, and follows from the replay.
#include <cstdint>
#include <span>
#include <vector>

#include "blame/operation_trace.hpp"

namespace leeway::blame {

/// Which ranks take part in an operation.
enum class Sharing : std::uint8_t {
  by_one_rank,
  with_next_stage,      // forward-send, backward-recv
  with_previous_stage,  // forward-recv, backward-send
  over_replicas,        // params-all-gather, grads-reduce-scatter, separate-grads-all-reduce
  over_ends,            // embedding-grads-all-reduce: the first and the last stage
  over_all,             // optimizer-clip-main-grad
};
/// By the name of the kind. Operations of unknown kinds belong to one rank.
Sharing sharing_of(std::string_view kind);

class Replay {
 public:
  /// Of the operations of one step. Error: a transfer has one end only.
  static Expected<Replay> of(const OperationTrace& trace, std::vector<Operation> operations);

  const std::vector<Operation>& operations() const { return operations_; }
  /// Whether other ranks take part in the operation.
  bool is_shared(std::size_t operation) const { return groups_[group_of_[operation]].is_shared; }
  /// Seconds of each operation without waiting for peers, as measured.
  const std::vector<double>& own_seconds() const { return own_seconds_; }
  /// Seconds from the first start to the last end, as measured.
  double measured() const;
  /// The same, if the operations took `seconds`. Error: operations of different ranks wait for each
  /// other.
  Expected<double> play(std::span<const double> seconds) const;

 private:
  struct Group {
    std::vector<std::size_t> members;  // operations
    bool is_shared = false;
  };

  Status find_groups(const OperationTrace& trace);
  void find_order(const OperationTrace& trace);

  std::vector<Operation> operations_;
  std::vector<std::size_t> group_of_;
  std::vector<Group> groups_;
  std::vector<std::vector<std::size_t>> next_;  // by operation: those that wait for it
  std::vector<std::size_t> previous_;           // by operation: how many it waits for
  std::vector<double> own_seconds_;
};

}  // namespace leeway::blame
