#pragma once
// .npy files as numpy.save writes them.
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "tests/models/datasets/files.hpp"

namespace leeway::test {

/// Magic number, version 1.0, the dictionary padded to a multiple of 64, and the values.
inline Bytes npy_bytes(std::string dictionary, std::span<const std::byte> values) {
  constexpr std::size_t kPrefix = 10;
  while ((kPrefix + dictionary.size() + 1) % 64 != 0) dictionary += ' ';
  dictionary += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(dictionary.size() & 255);
  file += static_cast<char>(dictionary.size() >> 8);
  Bytes out = to_bytes(file + dictionary);
  out.insert(out.end(), values.begin(), values.end());
  return out;
}

template <class T>
std::string npy_type() {
  const char letter = std::is_floating_point_v<T> ? 'f' : std::is_signed_v<T> ? 'i' : 'u';
  return std::string(sizeof(T) == 1 ? "|" : "<") + letter + std::to_string(sizeof(T));
}

/// `shape` in Python's notation: "(3, 2)" or "(3,)".
template <class T>
Bytes npy(const std::string& shape, const std::vector<T>& values) {
  return npy_bytes(
      "{'descr': '" + npy_type<T>() + "', 'fortran_order': False, 'shape': " + shape + ", }",
      std::as_bytes(std::span(values)));
}

}  // namespace leeway::test
