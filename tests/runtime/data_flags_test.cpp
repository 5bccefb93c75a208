// Flags of the training data.
#include "runtime/flags/data.hpp"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "leeway.hpp"

namespace leeway {
namespace {

using Catch::Contains;

/// The data after these flags.
plan::DataSource applied(plan::DataSource data, const DataFlags& flags) {
  const Status status = apply_data(flags, data);
  if (!status) FAIL(status.error().text);
  return data;
}
std::string refusal(plan::DataSource data, const DataFlags& flags) {
  const Status status = apply_data(flags, data);
  REQUIRE_FALSE(status);
  return status.error().text;
}

}  // namespace

TEST_CASE("--data changes the kind of data by the ending of the path") {
  for (const char* path : {"my.csv", "my.csv.gz"}) {
    const auto data = applied(fashion_mnist(), {.path = path});
    REQUIRE(std::holds_alternative<plan::Csv>(data));
    CHECK(std::get<plan::Csv>(data) == csv(path));
  }
  CHECK(std::get<plan::Csv>(applied(fashion_mnist(), {.path = "my.tsv"})).separator == "tab");
  CHECK(std::get<plan::Csv>(applied(fashion_mnist(), {.path = "my.tsv", .separator = ";"}))
            .separator == ";");
  CHECK(std::get<plan::Npy>(applied(csv("a.csv"), {.path = "x.npy", .label = "y.npy"})) ==
        npy("x.npy", "y.npy"));
  CHECK_THAT(refusal(fashion_mnist(), {.path = "x.npy"}),
             Contains("needs the file of its labels; give --label FILE.npy"));
}

TEST_CASE(
    "--data takes a folder with subfolders for images, another for Fashion-MNIST, and a file for "
    "a table") {
  std::string name = (std::filesystem::temp_directory_path() / "leeway-data-XXXXXX").string();
  REQUIRE(mkdtemp(name.data()));
  const DataFlags flags{.path = name};
  CHECK(std::get<plan::FashionMnist>(applied(fashion_mnist(), flags)).directory == name);
  std::ofstream(name + "/iris.data") << "1,x";
  CHECK(std::get<plan::Csv>(applied(fashion_mnist(), {.path = name + "/iris.data"})).train ==
        name + "/iris.data");
  std::filesystem::create_directory(name + "/cat");
  CHECK(std::get<plan::ImageFolder>(applied(fashion_mnist(), flags)) == image_folder(name));
  std::filesystem::remove_all(name);
}

TEST_CASE("--data keeps the other settings of its kind, and text stays text") {
  auto table = csv("a.csv", "y");
  table.regression = true;
  const auto changed = std::get<plan::Csv>(applied(table, {.path = "data.txt"}));
  CHECK(changed.train == "data.txt");
  CHECK(changed.label == "y");
  CHECK(changed.regression);
  CHECK(std::get<plan::TextCorpus>(applied(text(8), {.path = "x.csv"})).file == "x.csv");
  CHECK_THAT(refusal(clusters(3, 4), {.path = "x.csv"}), Contains("generates its data"));
}

TEST_CASE("the flags of CSV files set up the format") {
  const auto data = applied(fashion_mnist(), {.path = "my.csv",
                                              .label = "y",
                                              .separator = ";",
                                              .missing = "mean",
                                              .text_columns = "zip,a code",
                                              .no_header = true});
  const auto& table = std::get<plan::Csv>(data);
  CHECK(table.label == "y");
  CHECK(table.separator == ";");
  CHECK(table.missing == plan::Missing::mean);
  CHECK(table.text_columns == std::vector<std::string>{"zip", "a code"});
  CHECK_FALSE(table.header);
}

TEST_CASE("flags of other kinds of data, and unknown values, are refused by name") {
  CHECK_THAT(refusal(fashion_mnist(), {.separator = ";"}),
             Contains("--separator: applies to CSV files only"));
  CHECK_THAT(refusal(fashion_mnist(), {.no_header = true}), Contains("--no-header: "));
  CHECK_THAT(refusal(fashion_mnist(), {.missing = "mean"}), Contains("--missing: "));
  CHECK_THAT(refusal(fashion_mnist(), {.label = "y"}), Contains("--label: "));
  CHECK_THAT(refusal(csv("x"), {.missing = "median"}),
             Contains("--missing: \"median\" is not known; give refuse or mean"));
  CHECK_THAT(refusal(csv("x"), {.text_columns = "a,,b"}), Contains("--text-columns: "));
}

TEST_CASE("the command line of a scenario takes the flags of its data") {
  Scenario scenario("mine", "A task.");
  scenario.data(fashion_mnist()).model({flatten(), linear(10)});
  std::vector<std::string> words{"mine",           "--data", "x.csv",     "--label", "y",
                                 "--separator",    ";",      "--missing", "mean",    "--no-header",
                                 "--text-columns", "a,b"};
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  const CommandLine line = parse(scenario, static_cast<int>(argv.size()), argv.data());
  REQUIRE_FALSE(line.exit_code);
  plan::Csv expected = csv("x.csv", "y");
  expected.separator = ";";
  expected.missing = plan::Missing::mean;
  expected.header = false;
  expected.text_columns = {"a", "b"};
  CHECK(line.plan.data == plan::DataSource(expected));
}

TEST_CASE("a plan file has the settings of tables") {
  const auto plan = plan_from_toml(
      "data.csv = { train = 'x', header = false, separator = 'tab', missing = 'mean', text_columns "
      "= "
      "['zip'] }",
      "plan.toml");
  if (!plan) FAIL(plan.error().text);
  const auto& table = std::get<plan::Csv>(plan->data);
  CHECK_FALSE(table.header);
  CHECK(table.missing == plan::Missing::mean);
  CHECK(table.text_columns == std::vector<std::string>{"zip"});
}

}  // namespace leeway
