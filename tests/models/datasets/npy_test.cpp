#include "models/datasets/npy.hpp"

#include <rapidcheck/catch.h>

#include <cmath>
#include <limits>

#include "models/datasets/preprocessing.hpp"
#include "tests/models/datasets/gathered.hpp"
#include "tests/models/datasets/npy_files.hpp"

namespace leeway {
namespace {

using Catch::Matchers::Contains;
using test::gather_all;
using test::npy;
using Numbers = std::vector<double>;

NpyArray parsed(const test::Bytes& file) {
  auto array = parse_npy(file, "x.npy");
  if (!array) FAIL(array.error().text);
  return std::move(*array);
}
std::string refusal(const test::Bytes& file) {
  const auto array = parse_npy(file, "x.npy");
  REQUIRE_FALSE(array);
  CHECK_THAT(array.error().text, Contains("x.npy: "));
  return array.error().text;
}
test::Bytes with_header(const std::string& dictionary, std::size_t bytes = 8) {
  return test::npy_bytes(dictionary, test::Bytes(bytes));
}

template <class T>
void check_type(const std::vector<T>& values) {
  const auto array = parsed(npy("(" + std::to_string(values.size()) + ",)", values));
  REQUIRE(array.samples() == std::ssize(values));
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(array[i] == static_cast<double>(values[i]));
}

TEST_CASE("all types of numbers are read") {
  check_type<float>({0.1f, -3e38f});
  check_type<double>({0.1, 1e-300});
  check_type<std::int8_t>({-128, 127});
  check_type<std::uint8_t>({0, 255});
  check_type<std::int16_t>({-32768, 32767});
  check_type<std::uint16_t>({65535});
  check_type<std::int32_t>({-7, 2147483647});
  check_type<std::uint32_t>({4294967295});
  check_type<std::int64_t>({-7, 1LL << 40});
  check_type<std::uint64_t>({1ULL << 63});
  const auto bools = parsed(with_header("{'descr': '|b1', 'fortran_order': False, 'shape': (8,)}"));
  CHECK(bools[7] == 0);
}

TEST_CASE("headers of later versions and other spacing are read") {
  auto file = npy<float>("(2, 3)", {1, 2, 3, 4, 5, 6});
  CHECK(parsed(file).extents == std::vector<std::int64_t>{2, 3});
  file[6] = std::byte{3};  // 4 bytes of length
  file.insert(file.begin() + 10, 2, std::byte{0});
  CHECK(parsed(file)[5] == 6);
  CHECK(parsed(with_header("{\"shape\":(2,),'fortran_order':True,'descr':'<f4'}")).samples() == 2);
}

TEST_CASE("a header that numpy.save does not write is refused") {
  CHECK_THAT(refusal({}), Contains("is no .npy file"));
  CHECK_THAT(refusal(test::to_bytes("a,label\n1,0\n")), Contains("begins with \"a,labe\""));
  CHECK_THAT(refusal(test::to_bytes("\x93NUMPY\x01")), Contains("ends in its header"));
  auto version = npy<float>("(2,)", {1, 2});
  version[6] = std::byte{9};
  CHECK_THAT(refusal(version), Contains("has version 9 of the format"));
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  CHECK(parsed(with_header(good)).samples() == 2);
  for (const char* bad : {
           "",
           "{",
           "{}",
           "{'descr': '<f4', 'fortran_order': False}",
           "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}",
           "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} exit()",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2 2)}",
           "{'descr': '<f4, 'fortran_order': False, 'shape': (2,)}",
       })
    CHECK_THAT(refusal(with_header(bad)), Contains("numpy.save does not write"));
}

TEST_CASE("types, orders and shapes that cannot be used are refused with the remedy") {
  const auto header = [](const std::string& type, const std::string& order,
                         const std::string& shape) {
    return refusal(with_header("{'descr': " + type + ", 'fortran_order': " + order +
                               ", 'shape': " + shape + "}"));
  };
  CHECK_THAT(header("'>f4'", "False", "(2,)"), Contains("x.astype(np.float32)"));
  for (const char* type : {"'|O'", "'<f2'", "'<U5'", "'<c8'", "[('a', '<f4'), ('b', '<f4')]"})
    CHECK_THAT(header(type, "False", "(2,)"), Contains("has elements of type"));
  CHECK_THAT(header("'<f4'", "True", "(1, 2)"), Contains("np.ascontiguousarray(x)"));
  CHECK_THAT(header("'<f4'", "False", "()"), Contains("samples first"));
  CHECK_THAT(header("'<f4'", "False", "(0, 2)"), Contains("holds no data"));
  CHECK_THAT(header("'<f4'", "False", "(1, 1, 1, 1, 1, 1, 1, 1, 2)"), Contains("dimensions"));
}

