#pragma once
// The JSON header of a safetensors file: name, type, shape and position of each tensor.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/expected.hpp"
#include "models/safetensors.hpp"

namespace leeway {

struct SafetensorsHeader {
  struct Entry {
    std::string name;
    Shape shape;
    DType dtype = DType::f32;
    std::string_view other_type;       // "I64": a type without a DType; empty: dtype
    std::uint64_t begin = 0, end = 0;  // bytes, from the end of the header
  };
  std::vector<Entry> entries;  // by begin; together they cover the data without gap or overlap
  Metadata metadata;
};

/// Decodes a header that is followed by `data_bytes` of tensors. `file` is for errors.
Expected<SafetensorsHeader> parse_safetensors_header(std::string_view json,
                                                     std::uint64_t data_bytes,
                                                     const std::string& file);

/// The header's JSON for tensors in this order, padded with spaces to a multiple of 8 bytes.
/// Errors: text that is not UTF-8, or a name that the format reserves.
Expected<std::string> make_safetensors_header(std::span<const TensorView> tensors,
                                              const Metadata& metadata);

}  // namespace leeway
