#pragma once
// Compares weights bit for bit.
#include <cstring>
#include <vector>

#include "tensor/blob.hpp"

namespace leeway::test {

/// The concatenated floats of blobs on any device.
inline std::vector<float> floats_of(const std::vector<Blob>& blobs) {
  std::vector<float> all;
  for (const auto& blob : blobs) {
    const Blob values = blob.on_host();
    all.insert(all.end(), values.as_floats(), values.as_floats() + values.size() / sizeof(float));
  }
  return all;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace leeway::test
