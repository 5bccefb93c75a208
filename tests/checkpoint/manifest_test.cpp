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
  const auto error_with_digest = [&](const std::string& text) {
    return error(checkpoint::add_digest(text));
  };
  CHECK_THAT(error(""), Contains("m.json") && Contains("the file is damaged"));
  CHECK_THAT(error("[]"), Contains("has no \"format\""));
  CHECK_THAT(error("{\"format\": \"1\"}"), Contains("has no \"format\""));
  CHECK_THAT(error("{\"format\": 1, \"number\": 2}"), Contains("does not end with its digest"));
  CHECK_THAT(error_with_digest("{\"format\": 1, \"colour\": 2\n}"), Contains("colour"));
  CHECK_THAT(error_with_digest("{\"format\": 1, \"number\": -1\n}"), Contains("number"));
  CHECK_THAT(error("{\"format\": 9, \"leeway\": \"3.1\", \"colour\": 2}"),
             Contains("is of format 9, written by Leeway 3.1"));
}

TEST_CASE("every flipped bit of a manifest is found, and named as damage") {
  using Catch::Matchers::Contains;
  const Manifest manifest{.format = checkpoint::kFormat,
                          .contents = {checkpoint::kWeights},
                          .leeway = "0.1.0",
                          .run = "04673a3e27c0b29c",
                          .number = 23};
  const std::string text = to_json(manifest);
  REQUIRE(manifest_from_json(text, "m"));
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string damaged = text;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    INFO(damaged);
    const auto found = manifest_from_json(damaged, "m");
    REQUIRE_FALSE(found);
    CHECK_THAT(found.error().text, Contains("damaged") || Contains("format"));
  }
}

}  // namespace leeway::test
