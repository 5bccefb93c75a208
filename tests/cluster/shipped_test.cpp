#include "cluster/shipped.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "actors/job.hpp"
#include "cluster/data_cache.hpp"
#include "models/datasets/load.hpp"
#include "models/datasets/text.hpp"
#include "tests/models/datasets/image_files.hpp"
#include "tests/models/datasets/labels.hpp"
#include "tests/models/datasets/npy_files.hpp"

using namespace leeway;
using Catch::Contains;

namespace {

TrainTest clusters(std::uint64_t seed, std::uint32_t features = 7) {
  auto data = load_data(plan::Synthetic{70000, 1000, plan::Clusters{5, features, 3}}, seed);
  REQUIRE(data);
  return *data;
}

/// Sends all pieces of both sets.
void ship(const TrainTest& data, const node::DataMark& mark, ShippedData& to) {
  for (const bool test : {false, true}) {
    const std::int64_t size = test ? mark.test_samples : mark.train_samples;
    for (std::int64_t first = 0; first < size; first += samples_of_piece(mark)) {
      const auto added = to.add(data_piece(data, mark, test, first));
      INFO((added ? "" : added.error().text));
      REQUIRE(added);
    }
  }
}

std::vector<float> all_of(const Dataset& data) {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(data.size()));
  std::iota(samples.rbegin(), samples.rend(), 0);
  std::vector<float> x(samples.size() * static_cast<std::size_t>(data.sample_shape().count()));
  std::vector<std::int32_t> labels(samples.size() * static_cast<std::size_t>(data.label_count()));
  std::vector<float> targets(samples.size());
  data.gather(samples, x.data(), labels.data(), targets.data());
  x.insert(x.end(), labels.begin(), labels.end());
  x.insert(x.end(), targets.begin(), targets.end());
  return x;
}

/// Tables with texts, arrays and images: all kinds of files.
std::vector<plan::DataSource> sources(const test::TemporaryFolder& folder) {
  plan::Csv table;
  table.train = folder.write("x.csv", "color,a,label\nred,1,no\nblue,2,yes\n");
  table.test = table.train;
  plan::Npy arrays;
  arrays.features = arrays.test_features =
      folder.write("x.npy", test::npy<std::uint8_t>("(2, 2, 1)", {1, 2, 3, 4}));
  arrays.labels = arrays.test_labels =
      folder.write("y.npy", test::npy<std::int64_t>("(2,)", {0, 1}));
  std::vector<plan::DataSource> out{table, arrays};
#ifdef LEEWAY_PNG
  for (const char* kind : {"images/cat", "images/dog"}) {
    std::filesystem::create_directories(folder.path(kind));
    folder.write(std::string(kind) + "/1.png", test::png(2, 1, 1, {7, 9}));
  }
  out.push_back(plan::ImageFolder{folder.path("images"), folder.path("images"), 0.2});
#endif
  return out;
}

}  // namespace

TEST_CASE("a node loads any kind of file itself, or receives its samples") {
  const test::TemporaryFolder folder;
  for (const auto& source : sources(folder)) {
    Plan plan;
    plan.data = source;
    const auto data = load_data(plan.data, plan.seed);
    REQUIRE(data);
    const auto mark = mark_of(*data);
    const auto found = load_matching(plan, mark);
    REQUIRE(found);
    CHECK(all_of(*found->train) == all_of(*data->train));

    Plan elsewhere;
    elsewhere.data = plan::Csv{.train = folder.path("nothing.csv")};
    CHECK_FALSE(load_matching(elsewhere, mark));
    ShippedData shipped(mark);
    ship(*data, mark, shipped);
    const auto arrived = shipped.take();
    REQUIRE(arrived);
    CHECK(all_of(*arrived->train) == all_of(*data->train));
    CHECK(all_of(*arrived->test) == all_of(*data->test));
  }
}

