#include "models/datasets/text.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "models/datasets/load.hpp"
#include "models/datasets/program_output.hpp"
#include "tests/models/datasets/files.hpp"

using namespace leeway;
using Catch::Contains;

namespace {

struct Windows {
  std::vector<float> x;
  std::vector<std::int32_t> labels;
};

Windows whole_split(const Dataset& data) {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(data.size()));
  std::iota(samples.begin(), samples.end(), 0);
  const auto tokens = samples.size() * static_cast<std::size_t>(data.sample_shape().count());
  Windows windows{std::vector<float>(tokens), std::vector<std::int32_t>(tokens)};
  data.gather(samples, windows.x.data(), windows.labels.data(), nullptr);
  return windows;
}

std::string written(const Vocabulary& vocabulary, const auto& numbers) {
  std::string text;
  for (const auto number : numbers) text += vocabulary.character(static_cast<int>(number));
  return text;
}

plan::TextCorpus source(std::uint32_t context, double test_share, std::string file = "") {
  return {std::move(file), context, test_share};
}

std::shared_ptr<const Vocabulary> vocabulary_of(const std::string& text) {
  const auto made = Vocabulary::of(text, "text");
  REQUIRE(made);
  return *made;
}

}  // namespace

TEST_CASE("a text becomes consecutive windows, and each character's label is the next character") {
  const std::string text = "In the beginning was the Word";  // 29 characters, 5 of them for tests
  const auto data = windows_of(text, source(4, 0.2), "text");
  REQUIRE(data);
  CHECK(data->train->size() == 5);
  CHECK(data->test->size() == 1);
  CHECK(data->train->sample_shape() == Shape{4});
  CHECK(data->train->label_count() == 4);
  CHECK(data->train->target_count() == 0);
  const auto vocabulary = data->train->vocabulary();
  REQUIRE(vocabulary);
  CHECK(data->train->classes() == vocabulary->size());
  CHECK(data->test->vocabulary() == vocabulary);
  const Windows train = whole_split(*data->train), test = whole_split(*data->test);
  CHECK(written(*vocabulary, train.x) == text.substr(0, 20));
  CHECK(written(*vocabulary, train.labels) == text.substr(1, 20));
  CHECK(written(*vocabulary, test.x) == text.substr(24, 4));
  CHECK(written(*vocabulary, test.labels) == text.substr(25, 4));
}

TEST_CASE("a vocabulary numbers the characters of a text in the order of their code points") {
  const std::string text = "z\xc3\xa9 \xe2\x82\xac\n\xf0\x9f\x98\x80 z";  // e acute, euro, emoji
  const auto vocabulary = vocabulary_of(text);
  REQUIRE(vocabulary->size() == 6);
  CHECK(vocabulary->character(0) == "\n");
  CHECK(vocabulary->character(3) == "\xc3\xa9");
  CHECK(vocabulary->character(5) == "\xf0\x9f\x98\x80");
  const auto numbers = vocabulary->numbers(text, "text");
  REQUIRE(numbers);
  CHECK(*numbers == std::vector<std::int32_t>{2, 3, 1, 4, 0, 5, 1, 2});
  const auto back = Vocabulary::parse(vocabulary->json(), "vocabulary.json");
  REQUIRE(back);
  CHECK((*back)->json() == vocabulary->json());
  CHECK(*(*back)->numbers(text, "text") == *numbers);
}

TEST_CASE("bytes that are not UTF-8 are reported with their position") {
  for (const std::string bad : {"\xff", "\x80", "\xc0\x80", "\xc3", "\xe2\x82", "\xed\xa0\x80",
                                "\xf4\x90\x80\x80", "\xc3z", "\xe0\x80\x80", "\xf0\x80\x80\x80"}) {
    const auto made = Vocabulary::of("fine" + bad, "\"a.txt\"");
    REQUIRE_FALSE(made);
    CHECK_THAT(made.error().text, Contains("\"a.txt\": byte 4 is not UTF-8: ") &&
                                      Contains("; convert it, for example with iconv"));
  }
  CHECK(Vocabulary::of("", "\"a.txt\"").error().text ==
        "\"a.txt\": is empty; give a file with a text");
  CHECK(vocabulary_of("abc")->numbers("abd", "--prompt").error().text ==
        "--prompt: \"d\" does not occur in the training text; leave it out");
}

TEST_CASE("a vocabulary that no run can have written is refused") {
  for (const char* json :
       {"", "[]", "{}", "{\"characters\": \"ab\"}", "{\"characters\": []}",
        "{\"characters\": [\"a\", 1]}", "{\"characters\": [\"ab\"]}", "{\"characters\": [\"\"]}",
        "{\"characters\": [\"b\", \"a\"]}", "{\"characters\": [\"a\", \"a\"]}"}) {
    const auto read = Vocabulary::parse(json, "v.json");
    REQUIRE_FALSE(read);
    CHECK_THAT(read.error().text, Contains("v.json: is not a vocabulary that a run wrote"));
  }
}

TEST_CASE("a text that is missing or too short is refused with what to do") {
  CHECK_THAT(load_data(source(4, 0.1, "/no/such.txt"), 1).error().text,
             Contains("data.text: \"/no/such.txt\" cannot be read: ") &&
                 Contains("; give --data FILE, a text in UTF-8"));
  CHECK(windows_of("too short", source(8, 0.5), "text").error().text ==
        "text: has 5 characters for training and 4 for tests, but a sample needs 9; give a longer "
        "text, or a smaller data.text.context");
}

TEST_CASE("a text file is read without changes") {
  const test::TemporaryFolder folder;
  const auto data = load_data(source(3, 0.5, folder.write("a.txt", "abcabcab\nabcabcab\n")), 1);
  REQUIRE(data);
  CHECK(data->train->classes() == 4);
  CHECK(data->train->size() == 2);
}

TEST_CASE("the King James Bible begins with the first day and ends with the book of life") {
  const auto data = load_data(source(64, 0.1), 1);
  INFO((data ? "" : data.error().text));
  REQUIRE(data);
  CHECK(data->train->size() > 50'000);
  CHECK(data->test->size() > 5'000);
  CHECK(data->train->classes() > 60);
  const auto vocabulary = data->train->vocabulary();
  const std::string begin = written(*vocabulary, whole_split(*data->train).x).substr(0, 200);
  CHECK_THAT(begin, Contains("In the beginning God created the heaven and the earth."));
  const std::string end = written(*vocabulary, whole_split(*data->test).x);
  CHECK_THAT(end.substr(end.size() - 300), Contains("the book of life"));
}

TEST_CASE("a program's whole output is read, and a failure is an error") {
  const auto text = [](const std::vector<std::string>& command) {
    const auto output = program_output(command, "use another");
    return output ? std::string(reinterpret_cast<const char*>(output->data()), output->size())
                  : output.error().text;
  };
  CHECK(text({"echo", "two words;", "$HOME"}) == "two words; $HOME\n");
  CHECK(text({"seq", "100000"}).size() == 588895);
  CHECK(text({"leeway-no-such-program"}) ==
        "\"leeway-no-such-program\" cannot be run: No such file or directory; use another");
  CHECK(text({"false"}) == "\"false\" failed with exit code 1; use another");
  CHECK(text({"true"}) == "\"true\" printed nothing; use another");
  CHECK(text({"cat"}) == "\"cat\" printed nothing; use another");  // its input is empty
}
