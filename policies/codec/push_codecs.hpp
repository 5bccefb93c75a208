#pragma once
// PushCodecs: the codec of pushes in each iteration.
//
// top_k can warm up: it begins with a quarter of the values, and each later phase sends a quarter
// as many, down to its share (Lin et al., ICLR 2018, section 3.3, where each phase lasts an epoch).
// The phase follows from the iteration, so a message need not name it.
#include <cstdint>
#include <memory>
#include <vector>

#include "core/ids.hpp"
#include "policies/codec/codec.hpp"

namespace leeway {

class PushCodecs {
 public:
  /// Null for `none`. `iterations_per_epoch`: of one worker.
  static std::shared_ptr<const PushCodecs> make(const plan::Codec& spec,
                                                double iterations_per_epoch);
  const Codec& at(Iteration iteration) const;

 private:
  struct Phase {
    double end;  // iterations
    std::unique_ptr<const Codec> codec;
  };

  std::vector<Phase> phases_;  // of the warm-up
  std::unique_ptr<const Codec> codec_;
};

}  // namespace leeway
