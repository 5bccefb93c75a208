#pragma once
// OpenPulls: under delay_threshold, the age of the weights with which workers compute.
//
// Shard 0 counts the progress of the run: the sum of the weights of all iterations that have been
// pushed whole. A pull is open from its answer to the first push of its iteration. It is outdated
// when the progress since its answer, which is the lag of its push, reaches the limit.
// Source: Maranjyan, Tyurin and Richtarik, "Ringmaster ASGD: The First Asynchronous SGD with
// Optimal Time Complexity", ICML 2025, algorithm 5, where the server stops computations that are
// too late.
#include <map>
#include <vector>

#include "core/ids.hpp"
#include "messages/shard_state.hpp"

namespace leeway {

class OpenPulls {
 public:
  struct Pull {
    WorkerId worker;
    Iteration iteration;
    auto operator<=>(const Pull&) const = default;
  };

  /// `limit`: the smallest lag that is too old.
  explicit OpenPulls(double limit) : limit_(limit) {}

  /// The pull is answered with the present weights, perhaps again. The oldest pull of a worker with
  /// too many is forgotten.
  void answered(const Pull& pull);
  /// The worker has pushed a bucket of the iteration.
  void pushed(const Pull& pull) { open_.erase(pull); }
  /// The worker's session is over.
  void forget(WorkerId worker);
  /// A whole iteration of this weight has been pushed.
  void advance(double weight) { progress_ += weight; }
  /// The pulls that have become outdated since the last call.
  std::vector<Pull> take_outdated();
  /// The outdated pulls of a worker, whose notices may be lost.
  std::vector<Pull> outdated(WorkerId worker) const;

  msg::OpenPullsState save() const;
  void restore(const msg::OpenPullsState& state);

 private:
  struct Age {
    double progress = 0;  // at the answer
    bool reported = false;
  };
  bool is_outdated(const Age& age) const;

  double limit_;
  double progress_ = 0;
  std::map<Pull, Age> open_;
};

}  // namespace leeway
