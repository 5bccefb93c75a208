// Any bytes are an array of NumPy or an error.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/check.hpp"
#include "models/datasets/npy.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* const begin = reinterpret_cast<const std::byte*>(data);
  const auto array = leeway::parse_npy({begin, begin + size}, "fuzz.npy");
  if (!array) return 0;
  const auto values = static_cast<std::size_t>(array->samples() * array->sample_values());
  LW_CHECK(array->begin + values * array->value_bytes == size);
  (void)(*array)[values - 1];
  return 0;
}
