#include "runtime/flags/compress_text.hpp"

#include <catch2/catch.hpp>

#include "runtime/words.hpp"

namespace leeway {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("--compress names codecs of pushes, pulls and stages") {
  const auto parse = [](const std::string& text) { return *parse_compression(text, {}); };
  CHECK(parse("none") == plan::Compression{});
  CHECK(parse("push=int8") == plan::Compression{.push = int8()});
  CHECK(parse("pull=bf16,push=top_k(0.02)") ==
        plan::Compression{.push = top_k(0.02), .pull = bf16()});
  CHECK(parse("push=two_bit") == plan::Compression{.push = two_bit(0.5)});
  for (const std::string text :
       {"none", "push=bf16", "push=fp16", "push=int4", "push=one_bit", "push=two_bit(0.25)",
        "push=random_k(0.1)", "push=top_k(0.01),pull=int8", "push=top_k(0.01,2.5),pull=int8",
        "pull=fp16", "activations=bf16",
        "push=int8,pull=bf16,activations=int8,activation_gradients=fp16"})
    CHECK(text_of(parse(text)) == text);
  const plan::Compression present{.push = int8(), .pull = bf16()};
  CHECK(*parse_compression("push=none", present) == plan::Compression{.pull = bf16()});
  CHECK(*parse_compression("none", present) == plan::Compression{});
}

TEST_CASE("--compress refuses other texts and lists the codecs") {
  for (const char* wrong :
       {"", "int8", "push", "push=", "push=int9", "pul=bf16", "push=int8,", "push=top_k(x)",
        "push=top_k(0.1", "push=top_k()", "push=top_k(0.1,)", "push=top_k(0.1,2,3)", "push=int8(2)",
        "push=two_bit(1,2)", "push=int8 ", "activation=bf16"})
    CHECK_THAT(parse_compression(wrong, {}).error().text,
               Contains("is not known; give --compress push=int8,pull=bf16"));
}

}  // namespace
}  // namespace leeway
