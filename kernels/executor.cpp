#include "kernels/executor.hpp"

#include <algorithm>

namespace leeway {

namespace {

bool is_host_memory(Device device) {
  return device.kind != Device::Kind::cuda;
}

}  // namespace

Blob Executor::filled(std::int64_t count, float value) {
  if (value != 0) {
    Blob blob = Blob::floats(count);
    std::fill_n(blob.mutable_floats(), count, value);
    return fetch(blob);
  }
  Blob zeros = floats(count);
  zero(zeros.mutable_data(), zeros.size());
  end_write(zeros);
  return zeros;
}

Blob Executor::fetch(const Blob& blob) {
  const bool both_in_host_memory = is_host_memory(blob.device()) && is_host_memory(device());
  if (!blob || both_in_host_memory || blob.device() == device()) {
    begin_read(blob);
    return blob;
  }
  const Blob host = blob.on_host();
  if (is_host_memory(device())) return host;
  Blob here = allocate(host.size());
  upload(here.mutable_data(), host.data(), host.size());
  end_write(here);
  synchronize();  // `host` does not outlive this call
  return here;
}

}  // namespace leeway