TEST_CASE("a shape that the file does not hold is refused before memory is taken") {
  const auto of_shape = [](const std::string& shape) {
    return refusal(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + "}"));
  };
  CHECK_THAT(of_shape("(3,)"), Contains("needs more than the 8 bytes"));
  CHECK_THAT(of_shape("(1,)"), Contains("found 4 bytes after the last element"));
  CHECK_THAT(of_shape("(4611686018427387904, 4611686018427387904)"), Contains("needs more than"));
  CHECK_THAT(of_shape("(9223372036854775807,)"), Contains("needs more than"));
  const auto whole = npy<double>("(2, 2)", {1, 2, 3, 4});
  for (std::size_t length = 0; length < whole.size(); ++length)
    CHECK_FALSE(parse_npy({whole.begin(), whole.begin() + std::ptrdiff_t(length)}, "x.npy"));
}

TEST_CASE("changed files are decoded or refused") {
  const auto whole = npy<float>("(2, 2)", {1, 2, 3, 4});
  rc::prop("changed", [&] {
    const auto array = parse_npy(*test::mutated(whole), "x.npy");
    if (!array) return;
    const auto values = static_cast<std::size_t>(array->samples() * array->sample_values());
    RC_ASSERT(array->begin + values * array->value_bytes == array->file.size());
  });
}

/// Writes features and labels, and the same as test data.
template <class X, class Y>
plan::Npy files(const test::TemporaryFolder& folder, const std::string& shape,
                const std::vector<X>& x, const std::vector<Y>& y) {
  const std::string count = "(" + std::to_string(y.size()) + ",)";
  plan::Npy source;
  source.features = source.test_features = folder.write("x.npy", npy(shape, x));
  source.labels = source.test_labels = folder.write("y.npy", npy(count, y));
  return source;
}

TEST_CASE("features are normalised by column, and constant columns become 0") {
  const test::TemporaryFolder folder;
  auto source = files<double, std::int64_t>(folder, "(3, 2)", {1, 7, 3, 7, 5, 7}, {0, 2, 1});
  const auto data = load_npy(source, 1);
  REQUIRE(data);
  CHECK(data->train->sample_shape() == Shape{2});
  CHECK(data->train->classes() == 3);
  const auto train = gather_all(*data->train);
  const float step = std::sqrt(1.5f);
  const std::vector<float> expected{-step, 0, 0, 0, step, 0};
  for (std::size_t i = 0; i < 6; ++i) CHECK(train.x[i] == Approx(expected[i]).margin(1e-6));
  CHECK(train.labels == std::vector<std::int32_t>{0, 2, 1});
  CHECK(gather_all(*data->test) == train);
  const auto row =
      data->preprocessing->encode_row(std::vector<Preprocessing::Field>{{"1", "5"}, {"2", "7"}});
  REQUIRE(row);
  CHECK(*row == std::vector<float>{train.x[4], train.x[5]});

  source.normalize = false;
  CHECK(gather_all(*load_npy(source, 1)->train).x == std::vector<float>{1, 7, 3, 7, 5, 7});
}

TEST_CASE("numbers to predict stay in their unit") {
  const test::TemporaryFolder folder;
  auto source = files<float, double>(folder, "(2,)", {1, 2}, {-0.5, 1e6});
  source.regression = true;
  const auto data = load_npy(source, 1);
  REQUIRE(data);
  CHECK(data->train->sample_shape() == Shape{1});
  CHECK(gather_all(*data->train).targets == std::vector<float>{-0.5f, 1e6f});
  CHECK(data->preprocessing->classes.empty());
}

