#pragma once
// measure_peak: what one core of this machine can do, to compare kernels with.

namespace leeway::kernels {

struct Peak {
  double flops = 0;  // multiplications and additions a second, fused, in registers
  double bytes = 0;  // bytes a second of z = x + a y over 64 MiB each, read and written
};

/// Takes about a third of a second on the calling thread. Other load lowers it.
Peak measure_peak();

}  // namespace leeway::kernels
