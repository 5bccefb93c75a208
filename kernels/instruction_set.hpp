#pragma once
// instruction_set: the level of instructions that LW_SIMD loops use on this machine.

namespace leeway::kernels {

/// "x86-64-v4". Loops of different levels round sums differently.
const char* instruction_set();

}  // namespace leeway::kernels
