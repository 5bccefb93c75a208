// Any bytes are a safetensors file or an error.
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/check.hpp"
#include "models/safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = leeway::parse_safetensors(std::as_bytes(std::span(data, size)), "fuzz");
  if (!file) return 0;
  for (const auto& tensor : file->tensors)
    LW_CHECK(tensor.data.size() ==
             static_cast<std::size_t>(tensor.shape.count()) * size_of(tensor.dtype));
  return 0;
}