TEST_CASE("data that is shipped in pieces arrives unchanged") {
  for (const auto& data :
       {clusters(1), *load_data(plan::Synthetic{3000, 10, plan::Line{3, 2, 1}}, 1)}) {
    const auto mark = mark_of(data);
    ShippedData shipped(mark);
    CHECK_FALSE(shipped.complete());
    ship(data, mark, shipped);
    REQUIRE(shipped.complete());
    CHECK(shipped.samples() == data.train->size() + data.test->size());
    const auto arrived = shipped.take();
    REQUIRE(arrived);
    CHECK(mark_of(*arrived) == mark);
    CHECK(all_of(*arrived->train) == all_of(*data.train));
    CHECK(all_of(*arrived->test) == all_of(*data.test));
  }
}

TEST_CASE("data sets have equal marks if and only if their contents are equal") {
  CHECK(mark_of(clusters(1)) == mark_of(clusters(1)));
  CHECK(mark_of(clusters(1)).checksum != mark_of(clusters(2)).checksum);
  CHECK_FALSE(mark_of(clusters(1)) == mark_of(clusters(1, 8)));
}

TEST_CASE("a piece that is not the next one, too small or with an invalid label is refused") {
  const auto data = clusters(1);
  const auto mark = mark_of(data);
  const auto first = data_piece(data, mark, false, 0);
  ShippedData shipped(mark);
  auto wrong = first;
  wrong.first = 1;
  CHECK_THAT(shipped.add(wrong).error().text, Contains("begins with sample 1"));
  wrong = first;
  wrong.samples = 3;
  CHECK_THAT(shipped.add(wrong).error().text, Contains("has 3 samples"));
  wrong = first;
  wrong.x = Blob::floats(3);
  CHECK_THAT(shipped.add(wrong).error().text, Contains("blobs of 12"));
  wrong = data_piece(data, mark, false, 0);
  reinterpret_cast<std::int32_t*>(wrong.y.mutable_data())[2] = 5;
  CHECK_THAT(shipped.add(wrong).error().text, Contains("label 5, must be below 5"));
  CHECK(shipped.add(first));
  CHECK_THAT(shipped.add(first).error().text, Contains("begins with sample 0"));
}

TEST_CASE("data that differs from the announced data is refused when it has arrived") {
  const auto mark = mark_of(clusters(1));
  ShippedData shipped(mark);
  ship(clusters(2), mark, shipped);
  CHECK_THAT(shipped.take().error().text, Contains("not the data that was announced"));
}

TEST_CASE("shipped data gathers its labels without its samples") {
  for (const auto& source : {plan::Synthetic{30, 10, plan::Clusters{5, 4, 3}},
                             plan::Synthetic{30, 10, plan::Line{3, 2, 1}}}) {
    const auto data = load_data(source, 3);
    REQUIRE(data);
    ShippedData shipped(mark_of(*data));
    ship(*data, mark_of(*data), shipped);
    test::require_labels_agree(*(*shipped.take()).train);
  }
}

TEST_CASE("a text that is shipped in pieces keeps its labels") {
  std::string text;
  for (int i = 0; i < 40'000; ++i) text += static_cast<char>('a' + i * i % 23);
  const auto data = windows_of(text, {"", 16, 0.3}, "text");
  REQUIRE(data);
  const auto mark = mark_of(*data);
  CHECK(mark.labels == 16);
  ShippedData shipped(mark);
  ship(*data, mark, shipped);
  const auto arrived = shipped.take();
  REQUIRE(arrived);
  for (const auto& [sent, received] :
       {std::pair{data->train, arrived->train}, {data->test, arrived->test}}) {
    CHECK(received->label_count() == 16);
    CHECK(all_of(*received) == all_of(*sent));
  }
}

TEST_CASE("a node checks the division of data that it does not have yet") {
  Plan plan;
  plan.model = {plan::Linear{5}};
  plan.workers = 4;
  plan.shards = 1;
  plan.consistency = plan::Asp{};
  plan.split_data = plan::DirichletSplit{0.5};
  const auto job = make_job(plan, described(mark_of(clusters(1))));
  INFO((job ? "" : job.error().text));
  REQUIRE(job);
  CHECK_FALSE((*job)->split);
  plan.split_data = plan::LabelSplit{100'000};
  const auto refused = make_job(plan, described(mark_of(clusters(1))));
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().text, Contains("need more than the 70000 samples"));
}
