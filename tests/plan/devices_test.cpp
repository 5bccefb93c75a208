#include "plan/devices.hpp"

#include <catch2/catch.hpp>

using namespace leeway;
using Catch::Contains;

namespace {

constexpr Device kCpu{};
constexpr Device kFirst{Device::Kind::cuda, 0};
constexpr Device kSecond{Device::Kind::cuda, 1};

/// The devices of three workers, then of two shards.
std::vector<Device> devices(const std::string& text) {
  const auto placement = parse_devices(text, 3, 2);
  INFO(text << ": " << (placement ? "" : placement.error().text));
  REQUIRE(placement);
  std::vector<Device> all = placement->workers();
  all.insert(all.end(), placement->shards().begin(), placement->shards().end());
  for (std::uint32_t i = 0; i < 3; ++i) CHECK(placement->worker(i) == all[i]);
  for (std::uint32_t i = 0; i < 2; ++i) CHECK(placement->shard(i) == all[3 + i]);
  return all;
}

std::string error_of(const std::string& text) {
  const auto placement = parse_devices(text, 3, 2);
  INFO(text);
  REQUIRE_FALSE(placement);
  return placement.error().text;
}

}  // namespace

TEST_CASE("one device serves all workers and shards") {
  CHECK(devices("cpu") == std::vector(5, kCpu));
  CHECK(devices("cuda") == std::vector(5, kFirst));
  CHECK(devices("cuda:1") == std::vector(5, kSecond));
}

TEST_CASE("a list assigns devices, and the CPU to actors that it does not name") {
  CHECK(devices("worker1=cuda") == std::vector{kCpu, kFirst, kCpu, kCpu, kCpu});
  CHECK(devices("workers=cuda:1") == std::vector{kSecond, kSecond, kSecond, kCpu, kCpu});
  CHECK(devices("shards=cuda,worker2=cuda:1,shard0=cpu") ==
        std::vector{kCpu, kCpu, kSecond, kCpu, kFirst});
}

TEST_CASE("a later assignment overrides an earlier one") {
  CHECK(devices("workers=cuda,worker0=cpu") == std::vector{kCpu, kFirst, kFirst, kCpu, kCpu});
  CHECK(devices("worker0=cpu,workers=cuda") == std::vector{kFirst, kFirst, kFirst, kCpu, kCpu});
}

TEST_CASE("cpu_only is true if no worker or shard uses a GPU") {
  CHECK(parse_devices("workers=cpu", 3, 2)->cpu_only());
  CHECK_FALSE(parse_devices("worker2=cuda", 3, 2)->cpu_only());
  CHECK_FALSE(parse_devices("shard1=cuda", 3, 2)->cpu_only());
}

TEST_CASE("an invalid list is refused with a remedy") {
  for (const char* text : {"", "gpu", "cuda:", "cuda:-1", "cuda:x", "CPU", "cpu ",
                           "workers=", "workers=gpu", "worker0=cuda=1"})
    CHECK_THAT(error_of(text), Contains("device: \"") && Contains("give cpu, cuda or cuda:0"));
  for (const char* text : {"worker=cpu", "workerx=cpu", "worker-1=cpu", "shard1x=cpu", "all=cpu",
                           "=cpu", "worker 1=cpu", "workerss=cpu"})
    CHECK_THAT(error_of(text), Contains("is not a worker or shard; give workers, shards, or one "
                                        "such as worker0"));
  for (const char* text : {"cpu,cuda", "workers=cpu,", ",", "workers=cuda,cpu"})
    CHECK_THAT(error_of(text), Contains("names no worker or shard; give a list such as --device"));
  CHECK(error_of("worker3=cpu") ==
        "device: there is no worker 3; give one from worker0 to worker2, or more --workers");
  CHECK(error_of("shards=cuda,shard2=cuda") ==
        "device: there is no shard 2; give one from shard0 to shard1, or more --shards");
  CHECK_THAT(error_of("worker99999999999=cpu"), Contains("there is no worker 99999999999"));
}
