#include "models/safetensors.hpp"

#include <rapidcheck/catch.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "core/text.hpp"
#include "tests/models/datasets/files.hpp"

namespace leeway {
namespace {

using Catch::Matchers::Contains;
using test::Bytes;

NamedTensor tensor(std::string name, Shape shape, const std::vector<float>& values) {
  NamedTensor out{std::move(name), shape, DType::f32, Blob::floats(shape.count())};
  std::copy(values.begin(), values.end(), out.data.mutable_floats());
  return out;
}

bool same(const NamedTensor& a, const NamedTensor& b) {
  return a.name == b.name && a.shape == b.shape && a.dtype == b.dtype &&
         a.data.size() == b.data.size() &&
         std::memcmp(a.data.data(), b.data.data(), a.data.size()) == 0;
}

/// A file with this header and `data` zero bytes.
Bytes file_of(const std::string& header, std::size_t data) {
  std::string out(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(out.data(), &length, 8);
  return test::to_bytes(out + header + std::string(data, '\0'));
}

std::string error_of(const std::string& header, std::size_t data) {
  const auto read = parse_safetensors(file_of(header, data), "m");
  REQUIRE_FALSE(read);
  return read.error().text;
}

std::vector<NamedTensor> some_tensors() {
  return {tensor("0.weight", {2, 3}, {1, -2, 0.5f, 1e-40f, std::nanf(""), INFINITY}),
          tensor("0.bias", {3}, {7, 8, 9}), tensor("scalar", {}, {4}), tensor("none", {0, 5}, {})};
}

TEST_CASE("tensors are written and read back, bit for bit and in order") {
  const test::TemporaryFolder folder;
  const auto tensors = some_tensors();
  const Metadata metadata{{"model", "{\"layers\": 3}"}, {"\xc3\xa4\n", ""}};
  REQUIRE(write_safetensors(folder.path("m"), tensors, metadata));
  const auto read = read_safetensors(folder.path("m"));
  REQUIRE(read);
  CHECK(read->metadata == metadata);
  REQUIRE(read->tensors.size() == tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) CHECK(same(read->tensors[i], tensors[i]));
}

TEST_CASE("wider element types come first, so that each tensor is aligned") {
  const test::TemporaryFolder folder;
  std::vector<NamedTensor> tensors{{"bytes", {3}, DType::i8, Blob::allocate(3)},
                                   {"bf16", {3}, DType::bf16, Blob::allocate(6)},
                                   tensor("floats", {1}, {2})};
  std::memset(tensors[0].data.mutable_data(), 1, 3);
  std::memset(tensors[1].data.mutable_data(), 2, 6);
  REQUIRE(write_safetensors(folder.path("m"), tensors));
  const auto read = read_safetensors(folder.path("m"));
  REQUIRE(read);
  CHECK(read->metadata.empty());
  for (std::size_t i = 0; i < 3; ++i) CHECK(same(read->tensors[i], tensors[2 - i]));
}

TEST_CASE("the header is padded with spaces to 8 bytes") {
  const test::TemporaryFolder folder;
  for (std::size_t length = 1; length <= 8; ++length) {
    const std::vector<NamedTensor> tensors{tensor(std::string(length, 'n'), {1}, {1})};
    REQUIRE(write_safetensors(folder.path("m"), tensors));
    const auto bytes = test::read_bytes(folder.path("m"));
    std::uint64_t header = 0;
    std::memcpy(&header, bytes.data(), 8);
    CHECK(header % 8 == 0);
    CHECK(bytes.size() == 8 + header + 4);
  }
}

TEST_CASE("writing replaces a file and leaves no temporary file") {
  const test::TemporaryFolder folder;
  folder.write("m", "something else");
  REQUIRE(write_safetensors(folder.path("m"), some_tensors()));
  REQUIRE(read_safetensors(folder.path("m")));
  const std::filesystem::directory_iterator files(folder.path(""));
  CHECK(std::distance(begin(files), end(files)) == 1);
}

TEST_CASE("a file that cannot be written or read is named with the reason") {
  CHECK(write_safetensors("/no/such/folder/m", some_tensors()).error().text ==
        "/no/such/folder/m: cannot be created: No such file or directory; give a path in a "
        "writable folder with enough space");
  CHECK_THAT(read_safetensors("/no/such/file").error().text, Contains("No such file or directory"));
  CHECK_THAT(read_safetensors("/").error().text, Contains("\"/\" cannot be read: Is a directory"));
}

TEST_CASE("names that the format does not allow are refused, and blobs of a wrong size are a bug") {
  const test::TemporaryFolder folder;
  const auto write = [&](const std::vector<NamedTensor>& tensors, const Metadata& metadata = {}) {
    return write_safetensors(folder.path("m"), tensors, metadata);
  };
  CHECK_THAT(write({tensor("__metadata__", {1}, {1})}).error().text, Contains("rename it"));
  CHECK_THAT(write({tensor("\xff", {1}, {1})}).error().text, Contains("not UTF-8"));
  CHECK_THAT(write({}, {{"a", "\xc3"}}).error().text, Contains("not UTF-8"));
  CHECK(!std::filesystem::exists(folder.path("m")));
  CHECK_THROWS_AS(write({{"a", {2}, DType::f32, Blob::allocate(4)}}), CheckFailed);
  CHECK_THROWS_AS(write({tensor("a", {1}, {1}), tensor("a", {1}, {1})}), CheckFailed);
}

TEST_CASE("a file of another format is refused") {
  CHECK(parse_safetensors({}, "m").error().text == "m: found 0 bytes; give a safetensors file");
  CHECK_THAT(parse_safetensors(test::to_bytes("PK\3\4 a zip archive"), "m").error().text,
             Contains("m: byte 0: found a header of"));
  CHECK_THAT(error_of(" {}", 0), Contains("found no JSON object"));
  CHECK_THAT(error_of("{\"a\":", 0), Contains("is not JSON; save the file again"));
  CHECK_THAT(error_of("{} x", 0), Contains("is not JSON"));
  CHECK_THAT(error_of("{}", 3), Contains("3 bytes at its end belong to no tensor"));
  CHECK(parse_safetensors(file_of("{}  ", 0), "m")->tensors.empty());
}

std::string entry(const std::string& name, const std::string& shape, int begin, int end,
                  const std::string& dtype = "F32") {
  return concat("\"", name, "\":{\"dtype\":\"", dtype, "\",\"shape\":", shape,
                ",\"data_offsets\":[", begin, ",", end, "]}");
}

TEST_CASE("entries that contradict the file are refused by name") {
  CHECK(error_of("{" + entry("w", "[2]", 0, 4) + "}", 4) ==
        "m: tensor \"w\": data_offsets give it 4 bytes, but its shape and dtype need 8; save the "
        "file again");
  CHECK_THAT(error_of("{" + entry("w", "[2]", 0, 8) + "}", 4),
             Contains("tensor \"w\": data_offsets 0 to 8 in 4 bytes of data"));
  CHECK_THAT(error_of("{" + entry("w", "[1]", 8, 4) + "}", 8), Contains("data_offsets 8 to 4"));
  CHECK_THAT(error_of("{" + entry("w", "[1]", 4, 8) + "}", 8),
             Contains("after a gap that follows the data that ends at 0"));
  CHECK_THAT(error_of("{" + entry("v", "[2]", 0, 8) + "," + entry("w", "[1]", 4, 8) + "}", 8),
             Contains("tensor \"w\": its data begins at byte 4, inside the data that ends at 8"));
  CHECK_THAT(error_of("{" + entry("w", "[4294967296,4294967296]", 0, 0) + "}", 0),
             Contains("its shape is too large"));
  CHECK_THAT(error_of("{" + entry("w", "[0,4294967296,4294967296,4294967296]", 0, 0) + "}", 0),
             Contains("its shape is too large"));
  CHECK_THAT(error_of("{" + entry("w", "[1]", 0, 8, "F128") + "}", 8),
             Contains("dtype \"F128\" is not known; convert"));
  CHECK_THAT(error_of("{" + entry("w", "[1,1,1,1,1,1,1,1,1]", 0, 4) + "}", 4),
             Contains("tensor \"w\", \"shape\": more than 8 numbers"));
  CHECK_THAT(error_of("{" + entry("w", "[1]", 0, 4) + "," + entry("w", "[1]", 0, 4) + "}", 4),
             Contains("tensor \"w\": given twice"));
}

TEST_CASE("a header with values that the format does not allow is refused with their place") {
  CHECK_THAT(error_of("{\"w\":3}", 0), Contains("tensor \"w\": a number does not belong there"));
  CHECK_THAT(error_of("{\"w\":{}}", 0), Contains("needs a dtype, a shape and two data_offsets"));
  CHECK_THAT(error_of("{\"w\":{\"dtype\":[]}}", 0),
             Contains("\"dtype\": an array does not belong"));
  CHECK_THAT(error_of("{\"w\":{\"shape\":[-1]}}", 0), Contains("a negative number"));
  CHECK_THAT(error_of("{\"w\":{\"shape\":[1.0]}}", 0), Contains("a fraction"));
  CHECK_THAT(error_of("{\"w\":{\"shape\":[[1]]}}", 0), Contains("an array does not belong"));
  CHECK_THAT(error_of("{\"w\":{\"shape\":[],\"shape\":[]}}", 0), Contains("given twice"));
  CHECK_THAT(error_of("{\"w\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", 0), Contains("given twice"));
  CHECK_THAT(error_of("{\"w\":{\"other\":null}}", 0), Contains("null does not belong"));
  CHECK_THAT(error_of("{\"__metadata__\":{\"a\":1}}", 0), Contains("metadata, \"a\": a number"));
  CHECK_THAT(error_of("{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}", 0), Contains("given twice"));
  CHECK_THAT(error_of("{\"__metadata__\":[]}", 0), Contains("metadata: an array"));
  CHECK_THAT(error_of("{\"w\":" + std::string(100'000, '['), 0),
             Contains("an array does not belong"));
}

// --- properties ---

rc::Gen<NamedTensor> any_tensor(std::size_t index) {
  return rc::gen::exec([index] {
    const auto extents = *rc::gen::resize(
        4, rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 5)));
    const Shape shape{std::span<const std::int64_t>(extents)};
    const auto dtype =
        *rc::gen::element(DType::f32, DType::bf16, DType::f16, DType::i8, DType::i32);
    const auto bytes = static_cast<std::size_t>(shape.count()) * size_of(dtype);
    NamedTensor out{concat(index, *rc::gen::string<std::string>()), shape, dtype,
                    Blob::allocate(bytes)};
    for (char& c : out.name) c &= 0x7f;  // ASCII, control characters included
    for (std::size_t i = 0; i < bytes; ++i)
      out.data.mutable_data()[i] = static_cast<std::byte>(*rc::gen::arbitrary<std::uint8_t>());
    return out;
  });
}

TEST_CASE("any tensors survive a round trip") {
  const test::TemporaryFolder folder;
  rc::prop("round trip", [&] {
    std::vector<NamedTensor> tensors;
    const auto count = static_cast<std::size_t>(*rc::gen::inRange(0, 6));
    for (std::size_t i = 0; i < count; ++i) tensors.push_back(*any_tensor(i));
    RC_ASSERT(static_cast<bool>(write_safetensors(folder.path("m"), tensors)));
    const auto read = read_safetensors(folder.path("m"));
    RC_ASSERT(read.has_value());
    RC_ASSERT(read->tensors.size() == count);
    for (const auto& written : tensors)
      RC_ASSERT(std::any_of(read->tensors.begin(), read->tensors.end(),
                            [&](const NamedTensor& t) { return same(t, written); }));
  });
}

TEST_CASE("a truncated file is refused, and a file with random changes is read or refused") {
  const test::TemporaryFolder folder;
  REQUIRE(write_safetensors(folder.path("m"), some_tensors(), {{"a", "b"}}));
  const Bytes good = test::read_bytes(folder.path("m"));
  REQUIRE(parse_safetensors(good, "m"));
  for (std::size_t length = 0; length < good.size(); ++length)
    CHECK_FALSE(parse_safetensors(std::span(good).first(length), "m"));
  rc::prop("changed", [&] {
    const Bytes changed = *test::mutated(good);
    if (const auto read = parse_safetensors(changed, "m")) {
      for (const auto& t : read->tensors)
        RC_ASSERT(t.data.size() == static_cast<std::size_t>(t.shape.count()) * size_of(t.dtype));
    }
  });
}

#ifdef LEEWAY_CHECK_SAFETENSORS
TEST_CASE("an independent reader agrees about the format in both directions") {
  const test::TemporaryFolder folder;
  const auto tensors = std::vector{tensor("w", {2, 2}, {1, -2, 0.25f, 1e30f}),
                                   tensor("\xc3\xa4\"", {3}, {7, 8, 9}), tensor("s", {}, {4})};
  REQUIRE(write_safetensors(folder.path("input"), tensors, {{"step", "12"}}));
  const std::string command =
      concat(LEEWAY_CHECK_SAFETENSORS, " ", folder.path("input"), " ", folder.path("output"));
  REQUIRE(std::system(command.c_str()) == 0);

  // The script writes the tensors in reverse order and doubles all values.
  const auto read = read_safetensors(folder.path("output"));
  REQUIRE(read);
  CHECK(read->metadata == Metadata{{"step", "12"}});
  REQUIRE(read->tensors.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& doubled = read->tensors[2 - i];
    CHECK(doubled.name == tensors[i].name);
    CHECK(doubled.shape == tensors[i].shape);
    for (std::int64_t k = 0; k < doubled.shape.count(); ++k)
      CHECK(doubled.data.as_floats()[k] == 2 * tensors[i].data.as_floats()[k]);
  }
}
#endif

}  // namespace
}  // namespace leeway
