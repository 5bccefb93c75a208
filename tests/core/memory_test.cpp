#include "core/memory.hpp"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <fstream>

namespace leeway {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

/// A tree like /proc and /sys, which the destructor removes.
class Machine {
 public:
  Machine() {
    std::string name = (fs::temp_directory_path() / "leeway-memory-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    root_ = name;
    write("proc/meminfo", "MemTotal: 2000 kB\nMemFree: 10 kB\nMemAvailable:    1000 kB\n");
  }
  ~Machine() { fs::remove_all(root_); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  AvailableMemory memory() const { return available_memory(root_); }

 private:
  fs::path root_;
};

TEST_CASE("without limits, the machine's available memory counts") {
  const Machine machine;
  CHECK(machine.memory().machine == 1024000);
  CHECK(machine.memory().group == AvailableMemory::kUnknown);
  machine.write("proc/self/cgroup", "0::/\n");
  machine.write("sys/fs/cgroup/memory.max", "max\n");
  machine.write("sys/fs/cgroup/memory.current", "5000\n");
  CHECK(machine.memory().least() == 1024000);
}

TEST_CASE("the tightest group on the path counts, and cached files do not") {
  const Machine machine;
  machine.write("proc/self/cgroup", "0::/user/run\n");
  machine.write("sys/fs/cgroup/user/memory.max", "9000\n");
  machine.write("sys/fs/cgroup/user/memory.current", "6000\n");
  machine.write("sys/fs/cgroup/user/memory.stat",
                "anon 1\nfile 4000\ninactive_file 1500\nactive_file 500\n");
  machine.write("sys/fs/cgroup/user/run/memory.max", "8000\n");
  machine.write("sys/fs/cgroup/user/run/memory.current", "100\n");
  CHECK(machine.memory().group == 5000);
  machine.write("sys/fs/cgroup/user/run/memory.current", "9000\n");
  CHECK(machine.memory().least() == 0);
}

TEST_CASE("groups of version 1 are read, also where a container hides the path") {
  const Machine machine;
  machine.write("proc/self/cgroup", "7:cpu,cpuacct:/x\n4:memory:/hidden/path\n");
  machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "70000\n");
  machine.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "20000\n");
  CHECK(machine.memory().group == 50000);
  machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(machine.memory().group == AvailableMemory::kUnknown);
}

TEST_CASE("this machine has memory") {
  CHECK(available_memory().least() > 0);
  CHECK(available_memory().machine < AvailableMemory::kUnknown);
}

TEST_CASE("a need beyond the available memory is refused with both limits and the advice") {
  const AvailableMemory memory{8'000'000'000, 3'210'000'000};
  CHECK(check_memory("x.csv", "reading it", 3'210'000'000, "split it", memory));
  const Status refused = check_memory("x.csv", "reading it", 12'345'000'000, "split it", memory);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text ==
        "x.csv: reading it needs 12.3 GB of memory, but only 3.2 GB are available (on the machine "
        "8.0 GB, in the control group 3.2 GB); split it");
  CHECK_THAT(check_memory("x", "it", 2000, "", {1999, AvailableMemory::kUnknown}).error().text,
             Contains("in the control group no limit"));
}

}  // namespace
}  // namespace leeway
