// CSV files beyond plain numbers: texts, missing values, other separators, no header, gzip.
#include <zlib.h>

#include <algorithm>
#include <functional>

#include "models/datasets/csv.hpp"
#include "models/datasets/preprocessing.hpp"
#include "tests/models/datasets/files.hpp"
#include "tests/models/datasets/gathered.hpp"

namespace leeway {
namespace {

using Catch::Matchers::Contains;
using test::gather_all;
using Texts = std::vector<std::string>;

using Change = std::function<void(plan::Csv&)>;

/// Reads `text` as training data after `change` of the settings.
Expected<TrainTest> load(const std::string& text, const Change& change,
                         const std::string& test = "") {
  const test::TemporaryFolder folder;
  plan::Csv source;
  source.train = folder.write("train.csv", text);
  if (!test.empty()) source.test = folder.write("test.csv", test);
  source.normalize = false;
  change(source);
  return load_csv(source, 1);
}
TrainTest good(const std::string& text, const Change& change, const std::string& test) {
  auto data = load(text, change, test);
  if (!data) FAIL(data.error().text);
  return std::move(*data);
}
TrainTest good(const std::string& text, const std::string& test) {
  return good(
      text, [](plan::Csv&) {}, test);
}
std::string refused(const std::string& text, const Change& change, const std::string& test = "") {
  const auto data = load(text, change, test);
  REQUIRE_FALSE(data);
  return data.error().text;
}
std::string refused(const std::string& text, const std::string& test = "") {
  return refused(
      text, [](plan::Csv&) {}, test);
}

TEST_CASE("labels that are texts become classes in sorted order, and keep their names") {
  const auto data =
      good("a,label\n1,setosa\n2,virginica\n3,iris x\n4,setosa\n", "a,label\n5,iris x\n");
  CHECK(data.train->classes() == 3);
  CHECK(gather_all(*data.train).labels == std::vector<std::int32_t>{1, 2, 0, 1});
  CHECK(gather_all(*data.test).labels == std::vector<std::int32_t>{0});
  CHECK(data.preprocessing->classes == Texts{"iris x", "setosa", "virginica"});
  CHECK(data.preprocessing->label == "label");
  CHECK_THAT(
      refused("a,label\n1,cat\n2,dog\n", "a,label\n1,god\n"),
      Contains("test.csv:2:3: column \"label\": found class \"god\", which the training data "
               "lacks; give test data of the same classes"));
}

TEST_CASE("labels that are numbers keep their codes, and are named by them") {
  const auto data = good("a,label\n1,0\n2,2\n", "a,label\n1,1\n");
  CHECK(data.preprocessing->classes == Texts{"0", "1", "2"});
}

TEST_CASE("a column of texts becomes one input per text, and other texts become zeros") {
  const auto data =
      good("color,a,label\nred,1,0\nblue,2,1\n red ,3,0\n", "label,color,a\n0,blue,4\n1,mauve,5\n");
  CHECK(data.train->sample_shape() == Shape{3});
  CHECK(gather_all(*data.train).x == std::vector<float>{0, 1, 1, 1, 0, 2, 0, 1, 3});
  CHECK(gather_all(*data.test).x == std::vector<float>{1, 0, 4, 0, 0, 5});
  CHECK(data.preprocessing->columns[0].values == Texts{"blue", "red"});
  CHECK_FALSE(data.preprocessing->columns[1].is_text());
}

TEST_CASE("texts are not scaled when numbers are") {
  const auto data = good(
      "color,a,label\nred,1,0\nblue,3,1\n", [](plan::Csv& csv) { csv.normalize = true; },
      "color,a,label\nred,5,0\n");
  CHECK(gather_all(*data.train).x == std::vector<float>{0, 1, -1, 1, 0, 1});
  CHECK(gather_all(*data.test).x == std::vector<float>{0, 1, 3});
}

TEST_CASE("the plan names columns whose numbers are texts, which are sorted as numbers") {
  const auto texts = [](plan::Csv& csv) { csv.text_columns = {"zip", "label"}; };
  const auto data = good("zip,label\n100,30\n20,5\n", texts, "zip,label\n20,30\n");
  CHECK(data.preprocessing->columns[0].values == Texts{"20", "100"});
  CHECK(data.preprocessing->classes == Texts{"5", "30"});
  CHECK(gather_all(*data.train).x == std::vector<float>{0, 1, 1, 0});
  CHECK(gather_all(*data.test).labels == std::vector<std::int32_t>{1});
  CHECK_THAT(refused("zap,label\n1,1\n", texts),
             Contains("found no column \"zip\"") && Contains("did you mean \"zap\"?"));
}

TEST_CASE("a column that mixes texts and numbers is refused with its place") {
  CHECK_THAT(refused("a,label\nunknown,0\n1,0\n2,1\n3,1\n"),
             Contains("train.csv:2:1: column \"a\": begins with a text, but most of its values are "
                      "numbers"));
  CHECK_THAT(refused("a,label\n1,0\nunknown,0\n"),
             Contains("train.csv:3:1: column \"a\": found \"unknown\", which is not a number"));
  std::string many = "id,label\n";
  for (int i = 0; i < 1100; ++i) many += "n" + std::to_string(i) + ",0\n";
  CHECK_THAT(refused(many), Contains("column \"id\": found more than 1000 different texts"));
}

TEST_CASE("regression refuses labels that are texts") {
  const auto regression = [](plan::Csv& csv) { csv.regression = true; };
  CHECK_THAT(refused("a,label\n1,big\n", regression),
             Contains("column \"label\": found \"big\", which is not a number"));
  CHECK_THAT(refused("a,label\n1,2\n",
                     [&](plan::Csv& csv) {
                       regression(csv);
                       csv.text_columns = {"label"};
                     }),
             Contains("which regression cannot predict"));
}

TEST_CASE("missing numbers become the mean of the training rows, missing texts zeros") {
  const auto mean = [](plan::Csv& csv) { csv.missing = plan::Missing::mean; };
  const std::string train = "a,c,label\n1,x,0\n?,,1\n4,y,1\nNA,x,0\n";
  const auto data = good(train, mean, "a,c,label\n nan ,?,1\n");
  CHECK(gather_all(*data.train).x == std::vector<float>{1, 1, 0, 2.5f, 0, 0, 4, 0, 1, 2.5f, 1, 0});
  CHECK(gather_all(*data.test).x == std::vector<float>{2.5f, 0, 0});
  CHECK(data.preprocessing->columns[0].fill == 2.5);

  const auto scaled = good(
      train,
      [&](plan::Csv& csv) {
        mean(csv);
        csv.normalize = true;
      },
      "a,c,label\n,x,1\n");
  // Mean and deviation are those of 1 and 4.
  CHECK(gather_all(*scaled.train).x == std::vector<float>{-1, 1, 0, 0, 0, 0, 1, 0, 1, 0, 1, 0});
  CHECK(gather_all(*scaled.test).x[0] == 0);

  CHECK_THAT(refused("a,label\n1,0\n,0\n"),
             Contains("train.csv:3:1") && Contains("--missing mean"));
  CHECK_THAT(refused("a,label\n1,0\n2,?\n", mean),
             Contains("train.csv:3:3: column \"label\": found \"?\", but a row needs its label"));
  CHECK_THAT(refused("a,b,label\n1,,0\n2,NA,1\n", mean),
             Contains("column \"b\" has no value in any row; remove it"));
}

TEST_CASE("without a header, columns are numbered, and the label is the last one or a number") {
  const auto none = [](plan::Csv& csv) { csv.header = false; };
  const auto data = good("5.1,3.5,setosa\n4.9,3,virginica\n", none, "5,5,setosa\n");
  CHECK(data.train->size() == 2);
  CHECK(gather_all(*data.train).x == std::vector<float>{5.1f, 3.5f, 4.9f, 3});
  CHECK(data.preprocessing->label == "3");
  CHECK(data.preprocessing->columns[1].name == "2");
  CHECK_FALSE(data.preprocessing->header);
  const auto first = good(
      "1,7\n0,8\n",
      [&](plan::Csv& csv) {
        none(csv);
        csv.label = "1";
      },
      "1,9\n");
  CHECK(gather_all(*first.train).labels == std::vector<std::int32_t>{1, 0});
  CHECK(gather_all(*first.train).x == std::vector<float>{7, 8});
  CHECK_THAT(refused("1,2\n",
                     [&](plan::Csv& csv) {
                       none(csv);
                       csv.label = "y";
                     }),
             Contains("give --label 1 to 2"));
  CHECK_THAT(refused("1,2\n3\n", none),
             Contains("train.csv:2:2: found 1 field, but the first row has 2"));
}

TEST_CASE("the errors for a file without a header name the flag") {
  for (const char* text : {"1,2\n3,4\n", "5.1,3.5,setosa\n", "1,1,x\n", "1,,x\n"})
    CHECK_THAT(refused(text), Contains("if the file has no header line, give --no-header"));
}

TEST_CASE("semicolons, tabs and other characters separate fields") {
  const auto expected =
      gather_all(*good("a,b,label\n1,x y,0\n2,z,1\n", "a,b,label\n1,z,0\n").train);
  for (const auto& [name, c] : {std::pair{";", ';'}, std::pair{"tab", '\t'}, std::pair{"|", '|'}}) {
    const auto replaced = [c = c](std::string text) {
      std::replace(text.begin(), text.end(), ',', c);
      return text;
    };
    const auto data = good(
        replaced("a,b,label\n1, x y,0\n2,z,1\n"),
        [name = name](plan::Csv& csv) { csv.separator = name; }, replaced("a,b,label\n1,z,0\n"));
    CHECK(gather_all(*data.train) == expected);
    CHECK(data.preprocessing->separator == c);
  }
  CHECK_THAT(refused("a;label\n1;0\n"), Contains("give --separator \";\""));
  CHECK_THAT(refused("a\tlabel\n1\t0\n"), Contains("give --separator tab"));
  for (const char* bad : {"", ";;", "a", "\"", "\n", "1", " ", ".", "-"})
    CHECK_THAT(refused("a,label\n1,0\n", [&](plan::Csv& csv) { csv.separator = bad; }),
               Contains("data.csv.separator"));
  CHECK_THAT(
      refused("a;label\n1,5;0\n", [](plan::Csv& csv) { csv.separator = ";"; }),
      Contains("train.csv:2:1: column \"a\": found \"1,5\"; write numbers with a decimal point"));
}

test::Bytes gzipped(const std::string& text) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  test::Bytes out(deflateBound(&stream, text.size()) + 64);
  std::string in = text;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST_CASE("a gzipped file is read like a plain one, and corrupt gzip data is refused") {
  std::string text = "a,label\n";
  for (int i = 0; i < 300000; ++i)
    text += std::to_string(i % 1000) + "," + std::to_string(i % 3) + "\n";
  const test::TemporaryFolder folder;
  plan::Csv plain, packed;
  plain.train = folder.write("x.csv", text);
  const auto bytes = gzipped(text);
  packed.train = folder.write("x.csv.gz", bytes);
  const auto a = load_csv(plain, 1), b = load_csv(packed, 1);
  REQUIRE(a);
  REQUIRE(b);
  CHECK(gather_all(*a->train) == gather_all(*b->train));
  packed.train = folder.write("cut.csv.gz", std::span(bytes).first(bytes.size() - 9));
  CHECK_THAT(load_csv(packed, 1).error().text, Contains("the gzip data is truncated"));
}

TEST_CASE("texts in Latin-1 are read as such, and UTF-16 is refused") {
  const auto data = good(
      "gr\xf6\xdf"
      "e,label\n1,s\xfc\xdf\n2,sauer\n",
      "gr\xc3\xb6\xc3\x9f"
      "e,label\n1,sauer\n");
  CHECK(data.preprocessing->columns[0].name ==
        "gr\xc3\xb6\xc3\x9f"
        "e");
  CHECK(data.preprocessing->classes == Texts{"sauer", "s\xc3\xbc\xc3\x9f"});
  CHECK_THAT(refused(std::string("\xff\xfe"
                                 "a\0,\0",
                                 6)),
             Contains("is in UTF-16; convert it"));
}

TEST_CASE("a row encoded for prediction equals the row that was trained") {
  const std::string text =
      "color,a,b,label\nred,1,7,yes\nblue,3,,no\ngreen,?,9,yes\nred,2.5,1e3,no\n";
  const auto data = good(
      text,
      [](plan::Csv& csv) {
        csv.normalize = true;
        csv.missing = plan::Missing::mean;
      },
      text);
  const auto restored = Preprocessing::from_json(data.preprocessing->to_json(), "p.json");
  REQUIRE(restored);
  const auto trained = gather_all(*data.train);
  std::vector<float> encoded;
  const std::vector<std::vector<Preprocessing::Field>> rows{
      {{"color", "red"}, {"a", "1"}, {"b", "7"}},
      {{"b", ""}, {"a", "3"}, {"color", "blue"}},
      {{"color", "green"}, {"a", "?"}, {"b", "9"}},
      {{"color", "red"}, {"a", "2.5"}, {"b", "1e3"}}};
  for (const auto& row : rows) {
    const auto x = restored->encode_row(row);
    REQUIRE(x);
    encoded.insert(encoded.end(), x->begin(), x->end());
  }
  CHECK(encoded == trained.x);
}

TEST_CASE("classes and inputs do not depend on the seed") {
  std::string text = "color,label\n";
  for (int i = 0; i < 50; ++i) text += i == 7 ? "rare,odd\n" : i % 2 ? "red,a\n" : "blue,b\n";
  const test::TemporaryFolder folder;
  plan::Csv source;
  source.train = folder.write("x.csv", text);
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    const auto data = load_csv(source, seed);
    REQUIRE(data);
    CHECK(data->train->sample_shape() == Shape{3});
    CHECK(data->train->classes() == 3);
    CHECK(data->preprocessing->split == Preprocessing::Split{"", 0.2, seed});
  }
}

}  // namespace
}  // namespace leeway
