#pragma once
// StageProgram: the operations of one stage, one after the other, without end.
#include <cstdint>
#include <vector>

#include "policies/pipeline/endless.hpp"

namespace leeway {

class StageProgram {
 public:
  /// Requires a spec that pipeline::validate() accepts.
  StageProgram(const pipeline::Spec& spec, int stage);

  /// An operation, counted from 0. Its micro-batches and versions count from the program's start.
  struct Op {
    pipeline::OpKind kind{};
    std::int64_t iteration = 0;
    int micro_batch = 0;  // of the iteration; of an update: the last
    int chunk = 0;
    std::int64_t version = 0;
  };
  Op at(std::int64_t index) const;

  /// The next forward, from operation `index` on.
  Op next_forward(std::int64_t index) const;
  /// A version of the weights, and the iterations that go forward on it.
  struct Reading {
    std::int64_t version = 0;
    std::int64_t first = 0;
    std::int64_t last = 0;
  };
  /// From operation `index` on, the versions up to `newest` that are read, in their order.
  std::vector<Reading> readings(std::int64_t index, std::int64_t newest) const;

 private:
  int micro_batches_;
  pipeline::Endless endless_;
};

}  // namespace leeway
