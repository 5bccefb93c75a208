// Any bytes are an IDX array or an error, plain and gzipped.
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/check.hpp"
#include "models/datasets/idx.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  for (const auto kind : {leeway::IdxKind::images, leeway::IdxKind::labels}) {
    const auto array = leeway::parse_idx(bytes, "fuzz.idx", kind);
    if (!array) continue;
    std::int64_t elements = 1;
    for (const auto extent : array->extents) elements *= extent;
    LW_CHECK(elements == static_cast<std::int64_t>(array->values.size()));
  }
  return 0;
}
