#pragma once
// measure_peak: measures the peak speed of one core, as a reference for kernels.

namespace leeway::kernels {

struct Peak {
  double flops = 0;  // multiplications and additions per second, fused, in registers
  double bytes = 0;  // bytes read and written per second by z = x + a y over arrays of 64 MiB
};

/// Takes about a third of a second on the calling thread. Other load lowers the result.
Peak measure_peak();

}  // namespace leeway::kernels
