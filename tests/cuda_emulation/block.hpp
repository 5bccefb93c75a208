#pragma once
// emulation: runs the kernels of kernels/cuda on the processor, block after block.
//
// The threads of a block have stacks of their own and take turns: each runs until it waits for
// others, in ascending order in one block and in descending order in the next. So barriers, votes
// and shuffles do what CUDA says of them, and what a thread reads without waiting for its writer is
// missing in one of the two orders. One launch runs at a time, to its end, in the calling thread.
//
// Not emulated: that work is done late (tests/support/fake_gpu.hpp does that), a memory of its own
// for the device, and shared memory whose contents are arbitrary when a block begins.
#include <cstdint>
#include <functional>

/// An extent, or a place in one.
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

/// Of the thread that runs.
extern dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace leeway::emulation {

constexpr int kWarp = 32;

/// Calls body() as each thread of each block. A launch that CUDA would refuse is kept for
/// cudaGetLastError. Throws CheckFailed when threads wait for others that do not come.
void launch(dim3 blocks, dim3 threads, const std::function<void()>& body);

/// What the threads of a block do together. Those that have ended are not waited for.
void sync_block();
/// Whether any of the block says yes.
bool any_of_block(bool mine);
/// What lane `lane` of the warp has brought. All lanes take part.
std::uint64_t from_lane(std::uint64_t mine, int lane);
/// Bit i is lane i's. All lanes take part.
unsigned ballot(bool mine);
/// This thread in its warp.
int own_lane();

}  // namespace leeway::emulation
