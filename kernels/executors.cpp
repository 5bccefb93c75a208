#include "kernels/executors.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "core/text.hpp"
#include "kernels/cuda_module.hpp"

namespace leeway {

namespace {

constexpr const char* kFile = "libleeway_cuda.so";
constexpr const char* kVariable = "LEEWAY_CUDA_MODULE";

/// The module, or the reason why it could not be loaded.
struct Loaded {
  const CudaModule* module = nullptr;
  std::string why;
};

std::string loader_error() {
  const char* text = dlerror();
  return text ? text : "the loader gives no reason";
}

Loaded load(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed
  if (!library) return {nullptr, concat("the CUDA module cannot be loaded: ", loader_error())};
  using Entry = const CudaModule* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "leeway_cuda_module"));
  if (!entry) return {nullptr, concat(path, " is not Leeway's CUDA module: ", loader_error())};
  const CudaModule* const module = entry();
  if (module->version != CudaModule::kVersion)
    return {nullptr, concat(path, " is of another build of Leeway (module version ",
                            module->version, ", expected ", CudaModule::kVersion, ")")};
  return {module, ""};
}

/// Next to the running program, and where an installation keeps it.
std::vector<std::filesystem::path> search_paths() {
  std::error_code failed;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed) return {};
  const auto folder = program.parent_path();
  return {folder / kFile, folder / ".." / "lib" / kFile};
}

Loaded find_and_load() {
  if (const char* path = std::getenv(kVariable); path && *path) {
    Loaded explicit_module = load(path);
    if (!explicit_module.module) explicit_module.why += concat(" (named by ", kVariable, ")");
    return explicit_module;
  }
  std::error_code ignored;
  for (const auto& path : search_paths())
    if (std::filesystem::exists(path, ignored)) return load(path.string());
  Loaded by_name = load(kFile);
  if (!by_name.module)
    by_name.why += concat("; set ", kVariable, " to its path if it lies elsewhere");
  return by_name;
}

/// Loads the module once and remembers a failure.
const Loaded& cuda() {
  static const Loaded& loaded = *new Loaded(find_and_load());
  return loaded;
}

Error unavailable(Device device, const std::string& why) {
  return Error{concat("device: ", device, " cannot be used: ", why, "; give --device cpu")};
}

Expected<std::shared_ptr<Executor>> make_cuda_executor(Device device) {
  if (std::string why = cuda_unavailable(); !why.empty()) return unavailable(device, why);
  std::string why;
  const int count = cuda().module->device_count(&why);
  if (device.index >= count)
    return Error{concat("device: ", device, " does not exist; this machine has ",
                        count == 1 ? std::string("one GPU") : concat(count, " GPUs"),
                        "; give cuda:0", count == 1 ? "" : concat(" to cuda:", count - 1),
                        ", or --device cpu")};
  if (auto executor = cuda().module->make_executor(device.index, &why)) return executor;
  return unavailable(device, why);
}

}  // namespace

Expected<std::shared_ptr<Executor>> make_executor(Device device) {
  if (device.kind == Device::Kind::cuda) return make_cuda_executor(device);
  LW_CHECK(device.kind == Device::Kind::host, device);
  return std::shared_ptr<Executor>(make_cpu_executor());
}

std::string cuda_unavailable() {
  if (!cuda().module) return cuda().why;
  std::string why;
  return cuda().module->device_count(&why) > 0 ? "" : why;
}

}  // namespace leeway
