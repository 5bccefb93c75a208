#pragma once
// ColdCachePenalty: the slowdown of a thread after a rest. While it rests, other threads fill its
// caches and its core clocks down; work undoes this.
//
// Approximates exponential decay by rational functions, because exp() differs between processors.
#include "core/time.hpp"

namespace leeway::sim {

class ColdCachePenalty {
 public:
  /// The half-life of both processes: cooling down at rest, and warming up at work.
  static constexpr Duration kHalf = milliseconds(1);

  void rest(Duration time) {
    const double share = time.seconds() / kHalf.seconds();
    value_ = (value_ + share) / (1 + share);
  }
  /// Records work that takes `time` on a warm thread. Returns its penalty, from 0 (warm) to 1.
  double work(Duration time) {
    value_ /= 1 + time.seconds() / kHalf.seconds();
    return value_;
  }

 private:
  double value_ = 0;  // from 0 (warm) to 1 (fully cold)
};

}  // namespace leeway::sim
