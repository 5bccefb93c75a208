#pragma once
// instruction_set: the instructions that kernels use on this machine.
#include <string>

#include "tensor/device.hpp"
#include "tensor/precision.hpp"

namespace leeway::kernels {

/// "x86-64-v4": the level of LW_SIMD loops. Loops of different levels round sums differently.
const char* instruction_set();

/// The instructions of products (linear, unembedding, conv2d) in `precision` on a device of this
/// kind, such as "AVX2" or "rounded, multiplied in fp32 with AVX2 (no AVX512_BF16 or AMX)". On the
/// CPU this is the newest set that oneDNN may use; ONEDNN_MAX_CPU_ISA limits it.
std::string product_instructions(Precision precision, Device::Kind device);

}  // namespace leeway::kernels
