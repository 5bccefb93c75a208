// Any text is a CSV table or an error, as training data and as test data.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/check.hpp"
#include "models/datasets/csv.hpp"

namespace {

void read_twice(std::string_view text, const leeway::CsvFormat& format) {
  const auto table = leeway::parse_csv(text, "fuzz.csv", format);
  if (!table) return;
  LW_CHECK(table->x.size() == table->labels.size() * table->features.size());
  // Valid training data is also valid test data.
  leeway::CsvFormat test = format;
  test.train = &*table;
  LW_CHECK(leeway::parse_csv(text, "fuzz.csv", test).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const bool regression : {false, true}) {
    leeway::CsvFormat format{"label", regression, nullptr};
    read_twice(text, format);
    format.header = false;
    format.allow_missing = true;
    format.separator = ';';
    read_twice(text, format);
  }
  return 0;
}
