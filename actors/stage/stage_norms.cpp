#include "actors/stage/stage_norms.hpp"

#include "core/check.hpp"

namespace leeway {

void StageNorms::add(Iteration iteration, double squares, Outbox& out) {
  Sum& sum = sums_[iteration];
  sum.own += squares;
  ++sum.added;
  LW_CHECK(sum.added <= chunks_, sum.added, chunks_);
  pass_on(iteration, sum, out);
}

bool StageNorms::receive(Address from, const msg::GradientNorm& norm, Outbox& out) {
  if (!position_.is_last() && from == position_.next()) {
    Sum& sum = sums_[norm.iteration];
    if (sum.later) return true;
    sum.later = norm.squares;
    pass_on(norm.iteration, sum, out);
    return true;
  }
  if (position_.is_first() || from != position_.previous()) return false;
  Sum& sum = sums_[norm.iteration];
  if (!sum.total) finish(norm.iteration, sum, norm.squares, out);
  return true;
}

std::optional<double> StageNorms::total(Iteration iteration) const {
  const auto found = sums_.find(iteration);
  return found == sums_.end() ? std::nullopt : found->second.total;
}

/// Sends the sum to the stage before, once this stage and all later ones have added their squares.
void StageNorms::pass_on(Iteration iteration, Sum& sum, Outbox& out) {
  if (sum.added < chunks_ || (!sum.later && !position_.is_last())) return;
  const double squares = sum.own + sum.later.value_or(0);
  if (position_.is_first()) return finish(iteration, sum, squares, out);
  sender_.send_norm(position_.previous(), iteration, squares, out);
}

void StageNorms::finish(Iteration iteration, Sum& sum, double total, Outbox& out) {
  sum.total = total;
  if (!position_.is_last()) sender_.send_norm(position_.next(), iteration, total, out);
}

}  // namespace leeway
