#pragma once
// put_varint: the base-128 varint of protocol buffers and of the columns of events.
#include <cstdint>
#include <string>

namespace leeway {

/// Appends seven bits per byte, the lowest first; all bytes but the last have the highest bit set.
inline void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

}  // namespace leeway
