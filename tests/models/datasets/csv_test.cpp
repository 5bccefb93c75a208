#include "models/datasets/csv.hpp"

#include <rapidcheck/catch.h>

#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "models/datasets/utf8.hpp"
#include "tests/models/datasets/files.hpp"
#include "tests/models/datasets/gathered.hpp"

namespace leeway {
namespace {

using Catch::Matchers::Contains;
const CsvFormat kClasses{"label", false, nullptr};
const CsvFormat kNumbers{"y", true, nullptr};

CsvTable good(std::string_view text, const CsvFormat& format) {
  auto table = parse_csv(text, "x.csv", format);
  if (!table) FAIL(table.error().text);
  return std::move(*table);
}

std::string error_of(std::string_view text, const CsvFormat& format = kClasses) {
  const auto table = parse_csv(text, "x.csv", format);
  REQUIRE_FALSE(table);
  return table.error().text;
}

TEST_CASE("columns are found by name, and the label is not a feature") {
  const auto table = good("a,label,b\n1,0,2.5\n-3e2,2,+4\n", kClasses);
  CHECK(table.features == std::vector<std::string>{"a", "b"});
  CHECK(table.x == std::vector<double>{1, 2.5, -300, 4});
  CHECK(table.labels == std::vector<double>{0, 2});
  CHECK(table.classes == 3);
}

TEST_CASE("quotes, blanks, CRLF, a byte order mark and trailing empty lines are ignored") {
  const auto plain = good("a,label\n1,0\n2,1\n", kClasses);
  for (const char* text : {"\xef\xbb\xbf"
                           "a,label\r\n1,0\r\n2,1\r\n",
                           "a,label\n1,0\n2,1", "\"a\",\"label\"\n\"1\",\"0\"\n \"2\" , 1 \n\n\r\n",
                           "a,label\r\n1 ,0\r\n\t2,1\r"}) {
    const auto table = good(text, kClasses);
    CHECK(table.features == plain.features);
    CHECK(table.x == plain.x);
    CHECK(table.labels == plain.labels);
  }
}

TEST_CASE("a quoted name may hold commas, quotes and line ends, and line ends in it are counted") {
  const auto table = good("\"a,\"\"b\"\"\nc\",y\n1,2\n", kNumbers);
  CHECK(table.features == std::vector<std::string>{"a,\"b\"\nc"});
  CHECK_THAT(error_of("\"a\nb\",y\n1,2\nx,2\n", kNumbers), Contains("x.csv:4:1: "));
}

TEST_CASE("a field that is not a number is named with line and column") {
  CHECK(
      error_of("age,label\n1,0\n\xc3\xa4,1\n") ==
      "x.csv:3:1: column \"age\": found \"\\xc3\\xa4\", which is not a number; write a number, or "
      "remove the column; for a column of texts give --text-columns");
  CHECK_THAT(error_of("a,b,label\n1,2,0\n1,  x ,0\n"),
             Contains("x.csv:3:3: column \"b\": found \"x\""));
  CHECK(
      error_of("a,b,label\n1,,0\n") ==
      "x.csv:2:3: column \"b\": found an empty field, a missing value; fill it in, remove the row, "
      "or give --missing mean");
  CHECK_THAT(error_of("a,label\nnan,0\n"),
             Contains("x.csv:2:1: column \"a\": found \"nan\", a missing value; fill it in"));
  CHECK_THAT(error_of("a,label\n-inf,0\n"), Contains("found \"-inf\", which is beyond the range"));
  CHECK_THAT(error_of("a,label\n1e39,0\n"), Contains("found \"1e39\", which is beyond the range"));
  CHECK_THAT(error_of("a,label\n1e999,0\n"), Contains("beyond the range"));
  for (const char* bad : {"1.5x", "0x10", "+-5", "1 2", "--1", "1;2", "+"})
    CHECK_THAT(error_of("a,label\n7,0\n" + std::string(bad) + ",0\n"), Contains("is not a number"));
}

TEST_CASE("columns are counted in characters") {
  CHECK_THAT(error_of("\"\xc3\xa4\",b,b\n"), Contains("x.csv:1:7: found a second column \"b\""));
}

TEST_CASE("rows with too few or too many fields are named") {
  CHECK(error_of("a,b,label\n1,2,0\n3,4\n") ==
        "x.csv:3:4: found 2 fields, but the header names 3; complete the row, or remove it");
  CHECK_THAT(error_of("a,b,label\n1\n"),
             Contains("x.csv:2:2: found 1 field, but the header names 3"));
  CHECK_THAT(error_of("a,label\n1,0,9\n"), Contains("x.csv:2:5: found more than the 2 fields"));
  CHECK(error_of("a,label\n1,0\n\n2,1\n") ==
        "x.csv:3:1: found an empty line between rows; remove it");
}

TEST_CASE("an invalid header is refused") {
  CHECK(error_of("") == "x.csv: the file is empty; give a header line and rows");
  CHECK_THAT(error_of("\n\n"), Contains("the file is empty"));
  CHECK(
      error_of("a,label\n") ==
      "x.csv: found a header line and no rows; add rows, or give --no-header (data.csv.header) if "
      "the line is a row");
  CHECK(
      error_of("a,lable\n1,0\n") ==
      "x.csv:1:1: found no column \"label\" for the label; give --label (data.csv.label); did you "
      "mean \"lable\"?");
  CHECK_THAT(error_of("a,a,label\n1,2,0\n"), Contains("x.csv:1:3: found a second column \"a\""));
  CHECK(error_of(",a,label\n1,2,0\n") ==
        "x.csv:1:1: column 1 has no name; name it in the header line, or remove it");
  CHECK_THAT(error_of("1,2\n3,4\n"), Contains("add a header line") && Contains("--no-header"));
  CHECK_THAT(error_of("a;label\n1;0\n"), Contains("give --separator \";\""));
  CHECK_THAT(error_of("label\n1\n"), Contains("add columns to predict it from"));
  CHECK_THAT(error_of("\"a,label\n1,0\n"),
             Contains("x.csv:1:1: found a quote that is never closed"));
  CHECK_THAT(error_of("\"a\"b,label\n1,0\n"),
             Contains("x.csv:1:4: found \"b\" after a closing quote"));
}

TEST_CASE("a class is a small integer from 0") {
  for (const char* bad : {"-1", "0.5", "1e7"})
    CHECK_THAT(error_of("a,label\n1," + std::string(bad) + "\n"),
               Contains("x.csv:2:3: column \"label\": found ") &&
                   Contains("number the classes from 0, or set data.csv.regression"));
  CHECK(good("a,y\n1,-0.5\n", kNumbers).labels == std::vector<double>{-0.5});
}

TEST_CASE("test data is matched by name and must keep to the training classes") {
  const auto train = good("a,b,label\n1,2,1\n", kClasses);
  const CsvFormat format{"label", false, &train};
  const auto test = good("label,b,a\n0,20,10\n", format);
  CHECK(test.features == train.features);
  CHECK(test.x == std::vector<double>{10, 20});
  CHECK_THAT(error_of("a,b,label\n1,2,2\n", format),
             Contains("x.csv:2:5: column \"label\": found class 2, but the training data has 0 to "
                      "1; give test data of the same classes"));
  CHECK_THAT(error_of("a,label\n1,0\n", format), Contains("found no column \"b\""));
  CHECK_THAT(error_of("a,b,cc,label\n1,2,3,0\n", format),
             Contains("x.csv:1:5: found column \"cc\", which is not in the training data"));
  CHECK_THAT(error_of("a,b\n1,2\n", format), Contains("found no column \"label\" for the label"));
}

using test::gather_all;

TEST_CASE("features are normalised by the training rows, and constant columns become 0") {
  const test::TemporaryFolder folder;
  plan::Csv source;
  source.train = folder.write("train.csv", "a,c,y\n1,0.1,5\n3,0.1,6\n5,0.1,7\n");
  source.test = folder.write("test.csv", "y,c,a\n8,0.1,7\n");
  source.label = "y";
  source.regression = true;
  const auto data = load_csv(source, 1);
  REQUIRE(data);
  CHECK(data->train->sample_shape() == Shape{2});
  CHECK(data->train->classes() == 0);
  CHECK(data->train->target_count() == 1);
  const auto train = gather_all(*data->train), test = gather_all(*data->test);
  const float step = std::sqrt(1.5f);  // 2 / the deviation of 1, 3, 5
  const std::vector<float> expected{-step, 0, 0, 0, step, 0};
  for (std::size_t i = 0; i < 6; ++i) CHECK(train.x[i] == Approx(expected[i]).margin(1e-6));
  CHECK(train.targets == std::vector<float>{5, 6, 7});
  CHECK(test.x[0] == Approx(2 * step));
  CHECK(test.x[1] == 0);

  source.normalize = false;
  CHECK(gather_all(*load_csv(source, 1)->train).x == std::vector<float>{1, .1f, 3, .1f, 5, .1f});
}

TEST_CASE("without a test file a seeded share of the rows is the test set, each row in one set") {
  const test::TemporaryFolder folder;
  std::string text = "a,label\n";
  for (int i = 0; i < 100; ++i) text += std::to_string(i) + "," + std::to_string(i % 3) + "\n";
  plan::Csv source;
  source.train = folder.write("train.csv", text);
  source.normalize = false;
  const auto rows_of = [&](std::uint64_t seed) {
    const auto data = load_csv(source, seed);
    REQUIRE(data);
    CHECK(data->train->size() == 80);
    CHECK(data->test->size() == 20);
    CHECK(data->test->classes() == 3);
    const auto train = gather_all(*data->train), test = gather_all(*data->test);
    std::multiset<float> all(train.x.begin(), train.x.end());
    all.insert(test.x.begin(), test.x.end());
    CHECK(std::set<float>(all.begin(), all.end()).size() == 100);
    for (std::size_t i = 0; i < 20; ++i) CHECK(test.labels[i] == static_cast<int>(test.x[i]) % 3);
    return test.x;
  };
  CHECK(rows_of(1) == rows_of(1));
  CHECK(rows_of(1) != rows_of(2));

  for (const double share : {0.0, 1.0, 0.001, 0.999, -1.0, std::nan("")}) {
    source.test_share = share;
    CHECK_THAT(load_csv(source, 1).error().text, Contains("data.csv.test_share: "));
  }
  source.train = folder.path("none.csv");
  CHECK_THAT(load_csv(source, 1).error().text,
             Contains("none.csv\" cannot be read") && Contains("give data.csv.train"));
}

// --- properties ---

rc::Gen<double> finite() {
  return rc::gen::map(
      rc::gen::pair(rc::gen::arbitrary<std::int32_t>(), rc::gen::inRange(-40, 28)),
      [](std::pair<std::int32_t, int> p) { return p.first * std::pow(10., p.second); });
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

TEST_CASE("numbers and names written as CSV are read back bit for bit") {
  rc::prop("numbers and names", [] {
    const auto extra =
        *rc::gen::container<std::vector<std::string>>(rc::gen::arbitrary<std::string>());
    std::vector<std::string> names;
    for (std::size_t i = 0; i < extra.size(); ++i) {
      names.push_back(std::to_string(i) + "n" + extra[i]);
      make_utf8(names.back());
    }
    names.push_back("f");
    const auto rows = static_cast<std::size_t>(*rc::gen::inRange(1, 6));
    const auto values =
        *rc::gen::container<std::vector<double>>(rows * (names.size() + 1), finite());
    const std::string line_end = *rc::gen::element("\n", "\r\n");

    std::ostringstream text;
    text.precision(17);
    for (const auto& name : names) text << quoted(name) << ',';
    text << "y";
    for (std::size_t i = 0; i < values.size(); ++i) {
      text << (i % (names.size() + 1) == 0 ? line_end : ",");
      const bool quote = *rc::gen::arbitrary<bool>();
      text << (quote ? "\"" : "") << values[i] << (quote ? "\"" : "");
    }
    const auto table = parse_csv(text.str(), "x", kNumbers);
    RC_ASSERT(table.has_value());
    RC_ASSERT(table->features == names);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t row = i / (names.size() + 1), column = i % (names.size() + 1);
      const double read =
          column == names.size() ? table->labels[row] : table->x[row * names.size() + column];
      RC_ASSERT(read == values[i]);
    }
  });
}

void check_sizes(const Expected<CsvTable>& table) {
  if (!table) return;
  RC_ASSERT(!table->labels.empty());
  RC_ASSERT(table->x.size() == table->labels.size() * table->features.size());
}

TEST_CASE("text that is truncated anywhere or changed at random is decoded or refused") {
  const std::string text = "\xef\xbb\xbf\"a,\"\"x\"\"\",b,label\r\n1.5,\"2\",0\r\n-3e2, 4,1\n";
  for (std::size_t length = 0; length <= text.size(); ++length)
    (void)parse_csv(std::string_view(text).substr(0, length), "x", kClasses);
  rc::prop("changed", [&] {
    const auto bytes = *test::mutated(test::to_bytes(text));
    check_sizes(
        parse_csv({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "x", kClasses));
  });
  rc::prop("from the format's characters", [] {
    const auto noise =
        *rc::gen::container<std::string>(rc::gen::elementOf(std::string("1a,\"\n\r .-e;\xc3")));
    check_sizes(parse_csv("a,label\n" + noise, "x", kClasses));
    check_sizes(parse_csv(noise, "x", kClasses));
  });
}

}  // namespace
}  // namespace leeway
