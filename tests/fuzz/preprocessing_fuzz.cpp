// Any text is a description of preprocessing or an error; a description survives a round trip.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/check.hpp"
#include "models/datasets/preprocessing.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = leeway::Preprocessing::from_json(text, "fuzz.json");
  if (!read) return 0;
  const auto again = leeway::Preprocessing::from_json(read->to_json(), "fuzz.json");
  LW_CHECK(again.has_value());
  LW_CHECK(*again == *read);
  return 0;
}
