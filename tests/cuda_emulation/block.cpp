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

/// A stack, and where its work was left.
struct Stack {
  ucontext_t context;
  const void* bottom = nullptr;
  std::size_t bytes = 0;
};

Stack* left = nullptr;  // by the last go

/// What a stack does first: AddressSanitizer follows, and says where the one that was left lies.
void arrive([[maybe_unused]] void* kept) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(kept, &left->bottom, &left->bytes);
#endif
}

/// Leaves `here` for `there`, and returns when somebody comes back.
void go(Stack& here, Stack& there) {
  left = &here;
  void* kept = nullptr;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&kept, there.bottom, there.bytes);
#endif
  swapcontext(&here.context, &there.context);
  arrive(kept);
}

/// A stack that runs threads of a block: one after the other, until one of them waits. That one
/// stays on it.
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

/// A place where threads wait until all have come.
struct Barrier {
  int waiting = 0;
  unsigned passed = 0;  // times
};

class Multiprocessor {
 public:
  static constexpr unsigned kMostThreads = 1024;

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
  /// What all lanes of the caller's warp have brought.
  std::array<std::uint64_t, kWarp> exchange(std::uint64_t mine) {
    Warp& warp = warps_[static_cast<std::size_t>(own_thread() / kWarp)];
    // Who brings something for the time after next has seen all lanes come to the next: they have
    // read this one. So two places do.
    auto& brought = warp.brought[warp.barrier.passed % 2];
    brought[static_cast<std::size_t>(own_thread() % kWarp)] = mine;
    wait(warp.barrier, kWarp);
    return brought;
  }
  static int own_thread() { return static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x); }

  static Multiprocessor& get() {
    static auto& only = *new Multiprocessor;
    return only;
  }

 private:
  struct Warp {
    Barrier barrier;
    std::array<std::array<std::uint64_t, kWarp>, 2> brought;
  };

  void run_block(int threads, bool descending) {
    threads_ = living_ = threads;
    descending_ = descending;
    begun_ = 0;
    block_ = {};
    vote_ = false;
    for (Warp& warp : warps_) warp.barrier = {};
    used_ = 0;
    while (begun_ < threads_) {
      if (used_ == runners_.size()) runners_.push_back(std::make_unique<Runner>(&serve));
      running_ = used_++;
      go(launcher_, runners_[running_]->stack);
    }
    if (living_ > 0) runners_.clear();  // with the threads that are stuck on them
    LW_CHECK(living_ == 0 && "threads of a block wait for others", blockIdx.x, blockIdx.y, living_);
  }

  void leave() {
    const dim3 own = threadIdx;
    Stack& here = runners_[running_]->stack;
    if (Stack& there = next(); &there != &here) go(here, there);
    threadIdx = own;
  }
  /// Who goes on: the launcher when there are threads to begin, or nothing is left to do, or no
  /// thread has come forward in a round; else the next runner whose thread has not ended.
  Stack& next() {
    if (begun_ < threads_ || living_ == 0) return launcher_;
    do {
      running_ = (running_ + 1) % used_;
      if (running_ == 0 && std::exchange(steps_before_, steps_) == steps_) return launcher_;
    } while (runners_[running_]->idle);
    return runners_[running_]->stack;
  }

  /// What a runner does, for ever.
  static void serve() {
    Multiprocessor& self = get();
    arrive(nullptr);
    for (;;) {
      Runner& runner = *self.runners_[self.running_];
      runner.idle = false;
      while (self.begun_ < self.threads_) self.run_next();
      runner.idle = true;
      self.leave();
    }
  }
  void run_next() {
    const int nth = begun_++;
    const auto thread = static_cast<unsigned>(descending_ ? threads_ - 1 - nth : nth);
    threadIdx = dim3(thread % blockDim.x, thread / blockDim.x);
    (*body_)();
    --living_;
    ++steps_;
  }

  /// Until `expected` have come, or, when negative, all threads that live.
  void wait(Barrier& barrier, int expected) {
    const unsigned passed = barrier.passed;
    ++barrier.waiting;
    while (barrier.passed == passed) {
      if (barrier.waiting >= (expected < 0 ? living_ : expected)) {
        barrier.waiting = 0;
        ++barrier.passed;
        ++steps_;
        return;
      }
      leave();
    }
  }

  const std::function<void()>* body_ = nullptr;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::size_t used_ = 0, running_ = 0;  // runners of the block; the one that runs
  Stack launcher_;
  int threads_ = 0, begun_ = 0, living_ = 0;
  bool descending_ = false;
  std::uint64_t steps_ = 0, steps_before_ = 0;  // of all threads, up to now and to the last round
  Barrier block_;
  bool vote_ = false;
  std::array<Warp, kMostThreads / kWarp> warps_;
};

}  // namespace

void launch(dim3 blocks, dim3 threads, const std::function<void()>& body) {
  const unsigned count = threads.x * threads.y;
  if (blocks.x == 0 || blocks.y == 0 || blocks.y > 65535 || count == 0 ||
      count > Multiprocessor::kMostThreads)
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

std::uint64_t from_lane(std::uint64_t mine, int lane) {
  return Multiprocessor::get().exchange(mine)[static_cast<std::size_t>(lane)];
}

unsigned ballot(bool mine) {
  unsigned bits = 0;
  const auto votes = Multiprocessor::get().exchange(mine);
  for (std::size_t lane = 0; lane < votes.size(); ++lane)
    bits |= static_cast<unsigned>(votes[lane]) << lane;
  return bits;
}

int own_lane() {
  return Multiprocessor::own_thread() % kWarp;
}

}  // namespace leeway::emulation
