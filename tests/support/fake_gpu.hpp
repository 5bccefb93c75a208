#pragma once
// FakeGpu: an executor that behaves like a GPU on a machine without one.
//
// A thread works through its queue in order, a little late at random, and computes with the
// processor's kernels, so results are those of the processor bit for bit. Memory is of a pool with
// fences; what is allocated is filled with NaN when the queue comes to it; upload and download move
// bytes when the queue comes to them, not when they are asked for. So whoever forgets to wait, or
// to say what it reads and writes, gets NaN or another's numbers, and a race that the thread
// sanitizer names.
#include <cstdint>
#include <memory>

#include "kernels/executor.hpp"

namespace leeway::test {

class FakeGpu : public Executor {
 public:
  /// The queue stops before the next work, until it is released: what was asked for stays undone.
  virtual void hold() = 0;
  virtual void release() = 0;
};

/// On device cuda:90 + `index`. Executors of one index share its memory. `seed` draws the delays.
std::shared_ptr<FakeGpu> make_fake_gpu(int index, std::uint64_t seed);

}  // namespace leeway::test
