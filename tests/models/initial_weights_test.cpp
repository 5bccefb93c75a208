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

Expected<InitialWeights> load(const std::vector<NamedTensor>& tensors,
                              const std::vector<Parameter>& parameters,
                              const plan::FineTuning& tuning = {}) {
  const test::TemporaryFolder folder;
  REQUIRE(write_safetensors(folder.path("m"), tensors));
  return load_initial_weights(folder.path("m"), parameters, tuning);
}

std::string error_of(const std::vector<NamedTensor>& tensors,
                     const std::vector<Parameter>& parameters,
                     const plan::FineTuning& tuning = {}) {
  const auto loaded = load(tensors, parameters, tuning);
  REQUIRE_FALSE(loaded);
  return loaded.error().text;
}

/// A file as PyTorch writes it: tensors of any type, all bytes given.
struct RawTensor {
  std::string name, type, shape;
  std::string bytes;
};
template <class T>
std::string bytes_of(std::vector<T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}
Expected<InitialWeights> load_raw(const std::vector<RawTensor>& tensors,
                                  const std::vector<Parameter>& parameters,
                                  const plan::FineTuning& tuning = {}) {
  std::string header = "{", data;
  for (const auto& one : tensors) {
    header += concat(header.size() > 1 ? "," : "", '"', one.name, R"(":{"dtype":")", one.type,
                     R"(","shape":)", one.shape, R"(,"data_offsets":[)", data.size(), ',',
                     data.size() + one.bytes.size(), "]}");
    data += one.bytes;
  }
  header += "}";
  const test::TemporaryFolder folder;
  folder.write("m", bytes_of<std::uint64_t>({header.size()}) + header + data);
  return load_initial_weights(folder.path("m"), parameters, tuning);
}

TEST_CASE("weights are returned in the model's order, whatever the file's order") {
  const auto loaded = load({tensor("1.bias", {3}, 10), tensor("1.weight", {3, 2}, 1)},
                           {parameter("1.weight", {3, 2}), parameter("1.bias", {3})});
  REQUIRE(loaded);
  CHECK(loaded->notes.empty());
  const auto& blobs = loaded->values;
  REQUIRE(blobs.size() == 2);
  for (int i = 0; i < 6; ++i) CHECK(blobs[0].as_floats()[i] == static_cast<float>(1 + i));
  for (int i = 0; i < 3; ++i) CHECK(blobs[1].as_floats()[i] == static_cast<float>(10 + i));
}

TEST_CASE("f16 and bf16 are converted to floats") {
  const auto loaded = load({tensor16("a", DType::f16, {0x3c00, 0xc100}),
                            tensor16("b", DType::bf16, {0x3f80, 0xc020, 0x0000})},
                           {parameter("a", {2}), parameter("b", {3})});
  REQUIRE(loaded);
  CHECK(loaded->notes == std::vector<std::string>{"--init: converted from 16 bits to F32: a, b"});
  const auto* blobs = &loaded->values;
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

TEST_CASE("batch counters and unused integers of PyTorch are left out, and F64 is rounded") {
  const auto loaded = load_raw({{"0.num_batches_tracked", "I64", "[]", bytes_of<std::int64_t>({9})},
                                {"0.weight", "F64", "[2]", bytes_of<double>({0.1, -2})},
                                {"position_ids", "I64", "[2]", bytes_of<std::int64_t>({0, 1})},
                                {"mask", "BOOL", "[3]", std::string(3, '\1')}},
                               {parameter("0.weight", {2})});
  REQUIRE(loaded);
  REQUIRE(loaded->values.size() == 1);
  CHECK(loaded->values[0].as_floats()[0] == 0.1f);
  CHECK(loaded->values[0].as_floats()[1] == -2);
  CHECK(loaded->notes ==
        std::vector<std::string>{"--init: rounded from F64 to F32: 0.weight",
                                 "--init: left out: position_ids (I64), mask (BOOL)"});
  CHECK_THAT(load_raw({{"0.weight", "I64", "[1]", bytes_of<std::int64_t>({1})}},
                      {parameter("0.weight", {1})})
                 .error()
                 .text,
             Contains("mismatched: 0.weight is I64 instead of F32"));
}

TEST_CASE("prefixes of names are removed and replaced, the first match counts") {
  const std::vector<NamedTensor> file{tensor("net.0.weight", {1}, 1),
                                      tensor("net.head.weight", {1}, 2),
                                      tensor("tail.weight", {1}, 3)};
  const std::vector<Parameter> parameters{parameter("0.weight", {1}), parameter("2.weight", {1}),
                                          parameter("3.weight", {1})};
  const auto loaded =
      load(file, parameters, {.init_map = "net.head.=2.,net.=,tail.=3.", .freeze = {}});
  REQUIRE(loaded);
  for (int i = 0; i < 3; ++i)
    CHECK(loaded->values[static_cast<std::size_t>(i)].as_floats()[0] == static_cast<float>(1 + i));
  CHECK_THAT(error_of(file, parameters, {.init_map = "model.=", .freeze = {}}),
             Contains("no tensor begins with \"model.\"; the file has net.0.weight, "));
  CHECK_THAT(error_of(file, parameters, {.init_map = "net.=,tail.=head.", .freeze = {}}),
             Contains("gives two tensors the name head.weight"));
}

TEST_CASE("the error for names with a common prefix gives the flag that removes it") {
  CHECK_THAT(error_of({tensor("net.0.weight", {1}, 1), tensor("net.0.bias", {1}, 1)},
                      {parameter("0.weight", {1}), parameter("0.bias", {1})}),
             Contains("give --init-map net.= to remove the prefix"));
}

TEST_CASE("a partial file leaves the other parameters random, and lists them") {
  const std::vector<NamedTensor> file{tensor("0.weight", {2}, 1), tensor("4.weight", {3}, 1),
                                      tensor("old", {1}, 1)};
  const std::vector<Parameter> parameters{parameter("0.weight", {2}), parameter("4.weight", {5}),
                                          parameter("4.bias", {5})};
  const auto loaded = load(file, parameters, {.init_map = {}, .partial = true, .freeze = {}});
  REQUIRE(loaded);
  CHECK(loaded->values[0]);
  CHECK_FALSE(loaded->values[1]);
  CHECK_FALSE(loaded->values[2]);
  CHECK(loaded->notes ==
        std::vector<std::string>{"--init: not in the model: old",
                                 "--init: random, because the file lacks them: 4.weight, 4.bias; "
                                 "of another shape or type: 4.weight is 3 instead of 5"});
  CHECK_THAT(
      error_of({tensor("a", {1}, 1)}, parameters, {.init_map = {}, .partial = true, .freeze = {}}),
      Contains("has no parameter of the model") && Contains("--init-map"));
}

TEST_CASE("the error for an unreadable weights file names the file") {
  CHECK_THAT(load_initial_weights("/no/such/file", std::span<const Parameter>()).error().text,
             Contains("init_from: \"/no/such/file\" cannot be read"));
}

}  // namespace
}  // namespace leeway
