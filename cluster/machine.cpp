#include "cluster/machine.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cluster/node_name.hpp"
#include "core/limits.hpp"
#include "core/memory.hpp"
#include "core/text.hpp"
#include "kernels/instruction_set.hpp"
#include "plan/devices.hpp"
#include "transport/certificates.hpp"

namespace leeway {
namespace {

/// The models of the GPUs that the NVIDIA driver lists.
std::vector<std::string> gpu_models() {
  std::vector<std::string> models;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc/driver/nvidia/gpus", error), end;
       !error && it != end && models.size() < limits::kMaxGpus; it.increment(error)) {
    constexpr std::string_view kModel = "Model:";
    std::ifstream info(it->path() / "information");
    std::string model = "unknown";
    for (std::string line; std::getline(info, line);)
      if (line.starts_with(kModel)) model = trimmed(std::string_view(line).substr(kModel.size()));
    models.push_back(model);
  }
  return models;
}

}  // namespace

node::Machine this_machine(const std::string& tls) {
  node::Machine machine;
  machine.version = leeway_version();
  machine.cores = std::max(1u, std::thread::hardware_concurrency());
  machine.memory_bytes = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                         static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  if (const std::uint64_t free = available_memory().least(); free != AvailableMemory::kUnknown)
    machine.free_bytes = free;
  machine.gpus = gpu_models();
  machine.wall_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count();
  if (tls.empty()) return machine;
  machine.certificate_until = last_day_of(tls);
  machine.warnings = tls_folder_warnings(tls);
  return machine;
}

std::string arithmetic_of(const Plan& plan) {
  std::string text = concat(kernels::instruction_set(), " instructions");
  const auto devices = parse_devices(plan.device, plan.workers, plan.shards);
  const auto is_gpu = [](Device device) { return device.kind == Device::Kind::cuda; };
  if (devices && std::ranges::any_of(devices->shards(), is_gpu))
    text += concat(" and the GPUs ", join(gpu_models(), ", "));
  return text;
}

}  // namespace leeway
