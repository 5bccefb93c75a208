// Any text is a plan or an error, as JSON and as TOML; a parsed plan survives a round trip.
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/check.hpp"
#include "plan/plan.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  (void)leeway::plan_from_toml(text, "fuzz.toml");
  const auto plan = leeway::plan_from_json(text, "fuzz.json");
  if (!plan || !leeway::validate(*plan)) return 0;
  const auto again = leeway::plan_from_json(leeway::to_json(*plan), "again.json");
  LW_CHECK(again.has_value() && *again == *plan);
  return 0;
}
