// Any text is a CSV table or an error, as training data and as test data.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/check.hpp"
#include "models/datasets/csv.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const bool regression : {false, true}) {
    const leeway::CsvFormat format{"label", regression, nullptr};
    const auto table = leeway::parse_csv(text, "fuzz.csv", format);
    if (!table) continue;
    LW_CHECK(table->x.size() == table->labels.size() * table->features.size());
    // Valid training data is also valid test data.
    LW_CHECK(leeway::parse_csv(text, "fuzz.csv", {"label", regression, &*table}).has_value());
  }
  return 0;
}
