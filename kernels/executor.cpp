#include "kernels/executor.hpp"

namespace leeway {

namespace {

bool on_processor(Device device) {
  return device.kind != Device::Kind::cuda;
}

}  // namespace

Blob Executor::fetch(const Blob& blob) {
  const bool both_on_processor = on_processor(blob.device()) && on_processor(device());
  if (!blob || both_on_processor || blob.device() == device()) {
    begin_read(blob);
    return blob;
  }
  const Blob host = blob.on_host();
  if (on_processor(device())) return host;
  Blob here = allocate(host.size());
  upload(here.mutable_data(), host.data(), host.size());
  end_write(here);
  synchronize();  // `host` may be gone when we return
  return here;
}

}  // namespace leeway
