// The manifest as JSON.
#include "checkpoint/manifest.hpp"

#include <rapidcheck/catch.h>

#include <catch2/catch.hpp>

#include "core/text.hpp"
#include "tests/checkpoint/any_values.hpp"

namespace leeway::test {

using checkpoint::Manifest;
using checkpoint::manifest_from_json;

TEST_CASE("a manifest is read as it was written, with exact numbers") {
  rc::prop("any manifest", [] {
    Manifest manifest;
    any(manifest);
    manifest.format = checkpoint::kFormat;
    manifest.contents = {checkpoint::kWeights};
    const auto again = manifest_from_json(to_json(manifest), "m");
    if (!again) RC_FAIL(again.error().text);
    RC_ASSERT(*again == manifest);
  });
}

TEST_CASE("text that is no manifest is refused with its source and line") {
  using Catch::Matchers::Contains;
  const auto error = [](const std::string& text) {
    const auto manifest = manifest_from_json(text, "m.json");
    return manifest ? "" : manifest.error().text;
  };
  CHECK_THAT(error(""), Contains("m.json"));
  CHECK_THAT(error("[]"), Contains("has no \"format\""));
  CHECK_THAT(error("{\"format\": \"1\"}"), Contains("has no \"format\""));
  CHECK_THAT(error("{\"format\": 1, \"colour\": 2}"), Contains("colour"));
  CHECK_THAT(error("{\"format\": 1, \"number\": -1}"), Contains("number"));
  CHECK_THAT(error("{\"format\": 9, \"leeway\": \"3.1\", \"colour\": 2}"),
             Contains("is of format 9, written by Leeway 3.1"));
}

}  // namespace leeway::test
