// The emulation behaves like CUDA and reveals common mistakes.
#include <catch2/catch.hpp>
#include <vector>

#include "core/check.hpp"
#include "tests/cuda_emulation/cublas_v2.h"

using namespace leeway;
using emulation::launch;

TEST_CASE("every thread of every block runs once with its own index", "[emulation]") {
  std::vector<int> runs(3 * 2 * 8 * 4);
  launch(dim3(3, 2), dim3(8, 4), [&] {
    const unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
    ++runs[block * 32 + threadIdx.y * blockDim.x + threadIdx.x];
  });
  CHECK(runs == std::vector<int>(runs.size(), 1));
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("writes before a barrier are visible to all threads after it", "[emulation]") {
  int wrong = 0;
  launch(4, 100, [&] {
    __shared__ unsigned told[100];
    for (unsigned round = 0; round < 3; ++round) {
      told[threadIdx.x] = 1000 * round + threadIdx.x;
      __syncthreads();
      for (unsigned i = 0; i < 100; ++i)
        if (told[i] != 1000 * round + i) ++wrong;
      __syncthreads();
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("a missing barrier gives a wrong result in one of two neighbouring blocks",
          "[emulation]") {
  for (const unsigned neighbour : {1u, 31u}) {
    int wrong = 0;
    launch(2, 32, [&] {
      __shared__ unsigned told[32];
      told[threadIdx.x] = 1 + blockIdx.x;
      if (told[(threadIdx.x + neighbour) % 32] != 1 + blockIdx.x) ++wrong;
    });
    CHECK(wrong > 0);
  }
}

TEST_CASE("shuffles, ballots and votes combine the values of all lanes", "[emulation]") {
  int wrong = 0;
  launch(2, 64, [&] {
    const int lane = static_cast<int>(threadIdx.x % 32);
    if (__shfl_xor_sync(~0u, 2.5 * lane, 4) != 2.5 * (lane ^ 4)) ++wrong;
    if (__ballot_sync(~0u, lane % 3 == 0) != 0x49249249u) ++wrong;
    for (int round = 0; round < 4; ++round)
      if (__syncthreads_or(round % 2 == 1 && threadIdx.x == 50) != round % 2) ++wrong;
  });
  CHECK(wrong == 0);
  CHECK(__ffs(0x50) == 5);
}

TEST_CASE("a barrier that some threads never reach is reported", "[emulation]") {
  CHECK_THROWS_AS(launch(1, 64,
                         [] {
                           if (threadIdx.x % 32 < 16) __shfl_xor_sync(~0u, 1, 1);
                         }),
                  CheckFailed);
  int after = 0;
  launch(1, 64, [&] {
    __syncthreads();
    ++after;
  });
  CHECK(after == 64);
}

TEST_CASE("an invalid launch is refused and reported once", "[emulation]") {
  const auto never = [] { FAIL("ran"); };
  for (const auto& [blocks, threads] :
       {std::pair<dim3, dim3>{0, 32}, {1, 0}, {1, 1025}, {dim3(1, 65536), 32}}) {
    launch(blocks, threads, never);
    CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
    CHECK(cudaGetLastError() == cudaSuccess);
  }
}

TEST_CASE("copies with pointers of the wrong memory are refused", "[emulation]") {
  void* device = nullptr;
  REQUIRE(cudaMalloc(&device, 64) == cudaSuccess);
  std::vector<std::byte> host(64);
  const auto copy = [&](void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
  };
  CHECK(copy(host.data(), device, 64, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(host == std::vector<std::byte>(64, std::byte{0xff}));  // new memory is NaN
  CHECK(copy(device, host.data(), 64, cudaMemcpyHostToDevice) == cudaSuccess);
  CHECK(copy(device, host.data(), 65, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(copy(device, host.data(), 64, cudaMemcpyDeviceToDevice) == cudaErrorInvalidValue);
  CHECK(copy(host.data(), device, 64, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemsetAsync(host.data(), 0, 1, nullptr) == cudaErrorInvalidValue);
  CHECK(cudaFree(device) == cudaSuccess);
}

TEST_CASE("a matrix product is column-major and does not read C if beta is 0", "[emulation]") {
  const float a[] = {1, 2, 3, 4, 5, 6};  // (3, 2), or (2, 3) with rows 1 3 5 and 2 4 6
  const float b[] = {1, -1, 2, 0};       // (2, 2): rows 1 2 and -1 0
  float c[6];
  std::fill_n(c, 6, NAN);
  const float one = 1, none = 0;
  REQUIRE(cublasSgemm_64(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, 3, 2, 2, &one, a, 3, b, 2, &none, c,
                         3) == CUBLAS_STATUS_SUCCESS);
  CHECK(std::vector<float>(c, c + 6) == std::vector<float>{-3, -3, -3, 2, 4, 6});
  REQUIRE(cublasSgemm_64(nullptr, CUBLAS_OP_T, CUBLAS_OP_T, 3, 2, 2, &one, a, 2, b, 2, &one, c,
                         3) == CUBLAS_STATUS_SUCCESS);
  CHECK(std::vector<float>(c, c + 6) == std::vector<float>{2, 8, 14, 1, 1, 1});
  CHECK(cublasSgemm_64(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, 3, 2, 2, &one, a, 2, b, 2, &none, c, 3) ==
        CUBLAS_STATUS_INVALID_VALUE);
}
