#include "tests/cuda_emulation/block.hpp"

#include <ucontext.h>

#include <array>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/check.hpp"
#include "tests/cuda_emulation/cuda_runtime.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace leeway::emulation {

namespace {

/// A stack and its saved context.
struct Stack {
  ucontext_t context;
  const void* bottom = nullptr;
  std::size_t bytes = 0;
};

Stack* previous = nullptr;  // the stack before the last switch

/// Must run first on a stack after a switch: AddressSanitizer reports the bounds of the previous
/// stack.
void finish_switch([[maybe_unused]] void* kept) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(kept, &previous->bottom, &previous->bytes);
#endif
}

/// Switches from stack `here` to `there`; returns when another stack switches back.
void switch_to(Stack& here, Stack& there) {
  previous = &here;
  void* kept = nullptr;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&kept, there.bottom, there.bytes);
#endif
  swapcontext(&here.context, &there.context);
  finish_switch(kept);
}

/// A stack that runs threads of a block one after the other. A thread that waits keeps the stack
/// until it ends.
struct Runner {
  static constexpr std::size_t kBytes = 256 << 10;

  explicit Runner(void (*run)()) {
    getcontext(&stack.context);
    stack.context.uc_stack.ss_sp = memory.get();
    stack.context.uc_stack.ss_size = kBytes;
    stack.context.uc_link = nullptr;
    stack.bottom = memory.get();
    stack.bytes = kBytes;
    makecontext(&stack.context, run, 0);
  }

  std::unique_ptr<std::byte[]> memory{new std::byte[kBytes]};
  Stack stack;
  bool idle = true;
};

/// Threads wait at a barrier until all have arrived.
struct Barrier {
  int waiting = 0;
  unsigned passed = 0;  // number of times that all threads arrived
};

class Multiprocessor {
 public:
  static constexpr unsigned kMaxThreads = 1024;

  void run(dim3 blocks, dim3 threads, const std::function<void()>& body) {
    body_ = &body;
    gridDim = blocks;
    blockDim = threads;
    for (unsigned y = 0; y < blocks.y; ++y)
      for (unsigned x = 0; x < blocks.x; ++x) {
        blockIdx = dim3(x, y);
        run_block(static_cast<int>(threads.x * threads.y), (x + y) % 2 == 1);
      }
  }

  void sync_block() { wait(block_, -1); }
  bool any_of_block(bool mine) {
    if (mine) vote_ = true;
    sync_block();
    const bool any = vote_;
    sync_block();
    vote_ = false;
    sync_block();  // before the next vote begins
    return any;
  }
  /// The values of all lanes of the caller's warp.
  std::array<std::uint64_t, kWarp> exchange(std::uint64_t mine) {
    Warp& warp = warps_[static_cast<std::size_t>(thread_index() / kWarp)];
    // Two buffers are enough: a lane that writes for the exchange after next has seen all lanes
    // arrive at the next one, so they have read this one.
    auto& values = warp.values[warp.barrier.passed % 2];
    values[static_cast<std::size_t>(thread_index() % kWarp)] = mine;
    wait(warp.barrier, kWarp);
    return values;
  }
  static int thread_index() { return static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x); }

  static Multiprocessor& get() {
    static auto& only = *new Multiprocessor;
    return only;
  }

 private:
  struct Warp {
    Barrier barrier;
    std::array<std::array<std::uint64_t, kWarp>, 2> values;
  };

  void run_block(int threads, bool descending) {
    threads_ = alive_ = threads;
    descending_ = descending;
    started_ = 0;
    block_ = {};
    vote_ = false;
    for (Warp& warp : warps_) warp.barrier = {};
    used_ = 0;
    while (started_ < threads_) {
      if (used_ == runners_.size()) runners_.push_back(std::make_unique<Runner>(&serve));
      running_ = used_++;
      switch_to(launcher_, runners_[running_]->stack);
    }
    if (alive_ > 0) runners_.clear();  // discards the stuck threads
    LW_CHECK(alive_ == 0 && "threads of a block wait for others", blockIdx.x, blockIdx.y, alive_);
  }

  void yield() {
    const dim3 own = threadIdx;
    Stack& here = runners_[running_]->stack;
    if (Stack& there = next(); &there != &here) switch_to(here, there);
    threadIdx = own;
  }
  /// The stack to continue: the next runner with an unfinished thread; but the launcher if threads
  /// have not started, if all have ended, or if a whole round made no progress.
  Stack& next() {
    if (started_ < threads_ || alive_ == 0) return launcher_;
    do {
      running_ = (running_ + 1) % used_;
      if (running_ == 0 && std::exchange(steps_before_, steps_) == steps_) return launcher_;
    } while (runners_[running_]->idle);
    return runners_[running_]->stack;
  }

  /// The endless loop of a runner.
  static void serve() {
    Multiprocessor& self = get();
    finish_switch(nullptr);
    for (;;) {
      Runner& runner = *self.runners_[self.running_];
      runner.idle = false;
      while (self.started_ < self.threads_) self.run_next();
      runner.idle = true;
      self.yield();
    }
  }
  void run_next() {
    const int nth = started_++;
    const auto thread = static_cast<unsigned>(descending_ ? threads_ - 1 - nth : nth);
    threadIdx = dim3(thread % blockDim.x, thread / blockDim.x);
    (*body_)();
    --alive_;
    ++steps_;
  }

  /// Waits until `expected` threads have arrived; if negative, all threads that have not ended.
  void wait(Barrier& barrier, int expected) {
    const unsigned passed = barrier.passed;
    ++barrier.waiting;
    while (barrier.passed == passed) {
      if (barrier.waiting >= (expected < 0 ? alive_ : expected)) {
        barrier.waiting = 0;
        ++barrier.passed;
        ++steps_;
        return;
      }
      yield();
    }
  }

  const std::function<void()>* body_ = nullptr;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::size_t used_ = 0, running_ = 0;  // number of runners of the block; index of the current one
  Stack launcher_;
  int threads_ = 0, started_ = 0, alive_ = 0;
  bool descending_ = false;
  std::uint64_t steps_ = 0, steps_before_ = 0;  // progress of all threads: now and one round ago
  Barrier block_;
  bool vote_ = false;
  std::array<Warp, kMaxThreads / kWarp> warps_;
};

}  // namespace

void launch(dim3 blocks, dim3 threads, const std::function<void()>& body) {
  const unsigned count = threads.x * threads.y;
  if (blocks.x == 0 || blocks.y == 0 || blocks.y > 65535 || count == 0 ||
      count > Multiprocessor::kMaxThreads)
    return keep_error(cudaErrorInvalidConfiguration);
  LW_CHECK(blocks.z == 1 && threads.z == 1, blocks.z, threads.z);  // no kernel uses it
  static std::mutex one_at_a_time;
  std::lock_guard lock(one_at_a_time);
  Multiprocessor::get().run(blocks, threads, body);
}

void sync_block() {
  Multiprocessor::get().sync_block();
}

bool any_of_block(bool mine) {
  return Multiprocessor::get().any_of_block(mine);
}

std::uint64_t shuffle(std::uint64_t mine, int lane) {
  return Multiprocessor::get().exchange(mine)[static_cast<std::size_t>(lane)];
}

unsigned ballot(bool mine) {
  unsigned bits = 0;
  const auto votes = Multiprocessor::get().exchange(mine);
  for (std::size_t lane = 0; lane < votes.size(); ++lane)
    bits |= static_cast<unsigned>(votes[lane]) << lane;
  return bits;
}

int lane_index() {
  return Multiprocessor::thread_index() % kWarp;
}

}  // namespace leeway::emulation
