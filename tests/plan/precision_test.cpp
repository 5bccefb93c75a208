#include "plan/precision.hpp"

#include <catch2/catch.hpp>

using namespace leeway;
using Catch::Contains;

namespace {

constexpr auto kFp32 = Precision::fp32, kTf32 = Precision::tf32, kBf16 = Precision::bf16,
               kFp16 = Precision::fp16;

const std::vector<plan::Layer> kFour = {plan::Linear{8}, plan::Linear{8}, plan::Linear{8},
                                        plan::Linear{8}};

std::vector<Precision> of_four(const std::string& text) {
  const auto precisions = parse_precision(text, kFour);
  INFO(text << ": " << (precisions ? "" : precisions.error().text));
  REQUIRE(precisions);
  return *precisions;
}

}  // namespace

TEST_CASE("one precision is that of all layers, and a list names layers that differ") {
  CHECK(of_four("fp32") == std::vector(4, kFp32));
  CHECK(of_four("bf16") == std::vector(4, kBf16));
  CHECK(of_four("fp16") == std::vector(4, kFp16));
  CHECK(of_four("fp16,0=fp32,3=bf16") == std::vector{kFp32, kFp16, kFp16, kBf16});
  CHECK(of_four("bf16,0=fp32") == std::vector{kFp32, kBf16, kBf16, kBf16});
  CHECK(of_four("fp32,1-2=bf16,3=tf32") == std::vector{kFp32, kBf16, kBf16, kTf32});
  CHECK(of_four("tf32,0-3=bf16,3=fp32") == std::vector{kBf16, kBf16, kBf16, kFp32});
}

TEST_CASE("an unknown precision or layer is refused with a remedy") {
  for (const char* text : {"", "fp8", "BF16", "bf16 ", "0=bf16", "bf16,", "bf16,0=fp32,", "bf16,0",
                           "bf16,0=", "bf16,=fp32", "bf16,2-1=fp32", "bf16,x=fp32", "bf16,0=fp8"}) {
    INFO(text);
    const auto precisions = parse_precision(text, kFour);
    REQUIRE_FALSE(precisions);
    CHECK_THAT(precisions.error().text,
               Contains("give --precision fp32, bf16, fp16, tf32 or mixed"));
  }
  CHECK_THAT(parse_precision("bf16,2-4=fp32", kFour).error().text,
             Contains("there is no layer 4; give layers from 0 to 3"));
}

TEST_CASE("only layers with products have a precision other than fp32") {
  const std::vector<plan::Layer> model = {plan::Conv2d{8},
                                          plan::BatchNorm{},
                                          plan::Relu{},
                                          plan::Residual{{plan::Relu{}, plan::Conv2d{8}}, {}},
                                          plan::Residual{{plan::Relu{}}, {}},
                                          plan::Linear{10}};
  const auto precisions = [&](const std::string& text) {
    const auto parsed = parse_precision(text, model);
    INFO(text << ": " << (parsed ? "" : parsed.error().text));
    REQUIRE(parsed);
    return *parsed;
  };
  CHECK(precisions("bf16") == std::vector{kBf16, kFp32, kFp32, kBf16, kFp32, kBf16});
  CHECK(precisions("mixed,0=fp32") == std::vector{kFp32, kFp32, kFp32, kBf16, kFp32, kBf16});
  CHECK(precisions("fp32,0-4=fp16") == std::vector{kFp16, kFp32, kFp32, kFp16, kFp32, kFp32});
  for (const char* text : {"bf16,1=fp16", "fp32,1-2=bf16", "bf16,4=fp32"}) {
    INFO(text);
    const auto parsed = parse_precision(text, model);
    REQUIRE_FALSE(parsed);
    CHECK_THAT(parsed.error().text, Contains("names no layer with products") &&
                                        Contains("give some of the layers 0, 3, 5"));
  }
}
