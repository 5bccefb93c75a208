#pragma once
// Quorum: a barrier that waits for a number of workers, and for a short time for the others. A
// round is one step of synchronous SGD, or of the outer optimizer of local steps, over the pushes
// that came in time. Later pushes are dropped, and their samples are trained in another round.
//
// Source: the Decoupled DiLoCo team, "Decoupled DiLoCo for Resilient Distributed Pre-training",
// arXiv 2604.21428, 2026. There a learner that comes too late goes on with its own weights and
// contributes to a later round; here it starts again from those of the open round.
#include <cmath>

#include "policies/consistency/consistency.hpp"

namespace leeway {

class Quorum final : public Consistency {
 public:
  explicit Quorum(const plan::Quorum& spec) : spec_(spec) {}
  std::string_view name() const override { return "quorum"; }
  std::int64_t bound() const override { return 0; }
  bool by_rounds() const override { return true; }
  RoundSize round_size() const override { return RoundSize::at_least(spec_.count); }
  GraceWindow grace() const override {
    return spec_.mad ? GraceWindow::adaptive()
                     : GraceWindow::fixed(nanoseconds(std::llround(spec_.grace_ms * 1e6)));
  }

 private:
  plan::Quorum spec_;
};

}  // namespace leeway
