#pragma once
// StageNorms: the norm of a pipeline's gradient, which limits the pushes of all its stages.
//
// The sum of squares passes from the last stage to the first, and each stage adds its own. The
// first stage then knows the total, which passes back. Messages are lost only with the link, and
// then the pipeline starts again.
#include <cstddef>
#include <map>
#include <optional>

#include "actors/stage/stage_sender.hpp"

namespace leeway {

class StageNorms {
 public:
  /// Keeps references to `position` and `sender`. `chunks`: of the stage.
  StageNorms(const StagePosition& position, const StageSender& sender, std::size_t chunks)
      : position_(position), sender_(sender), chunks_(chunks) {}

  /// Adds the squares of the gradients of one chunk.
  void add(Iteration iteration, double squares, Outbox& out);
  /// Handles the message of a neighbour; false if that neighbour does not send it. Ignores a
  /// repeated one.
  bool receive(Address from, const msg::GradientNorm& norm, Outbox& out);
  /// The sum of the squares over all stages; empty until it is known.
  std::optional<double> total(Iteration iteration) const;

  void forget(Iteration iteration) { sums_.erase(iteration); }
  void clear() { sums_.clear(); }

 private:
  struct Sum {
    std::size_t added = 0;  // chunks
    double own = 0;
    std::optional<double> later;  // of all later stages
    std::optional<double> total;
  };
  void pass_on(Iteration iteration, Sum& sum, Outbox& out);
  void finish(Iteration iteration, Sum& sum, double total, Outbox& out);

  const StagePosition& position_;
  const StageSender& sender_;
  std::size_t chunks_;
  std::map<Iteration, Sum> sums_;
};

}  // namespace leeway
