#pragma once
// Ids of the annotations in plan/annotations.capnp. Only plan/*.cpp includes it.
#include <capnp/schema.h>

#include <cstdint>
#include <string>

namespace leeway::plan::annotations {

inline constexpr std::uint64_t kHelp = 0xc3f1a7d2905be681;
inline constexpr std::uint64_t kFlag = 0xdb20e4f7c61a9835;
inline constexpr std::uint64_t kValues = 0x96d8b35f0ce7142a;
inline constexpr std::uint64_t kNotEmpty = 0xe2a4c9170b53d86f;
inline constexpr std::uint64_t kRange = 0xa8d07f3b56c2e491;

/// The text of a declaration's annotation, or "".
template <class Declaration>
std::string text_of(const Declaration& of, std::uint64_t id) {
  for (const auto annotation : of.getProto().getAnnotations())
    if (annotation.getId() == id) return annotation.getValue().getText().cStr();
  return "";
}

}  // namespace leeway::plan::annotations
