// Trained models that are loaded again: evaluation, prediction, export.
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "core/text.hpp"
#include "leeway.hpp"
#include "runtime/trained/evaluate.hpp"
#include "runtime/trained/export.hpp"
#include "runtime/trained/predict.hpp"
#include "tests/support/process.hpp"

namespace leeway::test {
namespace {

using Catch::Matchers::Contains;

void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// A table whose class depends on the sign of two columns of very different size.
std::string points(int rows, int seed) {
  Rng rng(static_cast<std::uint64_t>(seed));
  std::string text = "a,b,kind\n";
  for (int i = 0; i < rows; ++i) {
    const double a = rng.normal(), b = rng.normal();
    text += concat(1e-3 * a, ',', 1e4 * b + 500, ',', (a > 0 ? 1 : 0) + (b > 0.1 ? 1 : 0), '\n');
  }
  return text;
}

Scenario on_points(const TemporaryFolder& folder) {
  write(folder / "train.csv", points(800, 1));
  write(folder / "test.csv", points(300, 2));
  Scenario scenario("points", "Classes of points.");
  scenario
      .data(plan::Csv{.train = folder / "train.csv", .test = folder / "test.csv", .label = "kind"})
      .model({linear(12), relu(), linear(3)})
      .optimizer(momentum(0.05, 0.9))
      .workers(2)
      .shards(1)
      .batch(20)
      .epochs(6);
  return scenario;
}

Result trained(Scenario scenario, const std::string& folder) {
  Result result = run(scenario.plan(), {.folder = folder, .quiet = true});
  INFO(result.error);
  REQUIRE(result.ok());
  return result;
}

std::vector<std::string> predictions(const std::string& run, const std::string& file) {
  const auto model = load_trained(run);
  INFO((model ? "" : model.error().text));
  REQUIRE(model);
  std::vector<std::string> lines;
  const Status done = predict(*model, file, [&](const std::string& line) {
    lines.push_back(line);
    return Status();
  });
  INFO((done ? "" : done.error().text));
  REQUIRE(done);
  return lines;
}

std::string refusal(const std::string& run, const std::string& file) {
  const auto model = load_trained(run);
  if (!model) return model.error().text;
  const Status done = predict(*model, file, [](const std::string&) { return Status(); });
  REQUIRE_FALSE(done);
  return done.error().text;
}

TEST_CASE("an evaluation gives the loss and accuracy of the run, to the bit") {
  const TemporaryFolder folder;
  const Result result = trained(on_points(folder), folder / "run");
  CHECK(result.test_accuracy > 0.8);
  std::filesystem::copy(folder / "run/weights.safetensors", folder / "elsewhere.safetensors");
  for (const char* from : {"run", "run/weights.safetensors", "elsewhere.safetensors"}) {
    const auto model = load_trained(folder / from);
    REQUIRE(model);
    for (const std::string& data : {std::string(), folder / "test.csv"}) {
      const auto evaluation = evaluate(*model, {.data = data, .labels = {}});
      REQUIRE(evaluation);
      CHECK(evaluation->loss == result.test_loss);
      CHECK(evaluation->accuracy == result.test_accuracy);
      CHECK(evaluation->samples == 300);
      std::uint64_t all = 0, right = 0;
      for (const auto& [key, count] : evaluation->confusion) {
        all += count;
        right += key.first == key.second ? count : 0;
      }
      CHECK(all == 300);
      CHECK(static_cast<double>(right) / 300 == result.test_accuracy);
    }
  }
}

TEST_CASE("one output for two classes gives the probabilities of both") {
  const TemporaryFolder folder;
  std::string text = "x,label\n";
  for (int i = 0; i < 400; ++i) text += concat((i * 37) % 101, ',', (i * 37) % 101 > 55, '\n');
  write(folder / "halves.csv", text);
  Scenario scenario("halves", "Two classes.");
  scenario.data(csv(folder / "halves.csv"))
      .model({linear(1)})
      .loss(sigmoid_cross_entropy())
      .optimizer(sgd(0.5))
      .shards(1)
      .batch(10)
      .epochs(5);
  const Result result = trained(scenario, folder / "run");
  const auto model = load_trained(folder / "run");
  REQUIRE(model);
  const auto evaluation = evaluate(*model);
  REQUIRE(evaluation);
  CHECK(evaluation->loss == result.test_loss);
  CHECK(evaluation->accuracy == result.test_accuracy);
  CHECK(evaluation->classes.size() == 2);
  write(folder / "two.csv", "x\n0\n100\n");
  const auto lines = predictions(folder / "run", folder / "two.csv");
  REQUIRE(lines.size() == 3);
  CHECK(lines[1].substr(0, 4) == "0,0.");
  CHECK(lines[2].substr(0, 2) == "1,");
}

TEST_CASE("predictions need no label column, and columns come in any order") {
  const TemporaryFolder folder;
  const Result result = trained(on_points(folder), folder / "run");
  const auto labelled = predictions(folder / "run", folder / "test.csv");
  CHECK(labelled.size() == 301);
  CHECK(labelled[0] == "predicted,0,1,2");
  std::ifstream in(folder / "test.csv");
  std::string line, other = "b,extra,a\r\n";
  std::getline(in, line);
  int right = 0;
  for (std::size_t row = 1; std::getline(in, line); ++row) {
    const std::size_t first = line.find(','), second = line.rfind(',');
    other +=
        concat(line.substr(first + 1, second - first - 1), ",x,", line.substr(0, first), "\r\n");
    right += labelled[row][0] == line[second + 1] ? 1 : 0;
  }
  CHECK(right / 300.0 == result.test_accuracy);
  write(folder / "other.csv", other);
  CHECK(predictions(folder / "run", folder / "other.csv") == labelled);
  // Probabilities are positive and add up to 1.
  for (std::size_t row = 1; row < labelled.size(); ++row) {
    std::stringstream fields(labelled[row]);
    double sum = 0;
    std::getline(fields, line, ',');
    while (std::getline(fields, line, ',')) sum += std::stod(line);
    CHECK(std::abs(sum - 1) < 1e-5);
  }
}

TEST_CASE("files that do not fit the model are refused by place") {
  const TemporaryFolder folder;
  trained(on_points(folder), folder / "run");
  const auto refused = [&](const std::string& text) {
    write(folder / "bad.csv", text);
    return refusal(folder / "run", folder / "bad.csv");
  };
  CHECK_THAT(refused("a,c\n1,2\n"), Contains("bad.csv:1:1: found no column \"b\""));
  CHECK_THAT(refused("a,b\n1,2\n1\n"),
             Contains("bad.csv:3:1: found 1 fields, but the first line has 2"));
  CHECK_THAT(refused("a,b\n1,x\n"), Contains("bad.csv:2:1: column \"b\": found \"x\""));
  CHECK_THAT(refused(""), Contains("the file is empty"));
  CHECK_THAT(refused("a,b\n"), Contains("no rows"));
  CHECK_THAT(refusal(folder / "run", folder / "none.csv"), Contains("none.csv"));
  CHECK_THAT(refusal(folder / "none", folder / "test.csv"), Contains("does not exist"));
  const auto model = load_trained(folder / "run");
  REQUIRE(model);
  write(folder / "bad.csv", "a,b,kind\n1,2,3\n");
  CHECK_THAT(evaluate(*model, {.data = folder / "bad.csv", .labels = {}}).error().text,
             Contains("column \"kind\": found \"3\", which is not a class") && Contains("0, 1, 2"));
  write(folder / "bad.csv", "a,b\n1,2\n");
  CHECK_THAT(evaluate(*model, {.data = folder / "bad.csv", .labels = {}}).error().text,
             Contains("found no column \"kind\" for the label"));
  // Other training data would scale the test data in another way.
  write(folder / "train.csv", points(800, 3));
  CHECK_THAT(evaluate(*model).error().text, Contains("--data FILE"));
}

TEST_CASE("texts, separators and missing numbers are read as in training") {
  const TemporaryFolder folder;
  Rng rng(5);
  for (const char* name : {"train.csv", "test.csv"}) {
    std::string rows = "colour;x;y;kind\n";
    for (int i = 0; i < 500; ++i) {
      const bool red = rng.one_in(2), missing = rng.one_in(20);
      const double x = rng.normal();
      rows += concat(red ? "red" : "\"dark; blue\"", ';', x, ';', missing ? "?" : "7", ';',
                     red == (x > 0) ? "up" : "down", '\n');
    }
    write(folder / name, rows);
  }
  Scenario scenario("colours", "Texts and numbers.");
  plan::Csv source = csv(folder / "train.csv", "kind");
  source.test = folder / "test.csv";
  source.separator = ";";
  source.missing = plan::Missing::mean;
  scenario.data(source)
      .model({linear(16), relu(), linear(2)})
      .optimizer(momentum(0.05, 0.9))
      .shards(1)
      .batch(10)
      .epochs(8);
  const Result result = trained(scenario, folder / "run");
  CHECK(result.test_accuracy > 0.9);
  const auto model = load_trained(folder / "run");
  REQUIRE(model);
  const auto evaluation = evaluate(*model, {.data = folder / "test.csv", .labels = {}});
  REQUIRE(evaluation);
  CHECK(evaluation->loss == result.test_loss);
  CHECK(evaluation->accuracy == result.test_accuracy);
  CHECK(predictions(folder / "run", folder / "test.csv")[0] == "predicted,down,up");
}

TEST_CASE("columns of a file without a header are numbered, and the label may be missing") {
  const TemporaryFolder folder;
  trained(on_points(folder), folder / "run");
  auto model = load_trained(folder / "run");
  REQUIRE(model);
  auto numbered = *model->preprocessing;
  numbered.header = false;
  numbered.columns[0].name = "1";
  numbered.label = "2";
  numbered.columns[1].name = "3";
  model->preprocessing = std::make_shared<const Preprocessing>(numbered);
  const auto first = [&](const std::string& text) {
    write(folder / "rows.csv", text);
    std::vector<std::string> lines;
    REQUIRE(predict(*model, folder / "rows.csv", [&](const std::string& line) {
      lines.push_back(line);
      return Status();
    }));
    REQUIRE(lines.size() == 3);
    return lines;
  };
  const auto lines = first("0.001,9000\n-0.001,-9000\n");
  CHECK(lines[1][0] == '2');
  CHECK(lines[2][0] == '0');
  CHECK(first("0.001,2,9000\n-0.001,0,-9000\n") == lines);
  CHECK(evaluate(*model, {.data = folder / "rows.csv", .labels = {}})->accuracy == 1);
}

TEST_CASE("the run folder and the weights carry the preprocessing") {
  const TemporaryFolder folder;
  trained(on_points(folder), folder / "run");
  const std::string text = read_text(folder / "run/preprocessing.json");
  const auto preprocessing = Preprocessing::from_json(text, "p");
  REQUIRE(preprocessing);
  REQUIRE(preprocessing->columns.size() == 2);
  CHECK(preprocessing->columns[1].name == "b");
  CHECK(preprocessing->columns[1].deviation > 5000);
  CHECK(preprocessing->label == "kind");
  CHECK(preprocessing->classes == std::vector<std::string>{"0", "1", "2"});
  const auto weights = read_safetensors(folder / "run/weights.safetensors");
  REQUIRE(weights);
  CHECK(weights->metadata.at("leeway.preprocessing") == text);
  // A run of an earlier version has none: the data are loaded again.
  std::filesystem::remove(folder / "run/preprocessing.json");
  const auto model = load_trained(folder / "run");
  REQUIRE(model);
  REQUIRE(model->preprocessing);
  CHECK(*model->preprocessing == *preprocessing);
}

TEST_CASE("a regression is evaluated and predicted in the unit of its data") {
  const TemporaryFolder folder;
  std::string text = "x,y\n";
  for (int i = 0; i < 200; ++i) text += concat(i, ',', 3 * i + 2, '\n');
  write(folder / "line.csv", text);
  Scenario scenario("line", "A line.");
  scenario.data(plan::Csv{.train = folder / "line.csv", .label = "y", .regression = true})
      .model({linear(1)})
      .loss(mean_squared_error())
      .optimizer(sgd(0.05))
      .consistency(bsp())
      .shards(1)
      .batch(10)
      .epochs(40);
  trained(scenario, folder / "run");
  const auto lines = predictions(folder / "run", folder / "line.csv");
  REQUIRE(lines.size() == 201);
  CHECK(lines[0] == "predicted");
  CHECK(std::abs(std::stod(lines[1]) - 2) < 1);
  CHECK(std::abs(std::stod(lines[101]) - 302) < 1);
  const auto model = load_trained(folder / "run");
  REQUIRE(model);
  const auto evaluation = evaluate(*model);
  REQUIRE(evaluation);
  CHECK(evaluation->explained_variance > 0.999);
  CHECK(evaluation->mean_absolute_error < 1);
  CHECK(evaluation->root_mean_square_error >= evaluation->mean_absolute_error);
  CHECK_THAT(text_of(*evaluation), Contains("R squared"));
  CHECK_THAT(picture_of(*evaluation), Contains("<circle") && Contains("</svg>"));
}

TEST_CASE("images are predicted from an IDX file, and text is left to leeway sample") {
  const TemporaryFolder folder;
  const auto write_idx = [&](const std::string& name, std::vector<int> extents, auto value) {
    std::string file{'\0', '\0', '\x08', static_cast<char>(extents.size())};
    int count = 1;
    for (const int extent : extents) {
      file += std::string{'\0', '\0', static_cast<char>(extent >> 8), static_cast<char>(extent)};
      count *= extent;
    }
    for (int i = 0; i < count; ++i) file += static_cast<char>(value(i));
    write(folder / name, file);
  };
  // The class is the brighter half.
  const auto pixel = [](int i) { return (i / 16 % 2 == 0) == (i % 16 < 8) ? 200 + i % 7 : i % 9; };
  const auto label = [](int i) { return i % 2; };
  for (const char* set : {"train", "test"}) {
    write_idx(concat(set, ".images"), {300, 4, 4}, pixel);
    write_idx(concat(set, ".labels"), {300}, label);
  }
  Scenario scenario("halves", "Bright halves.");
  scenario
      .data(idx(folder / "train.images", folder / "train.labels", folder / "test.images",
                folder / "test.labels"))
      .model({flatten(), linear(2)})
      .optimizer(sgd(0.1))
      .shards(1)
      .batch(16)
      .epochs(3);
  const Result result = trained(scenario, folder / "run");
  CHECK(result.test_accuracy == 1);
  const auto lines = predictions(folder / "run", folder / "test.images");
  REQUIRE(lines.size() == 301);
  for (int i = 0; i < 300; ++i) CHECK(lines[static_cast<std::size_t>(i + 1)][0] == '0' + i % 2);
  const auto model = load_trained(folder / "run");
  REQUIRE(model);
  const auto evaluation =
      evaluate(*model, {.data = folder / "test.images", .labels = folder / "test.labels"});
  REQUIRE(evaluation);
  CHECK(evaluation->loss == result.test_loss);
  write_idx("small.images", {3, 2, 2}, pixel);
  CHECK_THAT(refusal(folder / "run", folder / "small.images"),
             Contains("found images of 1x2x2") && Contains("1x4x4"));

  write(folder / "text", std::string(200, 'a') + std::string(200, 'b'));
  Scenario writing("writing", "Letters.");
  writing.data(text(8, folder / "text")).model({embedding(0, 4), linear(2)}).shards(1).epochs(1);
  const Result written = trained(writing, folder / "letters");
  CHECK_THAT(refusal(folder / "letters", folder / "text"), Contains("leeway sample"));
  const auto letters = load_trained(folder / "letters");
  REQUIRE(letters);
  CHECK(letters->class_name(1) == "b");
  CHECK(evaluate(*letters)->accuracy == written.test_accuracy);
}

TEST_CASE("precision, recall and calibration follow their definitions") {
  ModelEvaluation of{.name = "n", .data = "d", .samples = 10, .predictions = 10, .accuracy = 0.7};
  of.classes = {"cat", "dog", "<none>"};
  of.confusion = {{{0, 0}, 4}, {{0, 1}, 1}, {{1, 1}, 3}, {{1, 0}, 2}};
  const auto rows = of.by_class();
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].samples == 5);
  CHECK(rows[0].precision == Approx(4.0 / 6));
  CHECK(rows[0].recall == Approx(0.8));
  CHECK(rows[0].f1 == Approx(2 * (4.0 / 6 * 0.8) / (4.0 / 6 + 0.8)));
  CHECK(rows[2].precision == 0);
  // Six answers of confidence 0.9 of which three are right, and four of 0.5 of which four are.
  of.bins[13] = {6, 3, 6 * 0.9};
  of.bins[7] = {4, 4, 4 * 0.5};
  CHECK(of.calibration_error() == Approx(0.6 * std::abs(0.5 - 0.9) + 0.4 * std::abs(1 - 0.5)));
  const std::string text = text_of(of);
  CHECK_THAT(text, Contains("accuracy  70.00%") && Contains("44.00%") && Contains("cat"));
  const std::string picture = picture_of(of);
  CHECK_THAT(picture, Contains("&lt;none&gt;") && !Contains("<none>") && Contains("</svg>"));
}

TEST_CASE("layers of the program cannot be exported, and are named") {
  const TemporaryFolder folder;
  register_layer("pass", [](const std::string&) -> Expected<std::unique_ptr<Layer>> {
    class PassOn final : public Layer {
      std::string_view kind() const override { return "pass"; }
      Expected<Shape> set_input(const Shape& input) override { return input; }
      bool is_view() const override { return true; }
      void forward(const ForwardArgs&) const override {}
      void backward(const BackwardArgs&) const override {}
    };
    return std::unique_ptr<Layer>(std::make_unique<PassOn>());
  });
  Scenario scenario = on_points(folder);
  scenario.model({linear(4), custom("pass"), linear(3)});
  trained(scenario, folder / "run");
  const auto model = load_trained(folder / "run");
  REQUIRE(model);
  CHECK_THAT(export_torch(*model, folder / "torch").error().text,
             Contains("layer 1 (custom \"pass\") is part of the scenario program"));
  CHECK_FALSE(std::filesystem::exists(folder / "torch"));
}

}  // namespace
}  // namespace leeway::test
