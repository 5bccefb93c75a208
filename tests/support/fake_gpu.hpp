#pragma once
// FakeGpu: an executor that is as asynchronous as a GPU, for tests of synchronisation.
//
// A thread runs the queue in order with small random delays and computes with the CPU's kernels, so
// results have the same bits as on the CPU. Allocations, uploads and downloads also wait in the
// queue; new memory is filled with NaN. Code that does not wait, or does not declare its reads and
// writes, gets NaN or stale numbers, and the thread sanitizer reports a race.
//
// tests/cuda_emulation is its counterpart: it runs the CUDA kernels themselves, but synchronously.
#include <cstdint>
#include <memory>

#include "kernels/executor.hpp"

namespace leeway::test {

class FakeGpu : public Executor {
 public:
  /// Stops the queue before its next work until release().
  virtual void hold() = 0;
  virtual void release() = 0;
};

/// An executor on device cuda:(90 + `index`). Executors of one index share its memory. `seed`
/// determines the delays.
std::shared_ptr<FakeGpu> make_fake_gpu(int index, std::uint64_t seed);

}  // namespace leeway::test
