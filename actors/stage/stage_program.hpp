#pragma once
// StageProgram: the endless sequence of one stage's operations.
#include <cstdint>
#include <vector>

#include "policies/pipeline/endless.hpp"

namespace leeway {

class StageProgram {
 public:
  /// Requires a spec that pipeline::validate() accepts.
  StageProgram(const pipeline::Spec& spec, int stage);

  /// An operation. Iterations and versions count from the program's start.
  struct Op {
    pipeline::OpKind kind{};
    std::int64_t iteration = 0;
    int micro_batch = 0;  // of the iteration; update: the last one
    int chunk = 0;
    std::int64_t version = 0;
  };
  /// Operation `index`, from 0.
  Op at(std::int64_t index) const;

  /// The first forward from operation `index` on.
  Op next_forward(std::int64_t index) const;
  /// A version of the weights, and the iterations that go forward on it.
  struct Reading {
    std::int64_t version = 0;
    std::int64_t first = 0;
    std::int64_t last = 0;
  };
  /// The versions up to `newest` that operations from `index` on read, in order.
  std::vector<Reading> readings(std::int64_t index, std::int64_t newest) const;

 private:
  int micro_batches_;
  pipeline::Endless endless_;
};

}  // namespace leeway