TEST_CASE("images of bytes and of floats are normalised alike") {
  const test::TemporaryFolder bytes_folder, floats_folder;
  const std::vector<std::uint8_t> pixels{0, 10, 20, 30, 40, 50, 60, 255};
  const auto bytes =
      load_npy(files<std::uint8_t, std::uint8_t>(bytes_folder, "(2, 2, 2)", pixels, {0, 1}), 1);
  const auto floats = load_npy(files<float, std::uint8_t>(floats_folder, "(2, 1, 2, 2)",
                                                          {pixels.begin(), pixels.end()}, {0, 1}),
                               1);
  REQUIRE(bytes);
  REQUIRE(floats);
  CHECK(bytes->train->sample_shape() == Shape{1, 2, 2});
  CHECK(floats->train->sample_shape() == Shape{1, 2, 2});
  const auto a = gather_all(*bytes->train).x, b = gather_all(*floats->train).x;
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).margin(1e-6));
  CHECK(bytes->preprocessing->pixel_mean == Approx(floats->preprocessing->pixel_mean));
}

TEST_CASE("without test files a seeded share is set aside, each sample in one set") {
  const test::TemporaryFolder folder;
  std::vector<float> x(50);
  std::vector<std::int32_t> y(50);
  for (std::size_t i = 0; i < 50; ++i) {
    x[i] = static_cast<float>(i);
    y[i] = static_cast<std::int32_t>(i % 3);
  }
  auto source = files(folder, "(50, 1)", x, y);
  source.test_features = source.test_labels = "";
  source.normalize = false;
  const auto data = load_npy(source, 7), again = load_npy(source, 7), other = load_npy(source, 8);
  REQUIRE(data);
  auto all = gather_all(*data->train).x;
  const auto test = gather_all(*data->test);
  CHECK(test.x.size() == 10);
  for (std::size_t i = 0; i < 10; ++i) CHECK(test.labels[i] == static_cast<int>(test.x[i]) % 3);
  all.insert(all.end(), test.x.begin(), test.x.end());
  std::sort(all.begin(), all.end());
  CHECK(all == x);
  CHECK(gather_all(*again->test) == test);
  CHECK_FALSE(gather_all(*other->test) == test);
}

TEST_CASE("arrays that do not belong together are refused") {
  const test::TemporaryFolder folder;
  const auto error = [&](const plan::Npy& source) {
    const auto data = load_npy(source, 1);
    REQUIRE_FALSE(data);
    return data.error().text;
  };
  const auto good = files<float, std::int32_t>(folder, "(2, 2)", {1, 2, 3, 4}, {0, 1});
  auto bad = good;
  bad.labels = folder.write("three.npy", npy<std::int32_t>("(3,)", {0, 1, 1}));
  CHECK_THAT(error(bad), Contains("three.npy: has 3 labels for the 2 samples of"));
  bad.labels = folder.write("wide.npy", npy<std::int32_t>("(2, 2)", {0, 1, 1, 0}));
  CHECK_THAT(error(bad), Contains("save one label per sample"));
  bad.labels = folder.write("half.npy", npy<float>("(2,)", {0, 0.5f}));
  CHECK_THAT(error(bad), Contains("label 1 is 0.5, which is not a class"));
  bad.labels = folder.write("minus.npy", npy<std::int8_t>("(2,)", {0, -1}));
  CHECK_THAT(error(bad), Contains("label 1 is -1"));
  bad = good;
  bad.test_labels = folder.write("more.npy", npy<std::int32_t>("(2,)", {0, 2}));
  CHECK_THAT(error(bad), Contains("label 1 is 2, but the training labels are 0 to 1"));
  bad = good;
  bad.test_features = folder.write("narrow.npy", npy<float>("(2, 1)", {1, 2}));
  CHECK_THAT(error(bad), Contains("give test samples of the same shape"));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  bad.features = folder.write("nan.npy", npy<float>("(2, 2)", {1, 2, nan, 4}));
  CHECK_THAT(error(bad), Contains("nan.npy: sample 1 has the value nan"));
  bad.features = folder.write("huge.npy", npy<double>("(2, 2)", {1, 2, 1e39, 4}));
  CHECK_THAT(error(bad), Contains("sample 1 has the value 1e+39"));
  bad.features =
      folder.write("last.npy", npy<std::uint8_t>("(2, 5, 5, 3)", std::vector<std::uint8_t>(150)));
  CHECK_THAT(error(bad), Contains("x.transpose(0, 3, 1, 2)"));
  bad.features = folder.path("none.npy");
  CHECK_THAT(error(bad), Contains("none.npy\" cannot be read") && Contains("data.npy.features"));
}

}  // namespace
}  // namespace leeway
