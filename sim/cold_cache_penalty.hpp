#pragma once
// ColdCachePenalty: how cold a thread is. Its core slows down while it rests, and its caches fill
// with what others use; while it works, it grows warm again.
//
// Rational approximations of exponential decay, as exp() differs between processors.
#include "core/time.hpp"

namespace leeway::sim {

class ColdCachePenalty {
 public:
  /// Half way to as cold as can be takes so long, and half way back.
  static constexpr Duration kHalf = milliseconds(1);

  void rest(Duration time) {
    const double share = time.seconds() / kHalf.seconds();
    value_ = (value_ + share) / (1 + share);
  }
  /// What the thread does next takes `time` when it is warm. The share of that by which a world
  /// where cold work takes twice as long prolongs it: 0 when it is warm, up to 1.
  double work(Duration time) {
    value_ /= 1 + time.seconds() / kHalf.seconds();
    return value_;
  }

 private:
  double value_ = 0;  // 0: warm, 1: as cold as can be
};

}  // namespace leeway::sim
