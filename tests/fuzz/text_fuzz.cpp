// Any bytes are a text in windows or an error, and any text is a list of characters or an error;
// parsed data survives a round trip.
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/check.hpp"
#include "models/datasets/text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  (void)leeway::windows_of(text, {.context = 3, .test_share = 0.5}, "fuzz.txt");
  if (const auto listed = leeway::Vocabulary::parse(text, "fuzz.json"))
    LW_CHECK((*listed)->size() > 0);
  const auto vocabulary = leeway::Vocabulary::of(text, "fuzz.txt");
  if (!vocabulary) return 0;
  const auto numbers = (*vocabulary)->numbers(text, "fuzz.txt");
  LW_CHECK(numbers.has_value());
  std::string written;
  for (const auto number : *numbers) written += (*vocabulary)->character(number);
  LW_CHECK(written == text);
  const auto again = leeway::Vocabulary::parse((*vocabulary)->json(), "again.json");
  LW_CHECK(again.has_value() && (*again)->json() == (*vocabulary)->json());
  return 0;
}
