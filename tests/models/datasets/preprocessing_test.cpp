#include "models/datasets/preprocessing.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <utility>

#include "tests/models/datasets/files.hpp"

namespace leeway {
namespace {

using Catch::Matchers::Contains;
using Column = Preprocessing::Column;
using Field = Preprocessing::Field;

/// Two numbers, one of which may be missing, and a text of three values.
Preprocessing flowers() {
  Preprocessing out;
  out.kind = Preprocessing::Kind::table;
  out.shape = {5};
  out.split = {"", 0.2, 18446744073709551615u};
  out.label = "species \"Art\"";
  out.classes = {"setosa", "virginica"};
  out.columns = {Column{"length", {}, 4, 2, std::nullopt}, Column{"width", {}, 0.1, 1.0 / 3, 0.25},
                 Column{"farbe", {"blau", "gr\xc3\xbcn", "rot"}, 0, 1, std::nullopt}};
  out.separator = ';';
  out.header = false;
  return out;
}

Preprocessing read_back(const Preprocessing& value) {
  const auto read = Preprocessing::from_json(value.to_json(), "p.json");
  if (!read) FAIL(read.error().text);
  return *read;
}

std::string error_of(const Preprocessing& value, const std::vector<Field>& fields) {
  const auto row = value.encode_row(fields);
  REQUIRE_FALSE(row);
  return row.error().text;
}

TEST_CASE("preprocessing survives its JSON form bit for bit") {
  CHECK(read_back(flowers()) == flowers());
  Preprocessing numbers = flowers();
  numbers.classes.clear();
  numbers.target_mean = 1e-300;
  numbers.target_deviation = 0.1;
  numbers.split = {"test.csv", 0, 0};
  CHECK(read_back(numbers) == numbers);
  Preprocessing image;
  image.kind = Preprocessing::Kind::image;
  image.shape = {3, 32, 32};
  image.classes = {"cat", "dog"};
  image.pixel_mean = 72.94035223214286;
  image.pixel_deviation = 90.02118235130519;
  CHECK(read_back(image) == image);
  Preprocessing text;
  text.kind = Preprocessing::Kind::text;
  text.shape = {64};
  text.characters = {"\n", "a", "\xe2\x82\xac"};
  CHECK(read_back(text) == text);
}

TEST_CASE("a row is encoded by the names of its fields, in any order") {
  const auto row = flowers().encode_row(
      std::vector<Field>{{"farbe", "rot"}, {"width", " 1.1 "}, {"further", "x"}, {"length", "7"}});
  REQUIRE(row);
  CHECK(*row == std::vector<float>{1.5f, 3, 0, 0, 1});
}

TEST_CASE("a text that training did not have becomes zeros") {
  const auto row = flowers().encode_row(
      std::vector<Field>{{"length", "4"}, {"width", "0.1"}, {"farbe", "gelb"}});
  REQUIRE(row);
  CHECK(*row == std::vector<float>{0, 0, 0, 0, 0});
}

TEST_CASE("a missing number is replaced by its fill value, or refused without one") {
  for (const char* missing : {"", " ", "NA", "n/a", "NaN", "?", "null"}) {
    CHECK(is_missing(missing));
    const auto row = flowers().encode_row(
        std::vector<Field>{{"length", "4"}, {"width", missing}, {"farbe", "blau"}});
    REQUIRE(row);
    CHECK((*row)[1] == Approx(0.45));
    CHECK_THAT(error_of(flowers(), {{"length", missing}, {"width", "1"}, {"farbe", "rot"}}),
               Contains("column \"length\"") && Contains("--missing mean"));
    CHECK_THAT(error_of(flowers(), {{"length", "1"}, {"width", "1"}, {"farbe", missing}}),
               Contains("column \"farbe\""));
  }
  CHECK_FALSE(is_missing("0"));
  CHECK_FALSE(is_missing("nana"));
}

TEST_CASE("a row that does not fit the model is refused by name") {
  CHECK_THAT(error_of(flowers(), {{"length", "4"}, {"width", "x"}, {"farbe", "rot"}}),
             Contains("column \"width\": found \"x\", which is not a number"));
  CHECK_THAT(error_of(flowers(), {{"lenght", "4"}, {"width", "1"}, {"farbe", "rot"}}),
             Contains("found no column \"length\"") && Contains("did you mean \"lenght\"?"));
  CHECK_THAT(error_of(flowers(), {{"length", "4"}, {"length", "1"}, {"farbe", "rot"}}),
             Contains("found a second column \"length\""));
  std::vector<float> x(5);
  const std::vector<std::string> fields{"1"};
  const std::vector<std::size_t> positions{0, 1, 2};
  const auto row = flowers().encode_row(fields, positions, x.data());
  REQUIRE_FALSE(row);
  CHECK_THAT(row.error().text, Contains("column \"width\": the row has only 1 fields"));
}

TEST_CASE("scaled numbers stay within the range of float") {
  const Column column{"a", {}, 0, 1e-300, std::nullopt};
  CHECK(column.scaled(1) == std::numeric_limits<float>::max());
  CHECK(column.scaled(-1) == std::numeric_limits<float>::lowest());
}

TEST_CASE("pixels are scaled by mean and deviation") {
  Preprocessing image;
  image.kind = Preprocessing::Kind::image;
  image.shape = {1, 1, 3};
  image.pixel_mean = 100;
  image.pixel_deviation = 50;
  std::vector<float> x(3);
  image.encode_pixels(std::vector<std::uint8_t>{0, 100, 200}, x.data());
  CHECK(x[0] == Approx(-2));
  CHECK(x[1] == Approx(0).margin(1e-6));
  CHECK(x[2] == Approx(2));
}

TEST_CASE("pixels of any number are measured") {
  std::vector<std::uint8_t> pixels;
  for (int i = 0; i < 20; ++i) {
    pixels.push_back(static_cast<std::uint8_t>(i * 13 + 7 * (i % 3)));
    const double count = i + 1;
    double mean = 0, variance = 0;
    for (const double pixel : pixels) mean += pixel / count;
    for (const double pixel : pixels) variance += (pixel - mean) * (pixel - mean) / count;
    Preprocessing image;
    measure_pixels(pixels, image);
    CAPTURE(i);
    CHECK(image.pixel_mean == Approx(mean));
    CHECK(image.pixel_deviation == Approx(i == 0 ? 255 : std::sqrt(variance)));
  }
}

TEST_CASE("JSON that no run wrote is refused with the key") {
  const std::string good = flowers().to_json();
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string bad = good;
    const auto at = bad.find(from);
    REQUIRE(at != std::string::npos);
    bad.replace(at, from.size(), to);
    const auto read = Preprocessing::from_json(bad, "p.json");
    INFO(bad);
    REQUIRE_FALSE(read);
    CHECK_THAT(read.error().text, Contains("p.json: ") && Contains("train again"));
    return read.error().text;
  };
  CHECK_THAT(refused("\"kind\": \"table\"", "\"kind\": \"tree\""), Contains("\"kind\""));
  CHECK_THAT(refused("\"version\": 1", "\"version\": 2"), Contains("\"version\""));
  CHECK_THAT(refused("\"deviation\": 2.0", "\"deviation\": 0.0"), Contains("\"deviation\""));
  CHECK_THAT(refused("\"deviation\": 2.0", "\"deviation\": 1e-320"), Contains("\"deviation\""));
  CHECK_THAT(refused("\"mean\": 4.0", "\"mean\": null"), Contains("\"mean\" is not a number"));
  CHECK_THAT(refused("\"mean\": 4.0", "\"mean\": 1e999"), Contains("p.json"));
  CHECK_THAT(refused("\"rot\"", "\"blau\""), Contains("\"values\" repeats \"blau\""));
  CHECK_THAT(refused("\"rot\"", "3"), Contains("\"values\""));
  CHECK_THAT(refused("\"name\": \"width\"", "\"name\": \"length\""), Contains("\"columns\""));
  CHECK_THAT(refused("\"shape\": [\n  5\n ]", "\"shape\": [6]"), Contains("\"shape\" is 6"));
  CHECK_THAT(refused("\"shape\": [\n  5\n ]", "\"shape\": [-5]"), Contains("\"shape\""));
  CHECK_THAT(refused("\"shape\": [\n  5\n ]", "\"shape\": [268435456, 268435456]"),
             Contains("\"shape\""));
  CHECK_THAT(refused("\"separator\": \";\"", "\"separator\": \";;\""), Contains("\"separator\""));
  CHECK_THAT(refused("18446744073709551615", "-1"), Contains("\"seed\""));
  CHECK_THAT(refused("one_hot", "two_hot"), Contains("\"encoding\""));
  for (const char* bad : {"", "{}", "[]", "null", "{\"format\":", "\"text\""})
    CHECK_FALSE(Preprocessing::from_json(bad, "p.json"));
}

TEST_CASE("mutated JSON is read or refused, and never crashes") {
  const auto good = test::to_bytes(flowers().to_json());
  CHECK(rc::check([&] {
    const auto bytes = *test::mutated(good);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto read = Preprocessing::from_json(text, "p.json");
    if (read) RC_ASSERT(Preprocessing::from_json(read->to_json(), "p.json").has_value());
  }));
}

}  // namespace
}  // namespace leeway
