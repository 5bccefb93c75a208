#include "models/initial_weights.hpp"

#include <catch2/catch.hpp>

#include <cstring>

#include "core/text.hpp"
#include "models/safetensors.hpp"
#include "tests/models/datasets/files.hpp"

namespace leeway {
namespace {

using Catch::Matchers::Contains;

NamedTensor tensor(std::string name, Shape shape, float first) {
  NamedTensor out{std::move(name), shape, DType::f32, Blob::floats(shape.count())};
  for (std::int64_t i = 0; i < shape.count(); ++i)
    out.data.mutable_floats()[i] = first + static_cast<float>(i);
  return out;
}

/// A tensor of 16-bit numbers, given by their bits.
NamedTensor tensor16(std::string name, DType type, std::vector<std::uint16_t> bits) {
  NamedTensor out{std::move(name), Shape{std::ssize(bits)}, type, Blob::allocate(2 * bits.size())};
  std::memcpy(out.data.mutable_data(), bits.data(), 2 * bits.size());
  return out;
}

Parameter parameter(std::string name, Shape shape) {
  Parameter out;
  out.name = std::move(name);
  out.spec.shape = shape;
  return out;
}

Expected<std::vector<Blob>> load(const std::vector<NamedTensor>& tensors,
                                 const std::vector<Parameter>& parameters) {
  const test::TemporaryFolder folder;
  REQUIRE(write_safetensors(folder.path("m"), tensors));
  return load_initial_weights(folder.path("m"), parameters);
}

std::string error_of(const std::vector<NamedTensor>& tensors,
                     const std::vector<Parameter>& parameters) {
  const auto loaded = load(tensors, parameters);
  REQUIRE_FALSE(loaded);
  return loaded.error().text;
}

TEST_CASE("weights are returned in the model's order, whatever the file's order") {
  const auto blobs = load({tensor("1.bias", {3}, 10), tensor("1.weight", {3, 2}, 1)},
                          {parameter("1.weight", {3, 2}), parameter("1.bias", {3})});
  REQUIRE(blobs);
  REQUIRE(blobs->size() == 2);
  for (int i = 0; i < 6; ++i) CHECK((*blobs)[0].as_floats()[i] == static_cast<float>(1 + i));
  for (int i = 0; i < 3; ++i) CHECK((*blobs)[1].as_floats()[i] == static_cast<float>(10 + i));
}

TEST_CASE("f16 and bf16 are converted to floats") {
  const auto blobs = load({tensor16("a", DType::f16, {0x3c00, 0xc100}),
                           tensor16("b", DType::bf16, {0x3f80, 0xc020, 0x0000})},
                          {parameter("a", {2}), parameter("b", {3})});
  REQUIRE(blobs);
  CHECK((*blobs)[0].size() == 8);
  CHECK((*blobs)[0].as_floats()[0] == 1);
  CHECK((*blobs)[0].as_floats()[1] == -2.5f);
  CHECK((*blobs)[1].size() == 12);
  CHECK((*blobs)[1].as_floats()[0] == 1);
  CHECK((*blobs)[1].as_floats()[1] == -2.5f);
  CHECK((*blobs)[1].as_floats()[2] == 0);
}

TEST_CASE("PyTorch's batch counters are ignored") {
  const NamedTensor counter{"2.num_batches_tracked", {}, DType::i32, Blob::allocate(4)};
  CHECK(load({tensor("2.weight", {3}, 1), counter}, {parameter("2.weight", {3})}));
  CHECK_THAT(error_of({tensor("num_batches_tracked", {1}, 1)}, {}),
             Contains("not in the model: num_batches_tracked"));
}

TEST_CASE("all missing, unknown and mismatched tensors are listed at once") {
  const std::string text =
      error_of({tensor("0.weight", {2, 3}, 1), tensor("head", {1}, 1),
                NamedTensor{"4.bias", {4}, DType::i8, Blob::allocate(4)}},
               {parameter("0.weight", {3, 2}), parameter("0.bias", {3}), parameter("4.bias", {4})});
  CHECK_THAT(text, Contains("init_from: \"") &&
                       Contains("/m\" does not match the model; missing: 0.bias; not in the model: "
                                "head; mismatched: 0.weight is 2x3 instead of 3x2, 4.bias is i8 "
                                "instead of f32; give --init the weights of the same model"));
}

TEST_CASE("long lists of names are shortened") {
  std::vector<NamedTensor> tensors;
  std::vector<Parameter> parameters;
  for (int i = 0; i < 11; ++i) tensors.push_back(tensor(concat("t", i), {1}, 1));
  for (int i = 0; i < 9; ++i) parameters.push_back(parameter(concat("p", i), {1}));
  CHECK_THAT(error_of(tensors, parameters),
             Contains("missing: p0, p1, p2, p3, p4, p5, p6, p7 and 1 more; not in the model: t0, "
                      "t1, t2, t3, t4, t5, t6, t7 and 3 more; give"));
  parameters.pop_back();
  CHECK_THAT(error_of(tensors, parameters), Contains("p7; not in the model"));
}

TEST_CASE("the error for an unreadable weights file names the file") {
  CHECK_THAT(load_initial_weights("/no/such/file", std::span<const Parameter>()).error().text,
             Contains("init_from: \"/no/such/file\" cannot be read"));
}

}  // namespace
}  // namespace leeway
