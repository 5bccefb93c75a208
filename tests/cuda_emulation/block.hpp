#pragma once
// emulation: runs the kernels of kernels/cuda on the CPU, block by block.
//
// Each thread of a block has its own stack and runs until it waits for others, in ascending order
// in one block and in descending order in the next. So barriers, votes and shuffles work, and a
// read that misses a barrier gives a wrong result in one of the two orders. Launches run one at a
// time, on the calling thread.
//
// Not emulated: asynchronous queues (see tests/support/fake_gpu.hpp), separate device memory, and
// uninitialised shared memory.
#include <cstdint>
#include <functional>

/// An extent or an index in one.
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

/// Indices and extents of the current thread.
extern dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace leeway::emulation {

constexpr int kWarp = 32;

/// Calls body() as each thread of each block. cudaGetLastError reports a launch that CUDA would
/// refuse. Throws CheckFailed if threads wait at a barrier that others never reach.
void launch(dim3 blocks, dim3 threads, const std::function<void()>& body);

/// Barrier of the threads of the block that have not ended.
void sync_block();
/// True if `mine` is true for any thread of the block.
bool any_of_block(bool mine);
/// The `mine` of lane `lane` of the warp. All lanes must call it.
std::uint64_t shuffle(std::uint64_t mine, int lane);
/// Bit i is the `mine` of lane i. All lanes must call it.
unsigned ballot(bool mine);
/// Index of the thread in its warp.
int lane_index();

}  // namespace leeway::emulation
